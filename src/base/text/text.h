/* Numbers, shares, lists and lines "key = value" of the texts that users write, and short files. The locale of the
 * program changes nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The decimal number at the beginning; `rest` is after it. False: no digit is there, or the number needs more than 64
 * bits. */
bool text_digits(const char *text, uint64_t *number, const char **rest);

/* The whole text is a decimal number from `least` to `most`. `number` changes only then. */
bool text_number(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* The whole text is a number from `least` to `most`: decimal, or after 0x hexadecimal. `number` changes only then. */
bool text_number_or_hex(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* "7", or "1-20": the numbers at the beginning, `rest` after them. False, too, if the last is below the first. */
bool text_range(const char *text, uint64_t *first, uint64_t *last, const char **rest);

/* A decimal number at the beginning, with or without a fraction; `rest` is after it. */
bool text_decimal(const char *text, double *number, const char **rest);

/* A word that may follow a number, and its factor. An empty name: nothing needs to follow. The list ends with NULL. */
struct text_unit {
    const char *name;
    double factor;
};

/* "1.5ms": the whole text is a decimal number with one of the units. False, too, for more than `most`. */
bool text_quantity(const char *text, const struct text_unit *units, double most, double *value);

/* A part of a text; no zero ends it. */
struct text_part {
    const char *at;
    size_t length;
};

bool text_part_is(struct text_part, const char *word);

/* Takes the next part of a list, which has one of the letters of `separators` between its parts; `list` moves after it.
 * Parts can be empty; the list "" has no parts. False: the list has ended. */
bool text_next(const char **list, const char *separators, struct text_part *part);

/* "!a,b" is a list of all but these: skips the "!". True: it was there. */
bool text_excludes(const char **list);

/* Cuts the blanks off the end of the text, and returns its first letter that is no blank. */
char *text_trim(char *text);

/* Cuts "key = value" at the sign, and trims both. Returns the value; NULL if no sign is there. */
char *text_key_value(char *line, char **key);

/* Reads the beginning of a file, as a text that ends in a zero. False: the file is empty or can't be read, and the text
 * is "". */
bool text_read_at(int directory, const char *path, char *text, size_t size);

/* Writes a sentence as snprintf does, and has the value `result`: so a function refuses and explains in one return. */
#define SAY_AND(result, to, size, ...) ((void)snprintf(to, size, __VA_ARGS__), (result))
