/* The text of a line of a trace, written piece by piece without a lock and without locales, as a post takes a tenth of
 * a microsecond. A text that does not fit is cut, and the line ends in "...". */
#pragma once

#include <stdint.h>
#include <string.h>

#include "ring/trace_ring.h"

/* Empties the line and begins it with the call; `limit` as in struct trace_line. */
void text_begin(struct trace_line *, const char *call, uint32_t limit);

/* Adds TRACE_NEXT, the name of an argument, and "=". */
void text_add_name(struct trace_line *, const char *);

enum { TEXT_END = 4 /* room for "..." */ };

/* Adds as much of a text as there is room for. */
void text_cut(struct trace_line *, const char *, size_t length);

/* Inline, so that a literal is copied by its length without a call: a line has some thirty. */
#define TEXT_INLINE inline __attribute__((always_inline))

static TEXT_INLINE void text_add_bytes(struct trace_line *line, const char *text, size_t length)
{
    if (line->length + length <= line->limit - TEXT_END) {
        memcpy(line->text + line->length, text, length);
        line->length += (uint32_t)length;
    } else
        text_cut(line, text, length);
}

static TEXT_INLINE void text_add(struct trace_line *line, const char *text)
{
    text_add_bytes(line, text, strlen(text));
}

static TEXT_INLINE void text_add_character(struct trace_line *line, char character)
{
    text_add_bytes(line, &character, 1);
}

void text_add_number(struct trace_line *, uint64_t);
void text_add_signed(struct trace_line *, int64_t);
void text_add_hex(struct trace_line *, uint64_t); /* "0x1f" */

/* Adds "name=" of a struct's member, after ", " unless `first` is set, which is cleared. */
static TEXT_INLINE void text_add_member(struct trace_line *line, bool *first, const char *name)
{
    if (!*first)
        text_add(line, ", ");
    *first = false;
    text_add(line, name);
    text_add_character(line, '=');
}

/* Adds the error's name, "ENOMEM", or the number. */
void text_add_error(struct trace_line *, int error);
