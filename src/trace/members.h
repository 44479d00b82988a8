/* The members of a struct in the text of a line: "{qp_type=RC, cqe=0x1f}". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "trace/text.h"

/* Begins a struct. False: only the pointer is shown. */
static inline bool member_begin(struct trace_line *line, uint64_t value)
{
    if (value && line->shallow)
        text_add_hex(line, value);
    else
        text_add(line, value ? "{" : "NULL");
    return value && !line->shallow;
}

static TEXT_INLINE void member_number(struct trace_line *line, bool *first, const char *name, uint64_t value)
{
    text_add_member(line, first, name);
    text_add_number(line, value);
}

static TEXT_INLINE void member_hex(struct trace_line *line, bool *first, const char *name, uint64_t value)
{
    text_add_member(line, first, name);
    text_add_hex(line, value);
}

static TEXT_INLINE void member_word(struct trace_line *line, bool *first, const char *name, const char *value)
{
    text_add_member(line, first, name);
    text_add(line, value);
}

/* Adds the bits that have a name, each after the prefix, with "|" between them; nothing where no bit is set. Bit i is
 * names[i]. */
static inline void member_flags(struct trace_line *line, bool *first, const char *name, const char *prefix,
                                const char *const *names, unsigned count, uint64_t flags)
{
    bool more = false;
    if (!flags)
        return;
    text_add_member(line, first, name);
    for (unsigned i = 0; i < count; i++)
        if (flags & 1u << i) {
            text_add(line, more ? "|" : "");
            text_add(line, prefix);
            text_add(line, names[i]);
            more = true;
        }
}
