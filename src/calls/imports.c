#include "calls/imports.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = -1, GLOB_DAT = -1 };
#endif

/* Returns an address: the loader has turned the file's offsets into addresses, but not on every architecture. */
static uintptr_t absolute(const struct dl_phdr_info *info, ElfW(Addr) value)
{
    return value < info->dlpi_addr ? info->dlpi_addr + value : value;
}

static void read_dynamic(struct imports_object *object, const ElfW(Dyn) * dynamic)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        uintptr_t address = absolute(object->info, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_JMPREL:
            object->relocations[0] = (const void *)address;
            break;
        case DT_PLTRELSZ:
            object->counts[0] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            object->relocations[1] = (const void *)address;
            break;
        case DT_RELASZ:
            object->counts[1] = dynamic->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_SYMTAB:
            object->symbols = (const void *)address;
            break;
        case DT_STRTAB:
            object->strings = (const void *)address;
            break;
        default:
            break;
        }
    }
}

void imports_read(struct imports_object *object, const struct dl_phdr_info *info)
{
    *object = (struct imports_object){.info = info};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_DYNAMIC)
            read_dynamic(object, (const void *)at);
        if (segment->p_type == PT_GNU_RELRO) {
            object->protected_from = at;
            object->protected_to = at + segment->p_memsz;
        }
    }
}

bool imports_is_inside(const struct imports_object *object, imports_function *function)
{
    const struct dl_phdr_info *info = object->info;
    uintptr_t address = (uintptr_t)function;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address >= at && address < at + segment->p_memsz)
            return true;
    }
    return false;
}

struct holder {
    uintptr_t address;
    struct imports_range *range;
};

static int take_range(struct dl_phdr_info *info, size_t size, void *of)
{
    const struct holder *holder = of;
    struct imports_range range = {UINTPTR_MAX, 0};
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + segment->p_vaddr, to = from + segment->p_memsz;
        if (segment->p_type != PT_LOAD)
            continue;
        range.begin = from < range.begin ? from : range.begin;
        range.end = to > range.end ? to : range.end;
    }
    if (holder->address < range.begin || holder->address >= range.end)
        return 0;
    *holder->range = range;
    return 1;
}

bool imports_find_range(const void *address, struct imports_range *range)
{
    return dl_iterate_phdr(take_range, &(struct holder){(uintptr_t)address, range});
}

void imports_store(const struct imports_object *object, imports_function **entry, imports_function *value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)entry;
    bool protected = at >= object->protected_from && at < object->protected_to;
    void *start = (void *)(at & ~(page - 1));
    if (protected && mprotect(start, page, PROT_READ | PROT_WRITE))
        return;
    __atomic_store_n(entry, value, __ATOMIC_RELEASE);
    if (protected)
        mprotect(start, page, PROT_READ);
}

/* The functions to find in an object. */
struct search {
    const struct imports_entry *list;
    unsigned count;
    imports_visitor *visit;
};

static void look_at_symbol(struct imports_object *object, const ElfW(Rela) * relocation, const struct search *search)
{
    int type = (int)ELF64_R_TYPE(relocation->r_info);
    const char *name = object->strings + object->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
    if (type != JUMP_SLOT && type != GLOB_DAT)
        return;
    for (unsigned which = 0; which < search->count; which++)
        if (!strcmp(name, search->list[which].name))
            search->visit(object, which, (imports_function **)(object->info->dlpi_addr + relocation->r_offset));
}

void imports_visit(struct imports_object *object, const struct imports_entry *entries, unsigned count,
                   imports_visitor *visit)
{
    const struct search search = {entries, count, visit};
    for (unsigned list = 0; object->symbols && object->strings && list < 2; list++)
        for (size_t i = 0; object->relocations[list] && i < object->counts[list]; i++)
            look_at_symbol(object, &object->relocations[list][i], &search);
}
