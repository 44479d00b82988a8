#include "script/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"

static const nanos longest = 1000 * NANOS_SECOND;

const char reader_long_stops[] = ",:;#", reader_short_stops[] = ":;#";

bool reader_refuse(struct reader *reader, const char *at, const char *format, ...)
{
    va_list arguments;
    reader->fault->line = reader->line;
    reader->fault->column = (unsigned)(at - reader->line_begin) + 1;
    va_start(arguments, format);
    vsnprintf(reader->fault->why, sizeof reader->fault->why, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

void reader_skip(struct reader *reader)
{
    while (is_blank(*reader->at))
        reader->at++;
}

bool reader_is_at_end(const struct reader *reader)
{
    return !*reader->at || *reader->at == '\n' || *reader->at == ';' || *reader->at == '#';
}

bool reader_word(struct reader *reader, const char *stops, char word[SCRIPT_WORD])
{
    reader_skip(reader);
    const char *begin = reader->at;
    bool quoted = *begin == '"';
    size_t length = quoted ? strcspn(begin + 1, "\"\n") : 0;
    if (quoted && begin[1 + length] != '"')
        return reader_refuse(reader, begin, "The quotation does not end in its line.");
    while (!quoted && begin[length] && begin[length] != '\n' && !is_blank(begin[length]) &&
           !strchr(stops, begin[length]))
        length++;
    if (length >= SCRIPT_WORD)
        return reader_refuse(reader, begin, "The word has %zu letters, more than %d.", length, SCRIPT_WORD - 1);
    memcpy(word, begin + quoted, length);
    word[length] = 0;
    reader->at = begin + length + 2 * quoted;
    return true;
}

bool reader_take(struct reader *reader, char letter)
{
    reader_skip(reader);
    if (*reader->at != letter)
        return false;
    reader->at++;
    return true;
}

bool reader_number(struct reader *reader, const char *stops, uint64_t most, uint64_t *number)
{
    char word[SCRIPT_WORD], *end;
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    errno = 0;
    *number = strtoull(word, &end, word[0] == '0' && (word[1] | 32) == 'x' ? 16 : 10);
    if (*word < '0' || *word > '9' || *end || errno || *number > most)
        return reader_refuse(reader, begin, "\"%s\" is no number from 0 to %llu.", word, (unsigned long long)most);
    return true;
}

bool reader_decimal(const char *word, double *number, const char **rest)
{
    double whole = 0, parts = 1;
    const char *at = word;
    bool point = false, any = false;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        point = point || *at == '.';
        if (*at == '.')
            continue;
        whole = whole * 10 + (*at - '0');
        parts *= point ? 10 : 1;
        any = true;
    }
    *number = whole / parts;
    *rest = at;
    return any;
}

bool reader_duration(const char *word, double plain, nanos *time)
{
    static const struct {
        const char *name;
        double length;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    const char *rest;
    double number, length = 0;
    bool good = reader_decimal(word, &number, &rest);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        length = !strcmp(rest, units[i].name) ? units[i].length : length;
    length = !*rest ? plain : length;
    if (!good || length == 0 || number * length > (double)longest)
        return false;
    *time = (nanos)(number * length);
    return true;
}

bool reader_time(struct reader *reader, const char *stops, double plain, nanos *time)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    return reader_word(reader, stops, word) &&
           (reader_duration(word, plain, time) ||
            reader_refuse(reader, begin, "\"%s\" is no time up to 1000s with its unit (ns, us, ms or s).", word));
}

bool reader_share(struct reader *reader, const char *stops, uint64_t *share)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double percent;
    if (!reader_word(reader, stops, word))
        return false;
    if (!reader_decimal(word, &percent, &rest) || strcmp(rest, "%") != 0 || percent > 100)
        return reader_refuse(reader, begin, "\"%s\" is no percentage from 0%% to 100%%.", word);
    *share = (uint64_t)(percent / 100 * (double)SCRIPT_ALWAYS);
    return true;
}

bool reader_begin_rule(struct reader *reader, struct script *script)
{
    if (script->count == SCRIPT_RULES_MOST)
        return reader_refuse(reader, reader->at, "A script has at most %d rules.", SCRIPT_RULES_MOST);
    reader->what = ~0u;
    reader->rule = &script->rules[script->count++];
    *reader->rule = (struct script_rule){.line = reader->line,
                                         .place = script->count,
                                         .opcode = -1,
                                         .end.vendor = REASON_SCRIPTED,
                                         .first = 1,
                                         .last = UINT64_MAX,
                                         .step = 1,
                                         .most = UINT64_MAX,
                                         .draw.share = SCRIPT_ALWAYS};
    return true;
}
