#include "base/text/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The letter in lower case, whatever the locale, and - for _. */
static char small(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter | 32) : letter == '_' ? '-' : letter;
}

/* Keeps only the last row of the usual table. */
size_t suggest_distance(const char *from, const char *to)
{
    enum { LONGEST = 32 };
    size_t row[LONGEST + 1], length = strlen(to);
    if (length > LONGEST)
        return LONGEST;
    for (size_t i = 0; i <= length; i++)
        row[i] = i;
    for (; *from; from++) {
        size_t left_above = row[0]++;
        for (size_t i = 1; i <= length; i++) {
            size_t above = row[i], best = left_above + (small(*from) != small(to[i - 1]));
            best = above + 1 < best ? above + 1 : best;
            row[i] = row[i - 1] + 1 < best ? row[i - 1] + 1 : best;
            left_above = above;
        }
    }
    return row[length];
}

static bool begins_with(const char *text, const char *part)
{
    while (*part && small(*text) == small(*part))
        text++, part++;
    return !*part;
}

static bool has_part(const char *text, const char *part)
{
    while (*text && !begins_with(text, part))
        text++;
    return *text;
}

struct suggestion suggest_begin(const char *name)
{
    return (struct suggestion){.name = name, .least = strlen(name) > 3 ? 3 : 2, .rest = SIZE_MAX};
}

static bool is_part(const char *name, const char *candidate)
{
    enum { OF_NAME = 3, OF_CANDIDATE = 4 };
    return strlen(name) < strlen(candidate) ? strlen(name) >= OF_NAME && has_part(candidate, name)
                                            : strlen(candidate) >= OF_CANDIDATE && has_part(name, candidate);
}

static size_t difference(size_t one, size_t other)
{
    return one < other ? other - one : one - other;
}

void suggest_try(struct suggestion *suggestion, const char *candidate)
{
    if (!*suggestion->name || !*candidate)
        return;
    size_t rest = difference(strlen(suggestion->name), strlen(candidate)); /* the distance is at least this */
    size_t distance = rest < suggestion->least ? suggest_distance(suggestion->name, candidate) : rest;
    if (distance < suggestion->least) {
        suggestion->meant = candidate;
        suggestion->least = distance;
        suggestion->rest = 0;
    } else if (rest < suggestion->rest && is_part(suggestion->name, candidate)) {
        suggestion->meant = candidate;
        suggestion->rest = rest;
    }
}
