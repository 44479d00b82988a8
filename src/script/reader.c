#include "script/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
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

const char *reader_meant(const struct suggestion *suggestion, char text[READER_MEANT])
{
    *text = 0;
    if (suggestion->meant)
        snprintf(text, READER_MEANT, " Did you mean \"%s\"?", suggestion->meant);
    return text;
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
    char word[SCRIPT_WORD];
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    if (!*word)
        return reader_refuse(reader, begin, "A number is missing.");
    if (!text_number_or_hex(word, 0, most, number))
        return reader_refuse(reader, begin, "\"%s\" is not a number from 0 to %llu.", word, (unsigned long long)most);
    return true;
}

bool reader_duration(const char *word, double plain, nanos *time)
{
    const struct text_unit units[] = {
        {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {plain > 0 ? "" : NULL, plain}, {NULL, 0}};
    double length;
    bool good = text_quantity(word, units, (double)longest, &length);
    *time = good ? (nanos)length : *time;
    return good;
}

const char *reader_join(struct reader *reader, const char *stops, const char *word, char joined[READER_JOINED])
{
    char next[SCRIPT_WORD];
    snprintf(joined, READER_JOINED, "%.20s%.8s", word, reader_word(reader, stops, next) ? next : "");
    return joined;
}

static const char *meant_duration(struct reader *reader, const char *stops, const char *word, char text[READER_MEANT])
{
    char joined[READER_JOINED];
    nanos time;
    struct suggestion suggestion = {0};
    suggestion.meant = reader_duration(reader_join(reader, stops, word, joined), 0, &time) ? joined : NULL;
    return reader_meant(&suggestion, text);
}

bool reader_time(struct reader *reader, const char *stops, double plain, nanos *time)
{
    char word[SCRIPT_WORD], meant[READER_MEANT];
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    if (!*word)
        return reader_refuse(reader, begin, "A time is missing, such as 5ms.");
    return reader_duration(word, plain, time) ||
           reader_refuse(reader, begin, "\"%s\" is not a time up to 1000s with its unit (ns, us, ms or s).%s", word,
                         meant_duration(reader, stops, word, meant));
}

bool reader_share(struct reader *reader, const char *stops, uint64_t *share)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double percent;
    if (!reader_word(reader, stops, word))
        return false;
    if (!text_decimal(word, &percent, &rest) || strcmp(rest, "%") != 0 || percent > 100)
        return reader_refuse(reader, begin, "\"%s\" is not a percentage from 0%% to 100%%.", word);
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
                                         .turns.first = 1,
                                         .turns.last = UINT64_MAX,
                                         .turns.step = 1,
                                         .turns.most = UINT64_MAX,
                                         .draw.share = SCRIPT_ALWAYS};
    return true;
}
