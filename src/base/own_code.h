/* The code of this library, or of the program that has it inside. */
#pragma once

#include <stdbool.h>

/* Returns true if this is an address in the module of which the caller is part. */
static inline bool own_code_has(const void *address)
{
    /* The linker's symbols for the begin and end of the module. */
    extern const char own_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
    extern const char own_end[] __asm__("_end") __attribute__((visibility("hidden")));
    return (const char *)address >= own_begin && (const char *)address < own_end;
}
