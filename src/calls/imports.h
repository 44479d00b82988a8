/* The tables of imported symbols of loaded objects: their entries can be read and replaced, one object at a time. Do
 * not read or write the entries of an object that the loader has not relocated yet. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void imports_function(void);

struct imports_entry {
    const char *name;
    imports_function *replacement;
};

/* An object of dl_iterate_phdr(3), which keeps it loaded. */
struct imports_object {
    const struct dl_phdr_info *info;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
    const ElfW(Sym) * symbols;
    const char *strings;
    uintptr_t protected_from, protected_to; /* read-only after relocation */
    bool is_noted;                          /* the caller's; false at first */
};

void imports_read(struct imports_object *, const struct dl_phdr_info *);

/* Calls `visit` for each entry whose symbol is in `list`, with the symbol's index in the list. */
typedef void imports_visitor(struct imports_object *, unsigned which, imports_function **entry);
void imports_visit(struct imports_object *, const struct imports_entry *list, unsigned count, imports_visitor *);

/* Returns true if the function is inside of the object. An entry that leads there is not bound yet. */
bool imports_is_inside(const struct imports_object *, imports_function *);

/* The addresses of a loaded object. */
struct imports_range {
    uintptr_t begin, end;
};

/* Finds the range of the object that has this address; false: no object has it. Takes locks of the loader. */
bool imports_find_range(const void *address, struct imports_range *);

/* Replaces the entry's pointer; nothing happens where its page can't be made writable. */
void imports_store(const struct imports_object *, imports_function **entry, imports_function *value);
