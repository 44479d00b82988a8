#include "around/library/names.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/log.h"

struct table {
    uintptr_t base; /* what a symbol's value is added to */
    ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions;
    const uint32_t *hashes;
};

/* The C library has added the base to the addresses of some architectures, and not of others. */
static uintptr_t address_of(const struct table *table, const ElfW(Dyn) * entry)
{
    return entry->d_un.d_ptr < table->base ? entry->d_un.d_ptr + table->base : entry->d_un.d_ptr;
}

static bool find_table(const struct link_map *map, struct table *table)
{
    *table = (struct table){.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = address_of(table, entry);
        if (entry->d_tag == DT_SYMTAB)
            table->symbols = (void *)at;
        if (entry->d_tag == DT_STRTAB)
            table->strings = (const void *)at;
        if (entry->d_tag == DT_VERSYM)
            table->versions = (const void *)at;
        if (entry->d_tag == DT_GNU_HASH)
            table->hashes = (const void *)at;
    }
    return table->symbols && table->strings && table->versions && table->hashes;
}

/* The number of symbols is nowhere; the last one is the end of the last chain of the GNU hash table. */
static size_t count_symbols(const uint32_t *hashes)
{
    enum { HEADER = 4, LAST_OF_CHAIN = 1 };
    uint32_t buckets = hashes[0], first = hashes[1], last = 0;
    const uint32_t *bucket = hashes + HEADER + hashes[2] * (sizeof(ElfW(Addr)) / sizeof *hashes);
    const uint32_t *chains = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    while (last >= first && !(chains[last - first] & LAST_OF_CHAIN))
        last++;
    return last + 1;
}

static bool is_default(const struct table *table, size_t at)
{
    enum { HIDDEN = 0x8000 };
    return table->symbols[at].st_shndx != SHN_UNDEF && !(table->versions[at] & HIDDEN);
}

static void lead(const struct table *table, size_t count, const struct names_function *functions)
{
    for (size_t at = 1; at < count; at++)
        for (const struct names_function *function = functions; function->name; function++)
            if (is_default(table, at) && !strcmp(table->strings + table->symbols[at].st_name, function->name))
                table->symbols[at].st_value = (uintptr_t)function->ours - table->base;
}

/* The segment with the table, which old linkers put beside code. */
struct segment {
    uintptr_t at;
    int protection;
};

static int find_segment(struct dl_phdr_info *info, size_t size, void *context)
{
    struct segment *segment = context;
    for (const ElfW(Phdr) *header = info->dlpi_phdr; header < info->dlpi_phdr + info->dlpi_phnum; header++)
        if (header->p_type == PT_LOAD && segment->at - info->dlpi_addr - header->p_vaddr < header->p_memsz) {
            segment->protection = (header->p_flags & PF_R ? PROT_READ : 0) | (header->p_flags & PF_W ? PROT_WRITE : 0) |
                                  (header->p_flags & PF_X ? PROT_EXEC : 0);
            return 1;
        }
    return 0;
}

static bool protect(const struct table *table, size_t count, int protection)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)table->symbols & -page, to = ((uintptr_t)(table->symbols + count) + page - 1) & -page;
    return !mprotect((void *)from, to - from, protection);
}

/* False: the table can't be written. */
static bool lead_library(const struct table *table, const struct names_function *functions)
{
    size_t count = count_symbols(table->hashes);
    struct segment segment = {.at = (uintptr_t)table->symbols};
    if (!dl_iterate_phdr(find_segment, &segment) || !protect(table, count, segment.protection | PROT_WRITE))
        return false;
    lead(table, count, functions);
    return protect(table, count, segment.protection);
}

bool names_lead(const char *library, const struct names_function *functions)
{
    struct table table;
    int before = errno;
    struct link_map *map = NULL;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    for (const struct names_function *function = functions; handle && function->name; function++)
        if (function->library)
            __atomic_store_n(function->library, dlsym(handle, function->name), __ATOMIC_RELEASE);
    if (handle &&
        (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !find_table(map, &table) || !lead_library(&table, functions)))
        log_write(LOG_WARN, "the table of symbols of %s can't be changed: what a program finds by dlsym(3) is not seen",
                  map ? map->l_name : library);
    errno = before;
    return handle;
}
