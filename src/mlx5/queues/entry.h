/* Entries of completion queues in the adapter's form, of 64 bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs/queue/cq_ring.h"

enum { ENTRY_BYTES = 64, ENTRY_OWNER_AT = 63, ENTRY_INVALID = 0xf0 };

/* Writes all but the last byte, which it returns without the owner's bit: it makes the entry valid. */
uint8_t entry_write(uint8_t *to, const struct completion *, bool tags);
