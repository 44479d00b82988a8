/* Why commands of librdmacm are refused, as lines of events/refusal.h. */
#pragma once

#include "cm/identifier.h"
#include "events/words.h"

/* Writes a GID as words_gid does; returns `text`. */
const char *cm_refusal_words(const uint8_t gid[16], char text[WORDS_GID]);

/* Does what `refuse` of struct manager_operations does. */
void cm_refusal_write(struct manager *, const struct manager_refusal *, const char *format, va_list);

/* Logs and returns `error`: find_port found no port of that address. */
int cm_refusal_of_address(int error, const struct cm_address *);

/* Logs and returns `error`: the host's table of ports had no port for the identifier. */
int cm_refusal_of_port(int error, const struct identifier *);
