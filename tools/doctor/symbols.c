#include "symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSIONS = 256, STRING_MAX = 4096, CLASS = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32 };

/* A file in memory; nothing in it is trusted. */
struct image {
    const char *bytes;
    size_t size;
    const char *strings; /* of the dynamic symbols; ends in a 0 */
    size_t strings_size;
    const ElfW(Sym) * symbols;
    const ElfW(Versym) * versym;
    size_t count;                  /* elements of symbols and of versym */
    size_t records;                /* records of versions that may still be read: no more fit into the file */
    const char *version[VERSIONS]; /* by index; NULL: not of this library */
};

/* The address of these bytes of the file; NULL: they are outside the file, or not aligned. */
static const void *at(const struct image *image, size_t offset, size_t size, size_t alignment)
{
    bool inside = offset <= image->size && size <= image->size - offset;
    return inside && offset % alignment == 0 ? image->bytes + offset : NULL;
}

/* Returns "" for a longer string: symbols may share one, and it would be read to its end for each of them. */
static const char *string(const struct image *image, size_t offset)
{
    size_t room = offset < image->strings_size ? image->strings_size - offset : 0;
    return room && memchr(image->strings + offset, 0, room < STRING_MAX ? room : STRING_MAX) ? image->strings + offset
                                                                                             : "";
}

/* A record of versions; the records of all lists count together. NULL: outside the file, or one record too many. */
static const void *record_at(struct image *image, size_t offset, size_t size, size_t alignment)
{
    if (!image->records)
        return NULL;
    image->records--;
    return at(image, offset, size, alignment);
}

/* Steps to the next record of a list, which follows this one. False: this is the last. */
static bool step(size_t *offset, size_t next)
{
    *offset += next;
    return next != 0 && *offset >= next;
}

static void note_version(struct image *image, unsigned index, const char *name)
{
    if ((index &= 0x7fff) < VERSIONS)
        image->version[index] = name;
}

static void read_definitions(struct image *image, const ElfW(Shdr) * section)
{
    size_t offset = section->sh_offset;
    for (unsigned i = 0; i < section->sh_info; i++) {
        const ElfW(Verdef) *definition = record_at(image, offset, sizeof *definition, _Alignof(ElfW(Verdef)));
        const ElfW(Verdaux) *name =
            definition ? at(image, offset + definition->vd_aux, sizeof *name, _Alignof(ElfW(Verdaux))) : NULL;
        if (!name)
            return;
        if (!(definition->vd_flags & VER_FLG_BASE))
            note_version(image, definition->vd_ndx, string(image, name->vda_name));
        if (!step(&offset, definition->vd_next))
            return;
    }
}

static void read_needs_of(struct image *image, size_t offset, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const ElfW(Vernaux) *name = record_at(image, offset, sizeof *name, _Alignof(ElfW(Vernaux)));
        if (!name)
            return;
        note_version(image, name->vna_other, string(image, name->vna_name));
        if (!step(&offset, name->vna_next))
            return;
    }
}

static void read_needs(struct image *image, const ElfW(Shdr) * section, const char *library)
{
    size_t offset = section->sh_offset;
    for (unsigned i = 0; i < section->sh_info; i++) {
        const ElfW(Verneed) *need = record_at(image, offset, sizeof *need, _Alignof(ElfW(Verneed)));
        if (!need)
            return;
        if (!strcmp(string(image, need->vn_file), library))
            read_needs_of(image, offset + need->vn_aux, need->vn_cnt);
        if (!step(&offset, need->vn_next))
            return;
    }
}

static bool read_symbols(struct image *image, const ElfW(Shdr) * sections, unsigned count, const ElfW(Shdr) * section)
{
    const ElfW(Shdr) *strings = section->sh_link < count ? &sections[section->sh_link] : NULL;
    image->symbols = at(image, section->sh_offset, section->sh_size, _Alignof(ElfW(Sym)));
    image->count = section->sh_size / sizeof *image->symbols;
    image->strings = strings && strings->sh_offset < image->size ? image->bytes + strings->sh_offset : NULL;
    image->strings_size = strings ? strings->sh_size : 0;
    return image->symbols && image->strings && image->strings_size &&
           image->strings_size <= image->size - strings->sh_offset && !image->strings[image->strings_size - 1];
}

static const ElfW(Shdr) * sections_of(const struct image *image, unsigned *count)
{
    const ElfW(Ehdr) *header = at(image, 0, sizeof *header, _Alignof(ElfW(Ehdr)));
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != CLASS ||
        header->e_shentsize != sizeof(ElfW(Shdr)))
        return NULL;
    *count = header->e_shnum;
    return at(image, header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)), _Alignof(ElfW(Shdr)));
}

/* Reads the symbols, with the versions needed of `library` or, with NULL, the versions defined here. */
static bool read_image(struct image *image, const char *library)
{
    unsigned count = 0;
    const ElfW(Shdr) *sections = sections_of(image, &count);
    bool whole = false;
    for (unsigned i = 0; sections && i < count; i++)
        if (sections[i].sh_type == SHT_DYNSYM)
            whole = read_symbols(image, sections, count, &sections[i]);
    for (unsigned i = 0; whole && i < count; i++)
        if (sections[i].sh_type == SHT_GNU_versym && sections[i].sh_size / sizeof *image->versym >= image->count)
            image->versym = at(image, sections[i].sh_offset, sections[i].sh_size, _Alignof(ElfW(Versym)));
        else if (sections[i].sh_type == SHT_GNU_verdef && !library)
            read_definitions(image, &sections[i]);
        else if (sections[i].sh_type == SHT_GNU_verneed && library)
            read_needs(image, &sections[i], library);
    return whole && image->versym;
}

static void visit_all(const struct image *image, bool defined, symbols_visit *visit, void *context)
{
    for (size_t i = 1; i < image->count; i++) {
        const ElfW(Sym) *symbol = &image->symbols[i];
        unsigned index = image->versym[i] & 0x7fff;
        const char *version = index < VERSIONS ? image->version[index] : NULL;
        bool here = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS;
        bool weak = ELF64_ST_BIND(symbol->st_info) == STB_WEAK;
        if (version && here == defined && (defined || !weak))
            visit(context, string(image, symbol->st_name), version);
    }
}

static int read_file(const char *path, const char *library, symbols_visit *visit, void *context)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    struct image image = {.size = fstat(fd, &status) ? 0 : (size_t)status.st_size};
    void *bytes = image.size ? mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (bytes == MAP_FAILED)
        return ENOEXEC;
    image.bytes = bytes;
    image.records = image.size / sizeof(ElfW(Vernaux));
    bool whole = read_image(&image, library);
    if (whole)
        visit_all(&image, !library, visit, context);
    munmap(bytes, image.size);
    return whole ? 0 : ENOEXEC;
}

int symbols_defined(const char *path, symbols_visit *visit, void *context)
{
    return read_file(path, NULL, visit, context);
}

int symbols_wanted(const char *path, const char *library, symbols_visit *visit, void *context)
{
    return read_file(path, library, visit, context);
}
