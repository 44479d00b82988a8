#include "trace/text.h"

#include <errno.h>
#include <string.h>

enum { DIGITS = 20 };

void text_begin(struct trace_line *line, const char *call, uint32_t limit)
{
    line->further = 0;
    line->empty = 0;
    line->empty_since = 0;
    line->shallow = false;
    line->length = 0;
    line->limit = limit;
    text_add(line, call);
}

void text_add_name(struct trace_line *line, const char *name)
{
    text_add_character(line, TRACE_NEXT);
    text_add(line, name);
    text_add_character(line, '=');
}

void text_cut(struct trace_line *line, const char *text, size_t length)
{
    uint32_t most = line->limit - TEXT_END;
    for (size_t i = 0; i < length && line->length < most; i++)
        line->text[line->length++] = text[i];
    if (line->length == most) {
        memcpy(line->text + most, "...", 3);
        line->length += 3;
    }
}

void text_add_number(struct trace_line *line, uint64_t number)
{
    char digits[DIGITS];
    unsigned first = DIGITS;
    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    text_add_bytes(line, digits + first, DIGITS - first);
}

void text_add_signed(struct trace_line *line, int64_t number)
{
    if (number < 0)
        text_add_character(line, '-');
    text_add_number(line, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void text_add_hex(struct trace_line *line, uint64_t number)
{
    unsigned length = number ? (67u - (unsigned)__builtin_clzll(number)) / 4 : 1;
    char digits[2 + 16] = "0x";
    for (unsigned i = length; i; i--, number >>= 4)
        digits[1 + i] = "0123456789abcdef"[number & 15];
    text_add_bytes(line, digits, 2 + length);
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
