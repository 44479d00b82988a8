#include "diag/clean.h"

#include <stdbool.h>
#include <stdint.h>

/* Reads the character at the text, of one to four bytes; 0: it is not well formed. */
static uint32_t read_character(const unsigned char *text, int *length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *length = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : *text >> 3 == 30 ? 4 : 0;
    if (*length < 2)
        return *length ? *text : 0;
    uint32_t code = *text & (0xffu >> (*length + 1));
    for (int i = 1; i < *length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    return code < least[*length] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : code;
}

void clean_json(FILE *to, const char *text)
{
    int length;
    fputc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at; at += length) {
        uint32_t code = read_character(at, &length);
        if (!code) {
            fputs("\\ufffd", to);
            length = 1;
        } else if (code < ' ' || code == '"' || code == '\\' || (code >= 0x7f && code < 0xa0))
            fprintf(to, "\\u%04x", code);
        else
            fwrite(at, 1, (size_t)length, to);
    }
    fputc('"', to);
}

static bool is_printable(uint32_t code)
{
    bool turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0x200e ||
                 code == 0x200f || code == 0x61c;
    return code >= ' ' && (code < 0x7f || code >= 0xa0) && !turns;
}

void clean_text(char *text)
{
    int length;
    for (unsigned char *at = (unsigned char *)text; *at; at += length)
        if (!is_printable(read_character(at, &length))) {
            *at = '?';
            length = 1;
        }
}
