/* A line of text that is written word by word into a buffer, and cut where the buffer ends. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct line {
    char *at;
    size_t left; /* with the place of the NUL; 1 once the line is full */
};

static inline void line_advance(struct line *line, int written)
{
    size_t room = line->left - 1;
    size_t used = written < 0 ? 0 : (size_t)written;
    if (used > room)
        used = room;
    line->at += used;
    line->left -= used;
}

static inline void line_word(struct line *line, const char *word)
{
    line_advance(line, snprintf(line->at, line->left, "%s", word));
}

static inline void line_number(struct line *line, const char *label, uint64_t value)
{
    line_advance(line, snprintf(line->at, line->left, " %s %llu", label, (unsigned long long)value));
}

static inline void line_hex(struct line *line, const char *label, uint64_t value)
{
    line_advance(line, snprintf(line->at, line->left, " %s 0x%llx", label, (unsigned long long)value));
}
