#include "base/text/text.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The value of a digit in any base up to 16; 16 for any other letter. */
static unsigned digit_of(char letter)
{
    unsigned small = (unsigned)letter | 32;
    return letter >= '0' && letter <= '9' ? (unsigned)(letter - '0')
           : small >= 'a' && small <= 'f' ? small - 'a' + 10
                                          : 16;
}

static bool read_digits(const char *text, unsigned base, uint64_t *number, const char **rest)
{
    const char *at = text;
    bool fits = true;
    uint64_t value = 0;
    for (; digit_of(*at) < base; at++) {
        fits = fits && !__builtin_mul_overflow(value, base, &value);
        fits = fits && !__builtin_add_overflow(value, digit_of(*at), &value);
    }
    *number = value;
    *rest = at;
    return fits && at > text;
}

bool text_digits(const char *text, uint64_t *number, const char **rest)
{
    return read_digits(text, 10, number, rest);
}

static bool read_whole(const char *text, unsigned base, uint64_t least, uint64_t most, uint64_t *number)
{
    const char *rest;
    uint64_t value;
    if (!read_digits(text, base, &value, &rest) || *rest || value < least || value > most)
        return false;
    *number = value;
    return true;
}

bool text_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    return read_whole(text, 10, least, most, number);
}

bool text_number_or_hex(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    bool hex = text[0] == '0' && (text[1] | 32) == 'x';
    return read_whole(text + 2 * hex, hex ? 16 : 10, least, most, number);
}

bool text_range(const char *text, uint64_t *first, uint64_t *last, const char **rest)
{
    if (!text_digits(text, first, rest))
        return false;
    *last = *first;
    return (**rest != '-' || text_digits(*rest + 1, last, rest)) && *last >= *first;
}

bool text_decimal(const char *text, double *number, const char **rest)
{
    double whole = 0, parts = 1;
    const char *at = text;
    bool point = false, any = false;
    for (; digit_of(*at) < 10 || (*at == '.' && !point); at++) {
        point = point || *at == '.';
        if (*at == '.')
            continue;
        whole = whole * 10 + digit_of(*at);
        parts *= point ? 10 : 1;
        any = true;
    }
    *number = whole / parts;
    *rest = at;
    return any;
}

bool text_quantity(const char *text, const struct text_unit *units, double most, double *value)
{
    const char *rest;
    double number;
    if (!text_decimal(text, &number, &rest))
        return false;
    while (units->name && strcasecmp(units->name, rest))
        units++;
    *value = number * units->factor;
    return units->name && *value <= most;
}

bool text_part_is(struct text_part part, const char *word)
{
    return strlen(word) == part.length && !memcmp(word, part.at, part.length);
}

bool text_next(const char **list, const char *separators, struct text_part *part)
{
    if (!*list || !**list)
        return false;
    *part = (struct text_part){*list, strcspn(*list, separators)};
    *list += part->length + !!(*list)[part->length];
    return true;
}

bool text_excludes(const char **list)
{
    bool excludes = **list == '!';
    *list += excludes;
    return excludes;
}

char *text_trim(char *text)
{
    static const char blanks[] = " \t\r\n\v\f";
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length && strchr(blanks, text[length - 1]))
        length--;
    text[length] = 0;
    return text;
}

char *text_key_value(char *line, char **key)
{
    char *sign = strchr(line, '=');
    if (sign)
        *sign = 0;
    *key = text_trim(line);
    return sign ? text_trim(sign + 1) : NULL;
}

bool text_read_at(int directory, const char *path, char *text, size_t size)
{
    int file = openat(directory, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0;
}
