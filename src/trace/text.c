#include "trace/text.h"

#include <errno.h>
#include <string.h>

enum { END = 4, DIGITS = 20 }; /* room for "..." */

void text_add_character(struct trace_line *line, char character)
{
    uint32_t most = line->limit - END;
    if (line->length < most)
        line->text[line->length++] = character;
    else if (line->length == most) {
        memcpy(line->text + most, "...", 3);
        line->length += 3;
    }
}

void text_add(struct trace_line *line, const char *text)
{
    for (; *text; text++)
        text_add_character(line, *text);
}

static void add_digits(struct trace_line *line, uint64_t number, unsigned base)
{
    char digits[DIGITS];
    unsigned count = 0;
    do
        digits[count++] = "0123456789abcdef"[number % base];
    while (number /= base);
    while (count)
        text_add_character(line, digits[--count]);
}

void text_add_number(struct trace_line *line, uint64_t number)
{
    add_digits(line, number, 10);
}

void text_add_signed(struct trace_line *line, int64_t number)
{
    if (number < 0)
        text_add_character(line, '-');
    add_digits(line, number < 0 ? -(uint64_t)number : (uint64_t)number, 10);
}

void text_add_hex(struct trace_line *line, uint64_t number)
{
    text_add(line, "0x");
    add_digits(line, number, 16);
}

void text_add_member(struct trace_line *line, bool *first, const char *name)
{
    if (!*first)
        text_add(line, ", ");
    *first = false;
    text_add(line, name);
    text_add_character(line, '=');
}

void text_add_error(struct trace_line *line, int error)
{
    static const struct {
        int error;
        const char *name;
    } errors[] = {
#define ERROR(name) {name, #name},
#include "script/words.def"
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].error == error) {
            text_add(line, errors[i].name);
            return;
        }
    text_add(line, "errno ");
    text_add_signed(line, error);
}
