/* The text of a line of a trace, written piece by piece without a lock and without locales, as a post takes a tenth of
 * a microsecond. A text that does not fit is cut, and the line ends in "...". */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <stdint.h>

#include "ring/trace_ring.h"

void text_add(struct trace_line *, const char *);
void text_add_character(struct trace_line *, char);
void text_add_number(struct trace_line *, uint64_t);
void text_add_signed(struct trace_line *, int64_t);
void text_add_hex(struct trace_line *, uint64_t); /* "0x1f" */

/* "name=", behind ", " where `first` is not set, which is cleared. Of the members of a struct. */
void text_add_member(struct trace_line *, bool *first, const char *name);

/* "ENOMEM", or the number. */
void text_add_error(struct trace_line *, int error);

#endif
