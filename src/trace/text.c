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

static void add_bytes(struct trace_line *line, const char *text, size_t length)
{
    if (line->length + length <= line->limit - END) {
        memcpy(line->text + line->length, text, length);
        line->length += (uint32_t)length;
        return;
    }
    for (size_t i = 0; i < length; i++)
        text_add_character(line, text[i]);
}

void text_add(struct trace_line *line, const char *text)
{
    add_bytes(line, text, strlen(text));
}

static void add_decimal(struct trace_line *line, uint64_t number)
{
    char digits[DIGITS];
    unsigned first = DIGITS;
    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    add_bytes(line, digits + first, DIGITS - first);
}

void text_add_number(struct trace_line *line, uint64_t number)
{
    add_decimal(line, number);
}

void text_add_signed(struct trace_line *line, int64_t number)
{
    if (number < 0)
        text_add_character(line, '-');
    add_decimal(line, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void text_add_hex(struct trace_line *line, uint64_t number)
{
    char digits[DIGITS];
    unsigned first = DIGITS;
    do
        digits[--first] = "0123456789abcdef"[number % 16];
    while (number /= 16);
    digits[--first] = 'x';
    digits[--first] = '0';
    add_bytes(line, digits + first, DIGITS - first);
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
