#include "sweep/written.h"

#include <string.h>

#include "base/random.h"

/* A number of any length is one letter, as are blanks. */
static char letter_of(char letter)
{
    if (letter && strchr("0123456789.", letter))
        return '0';
    return letter == '\t' ? ' ' : letter;
}

void written_end(struct written *written)
{
    if (written->last && written->count < WRITTEN_LINES)
        written->lines[written->count++] = written->line;
    written->last = 0;
}

static void add_letter(struct written *written, char letter)
{
    if (!written->last)
        written->line = 14695981039346656037ull;
    if (letter == written->last && (letter == '0' || letter == ' '))
        return;
    written->line = random_mix(written->line, &letter, 1);
    written->last = letter;
}

void written_add(struct written *written, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char letter = letter_of(text[i]);
        if (letter == '\n')
            written_end(written);
        else if (letter)
            add_letter(written, letter);
    }
}

static bool has_line(const struct written *written, uint64_t line, bool taken[WRITTEN_LINES])
{
    for (size_t i = 0; i < written->count; i++)
        if (!taken[i] && written->lines[i] == line)
            return taken[i] = true;
    return false;
}

bool written_has(const struct written *written, const struct written *other)
{
    bool taken[WRITTEN_LINES] = {false};
    if (!other->count || other->count == WRITTEN_LINES || written->count == WRITTEN_LINES)
        return false;
    for (size_t i = 0; i < other->count; i++)
        if (!has_line(written, other->lines[i], taken))
            return false;
    return true;
}
