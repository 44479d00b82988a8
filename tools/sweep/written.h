/* The lines that a run writes to its standard output, to be compared with another run's: in any order, whatever numbers
 * they have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WRITTEN_LINES = 4096 };

struct written {
    size_t count;                  /* of lines; WRITTEN_LINES: there may be more, and nothing is known */
    uint64_t lines[WRITTEN_LINES]; /* their hashes, without empty lines */
    uint64_t line;                 /* of the line that has begun */
    char last;                     /* its last letter, '0' for a number; 0: it is empty */
};

void written_add(struct written *, const char *text, size_t length);

/* Ends the last line. */
void written_end(struct written *);

/* Returns true if `other` wrote something, and this one all of it, with other lines or without. */
bool written_has(const struct written *, const struct written *other);
