/* The static data of the code under test: each modelled process has its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* SCHEDULE_STATICS bytes. */
void statics_save(uint8_t *to);
void statics_load(const uint8_t *from);
bool statics_have(const volatile void *address);
