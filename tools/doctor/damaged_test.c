/* Damaged files: reading them takes no longer than reading sound files of their size. */
#include <elf.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "program.h"
#include "symbols.h"

enum { SECTIONS = 4, PARTS = 65535, LONG = 16 << 20, SECONDS = 60 };

/* A library with one symbol, whose lists of versions are as long as the file says. */
struct library {
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[SECTIONS];
    ElfW(Sym) symbols[2];
    ElfW(Versym) versions[2];
    char strings[64];
    ElfW(Verneed) need;
    ElfW(Vernaux) name;
    ElfW(Verdef) definition;
    ElfW(Verdaux) defined;
};

static char path[] = "/tmp/softverbs-damaged-XXXXXX";

static void write_file(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "we");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void see(void *context, const char *symbol, const char *version)
{
    unsigned *count = context;
    (*count)++;
}

static void make_library(struct library *library, unsigned type, size_t list)
{
    static const unsigned char ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32};
    memset(library, 0, sizeof *library);
    memcpy(library->header.e_ident, ident, sizeof ident);
    library->header.e_shentsize = sizeof library->sections[0];
    library->header.e_shnum = SECTIONS;
    library->header.e_shoff = offsetof(struct library, sections);
    snprintf(library->strings, sizeof library->strings, "%s", LIBC_SO);
    library->sections[0] = (ElfW(Shdr)){.sh_type = SHT_DYNSYM,
                                        .sh_link = 1,
                                        .sh_offset = offsetof(struct library, symbols),
                                        .sh_size = sizeof library->symbols};
    library->sections[1] =
        (ElfW(Shdr)){.sh_offset = offsetof(struct library, strings), .sh_size = sizeof library->strings};
    library->sections[2] = (ElfW(Shdr)){.sh_type = SHT_GNU_versym,
                                        .sh_offset = offsetof(struct library, versions),
                                        .sh_size = sizeof library->versions};
    library->sections[3] = (ElfW(Shdr)){.sh_type = type, .sh_info = UINT32_MAX, .sh_offset = list};
    library->need.vn_cnt = UINT16_MAX;
    library->need.vn_aux = sizeof library->need;
    library->definition.vd_aux = sizeof library->definition;
}

/* Each record says that it is the next one, too, and the header claims 2^32 of them with 2^16 names each. */
static void a_list_of_versions_that_leads_back_ends(void **state)
{
    struct library library;
    unsigned count = 0;
    make_library(&library, SHT_GNU_verneed, offsetof(struct library, need));
    write_file(&library, sizeof library);
    assert_int_equal(symbols_wanted(path, LIBC_SO, see, &count), 0);
    make_library(&library, SHT_GNU_verdef, offsetof(struct library, definition));
    write_file(&library, sizeof library);
    assert_int_equal(symbols_defined(path, see, &count), 0);
}

/* Lists of names that overlap: at most as many records are read as fit into the file. */
static void lists_that_share_their_records_are_read_once(void **state)
{
    enum { RECORDS = 1 << 20 };
    size_t size = sizeof(struct library) + RECORDS * sizeof(ElfW(Verneed));
    struct library *library = calloc(1, size);
    ElfW(Verneed) *needs = (void *)(library + 1);
    unsigned count = 0;
    make_library(library, SHT_GNU_verneed, sizeof *library);
    for (size_t i = 0; i < RECORDS; i++) /* a need's vn_next is at the place of a name's vna_next */
        needs[i] = (ElfW(Verneed)){.vn_cnt = UINT16_MAX, .vn_next = sizeof *needs};
    write_file(library, size);
    assert_int_equal(symbols_wanted(path, LIBC_SO, see, &count), 0);
    free(library);
}

/* Each of 65535 program headers names a text of 16 MiB, or 16 MiB of dynamic entries. */
static void the_first_program_header_of_a_kind_counts(void **state)
{
    size_t text = (sizeof(ElfW(Ehdr)) + PARTS * sizeof(ElfW(Phdr)) + 7) & ~(size_t)7;
    char *bytes = malloc(text + LONG);
    struct program program;
    FILE *self = fopen("/proc/self/exe", "re");
    assert_int_equal(fread(bytes, sizeof(ElfW(Ehdr)), 1, self), 1);
    fclose(self);
    memset(bytes + text, 'x', LONG);
    ElfW(Ehdr) *header = (void *)bytes;
    ElfW(Phdr) *parts = (void *)(header + 1);
    header->e_phoff = sizeof *header;
    header->e_phnum = PARTS;
    for (unsigned i = 0; i < PARTS; i++)
        parts[i] = (ElfW(Phdr)){.p_type = i % 2 ? PT_INTERP : PT_DYNAMIC, .p_offset = text, .p_filesz = LONG};
    write_file(bytes, text + LONG);
    assert_int_equal(program_read(path, &program), 0);
    assert_int_equal(strlen(program.interpreter), PROGRAM_TEXT - 1);
    free(bytes);
}

static int begin(void **state)
{
    int fd = mkstemp(path);
    alarm(SECONDS); /* without it, a failing test runs for hours */
    return fd < 0 ? -1 : close(fd);
}

static int end(void **state)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_versions_that_leads_back_ends),
        cmocka_unit_test(lists_that_share_their_records_are_read_once),
        cmocka_unit_test(the_first_program_header_of_a_kind_counts),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
