/* Keeps the static data that sources under test write, for each process. */
#include "statics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

static const struct statics *const kept[] = {statics_of_table, statics_of_registers};
enum { SOURCES = sizeof kept / sizeof *kept };

void statics_save(uint8_t *to)
{
    const uint8_t *end = to + SCHEDULE_STATICS;
    for (unsigned i = 0; i < SOURCES; i++)
        for (const struct statics *each = kept[i]; each->address; to += each++->size) {
            if (to + each->size > end) {
                fputs("model: SCHEDULE_STATICS is too small\n", stderr);
                abort();
            }
            memcpy(to, each->address, each->size);
        }
}

void statics_load(const uint8_t *from)
{
    for (unsigned i = 0; i < SOURCES; i++)
        for (const struct statics *each = kept[i]; each->address; from += each++->size)
            memcpy(each->address, from, each->size);
}

bool statics_have(const volatile void *address)
{
    bool have = false;
    for (unsigned i = 0; i < SOURCES; i++)
        for (const struct statics *each = kept[i]; each->address; each++)
            have |= (uintptr_t)address - (uintptr_t)each->address < each->size;
    return have;
}
