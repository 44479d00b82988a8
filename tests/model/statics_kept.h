/* The end of the source whose static data is kept; statics.c, and mutants of that source. */
#include "schedule.h"
#include "statics.h"

static const struct {
    void *address;
    unsigned size;
} kept[] = {{&opened, sizeof opened}, {&opening, sizeof opening}};

enum { KEPT = sizeof kept / sizeof *kept };
_Static_assert(sizeof opened + sizeof opening <= SCHEDULE_STATICS, "room for all");

__attribute__((no_sanitize_thread)) void statics_save(uint8_t *to)
{
    for (unsigned i = 0; i < KEPT; to += kept[i++].size)
        __builtin_memcpy(to, kept[i].address, kept[i].size);
}

__attribute__((no_sanitize_thread)) void statics_load(const uint8_t *from)
{
    for (unsigned i = 0; i < KEPT; from += kept[i++].size)
        __builtin_memcpy(kept[i].address, from, kept[i].size);
}

__attribute__((no_sanitize_thread)) bool statics_have(const volatile void *address)
{
    for (unsigned i = 0; i < KEPT; i++)
        if ((uintptr_t)address - (uintptr_t)kept[i].address < kept[i].size)
            return true;
    return false;
}
