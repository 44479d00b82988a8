/* The static data of the code under test: each modelled process has its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A variable of a source whose static data is kept. Such a source is compiled with a header at its end, which lists
 * them; mutants of it, too. */
struct statics {
    void *address; /* NULL: the end of the list */
    unsigned size;
};
#define STATICS_KEPT(variable)                                                                                         \
    {                                                                                                                  \
        &variable, sizeof variable                                                                                     \
    }

extern const struct statics statics_of_table[], statics_of_registers[];

/* SCHEDULE_STATICS bytes. */
void statics_save(uint8_t *to);
void statics_load(const uint8_t *from);
bool statics_have(const volatile void *address);
