#include "script/parse.h"

#include <errno.h>
#include <fnmatch.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"
#include "script/raised.h"
#include "wire/cm.h"
#include "wire/op.h"

static const nanos longest = 1000 * NANOS_SECOND;

/* A place in the text, and the rule that is being read. */
struct reader {
    const char *at, *line_begin;
    unsigned line;
    struct script_rule *rule;
    unsigned what; /* enum script_kind: to what all its actions can be done */
    struct script_fault *fault;
};

/* The first fault is kept: what follows from it helps nobody. Answers false. */
static bool refuse(struct reader *, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool refuse(struct reader *reader, const char *at, const char *format, ...)
{
    va_list arguments;
    reader->fault->line = reader->line;
    reader->fault->column = (unsigned)(at - reader->line_begin) + 1;
    va_start(arguments, format);
    vsnprintf(reader->fault->why, sizeof reader->fault->why, format, arguments);
    va_end(arguments);
    return false;
}

/* --- words */

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

static void skip_blanks(struct reader *reader)
{
    while (is_blank(*reader->at))
        reader->at++;
}

static bool is_at_end(const struct reader *reader)
{
    return !*reader->at || *reader->at == '\n' || *reader->at == ';' || *reader->at == '#';
}

/* Copies the word that begins here, up to a blank or one of `stops`, or what stands in quotes. Empty where there is
 * none. */
static bool read_word(struct reader *reader, const char *stops, char word[SCRIPT_WORD])
{
    skip_blanks(reader);
    const char *begin = reader->at;
    bool quoted = *begin == '"';
    size_t length = quoted ? strcspn(begin + 1, "\"\n") : 0;
    if (quoted && begin[1 + length] != '"')
        return refuse(reader, begin, "The quotation does not end in its line.");
    while (!quoted && begin[length] && begin[length] != '\n' && !is_blank(begin[length]) &&
           !strchr(stops, begin[length]))
        length++;
    if (length >= SCRIPT_WORD)
        return refuse(reader, begin, "The word has %zu letters, more than %d.", length, SCRIPT_WORD - 1);
    memcpy(word, begin + quoted, length);
    word[length] = 0;
    reader->at = begin + length + 2 * quoted;
    return true;
}

static bool take(struct reader *reader, char letter)
{
    skip_blanks(reader);
    if (*reader->at != letter)
        return false;
    reader->at++;
    return true;
}

/* --- values */

static const char long_stops[] = ",:;#", short_stops[] = ":;#";

static bool read_number(struct reader *reader, const char *stops, uint64_t most, uint64_t *number)
{
    char word[SCRIPT_WORD], *end;
    skip_blanks(reader);
    const char *begin = reader->at;
    if (!read_word(reader, stops, word))
        return false;
    errno = 0;
    *number = strtoull(word, &end, 0);
    if (*word < '0' || *word > '9' || *end || errno || *number > most)
        return refuse(reader, begin, "\"%s\" is no number from 0 to %llu.", word, (unsigned long long)most);
    return true;
}

static bool read_count(struct reader *reader, const char *stops, uint64_t *count)
{
    const char *begin = reader->at;
    if (!read_number(reader, stops, UINT64_MAX / 2, count))
        return false;
    return *count || refuse(reader, begin, "Calls are counted from 1 on.");
}

static bool read_nth(struct reader *reader, const char *stops)
{
    if (!read_count(reader, stops, &reader->rule->first))
        return false;
    reader->rule->last = reader->rule->first;
    return true;
}

static bool read_from(struct reader *reader, const char *stops)
{
    return read_count(reader, stops, &reader->rule->first);
}

static bool read_to(struct reader *reader, const char *stops)
{
    return read_count(reader, stops, &reader->rule->last);
}

static bool read_every(struct reader *reader, const char *stops)
{
    return read_count(reader, stops, &reader->rule->step);
}

static bool read_once(struct reader *reader, const char *stops)
{
    reader->rule->most = 1;
    return true;
}

/* A decimal number, with a fraction; `rest` is behind it. */
static bool read_decimal(const char *word, double *number, const char **rest)
{
    char *end;
    size_t digits = strspn(word, "0123456789.");
    *number = digits ? strtod(word, &end) : 0;
    *rest = word + digits;
    return digits && end == word + digits;
}

static bool read_chance(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double percent;
    if (!read_word(reader, stops, word))
        return false;
    if (!read_decimal(word, &percent, &rest) || strcmp(rest, "%") || percent > 100)
        return refuse(reader, begin, "\"%s\" is no percentage from 0%% to 100%%.", word);
    reader->rule->share = (uint64_t)(percent / 100 * (double)SCRIPT_ALWAYS);
    return true;
}

/* `plain`: the length of the unit where none is written; 0: one must be. */
static bool read_time(struct reader *reader, const char *stops, double plain, nanos *time)
{
    static const struct {
        const char *name;
        double length;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double number, length = 0;
    if (!read_word(reader, stops, word))
        return false;
    bool good = read_decimal(word, &number, &rest);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        length = !strcmp(rest, units[i].name) ? units[i].length : length;
    length = !*rest ? plain : length;
    if (!good || length == 0 || number * length > (double)longest)
        return refuse(reader, begin, "\"%s\" is no time up to 1000s with its unit (ns, us, ms or s).", word);
    *time = (nanos)(number * length);
    return true;
}

static bool read_after(struct reader *reader, const char *stops)
{
    return read_time(reader, stops, 0, &reader->rule->after);
}

static bool read_delay(struct reader *reader, const char *stops)
{
    return read_time(reader, stops, stops == short_stops ? 1e3 : 0, &reader->rule->delay);
}

static bool read_program(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    if (!read_word(reader, stops, reader->rule->program))
        return false;
    return *reader->rule->program || refuse(reader, begin, "The name of a program is missing.");
}

static bool read_peer(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    if (!read_word(reader, stops, reader->rule->peer))
        return false;
    return *reader->rule->peer || refuse(reader, begin, "The name or address of a peer is missing.");
}

static bool read_peer_qp(struct reader *reader, const char *stops)
{
    uint64_t number = 0;
    bool read = read_number(reader, stops, UINT32_MAX, &number);
    reader->rule->peer_qp = (uint32_t)number;
    return read;
}

static bool read_wr_id(struct reader *reader, const char *stops)
{
    reader->rule->has_wr_id = true;
    return read_number(reader, stops, UINT64_MAX, &reader->rule->wr_id);
}

static bool read_on(struct reader *reader, const char *stops)
{
    uint64_t number;
    const char *begin = reader->at;
    if (!read_word(reader, stops, reader->rule->kind))
        return false;
    if (!*reader->rule->kind)
        return refuse(reader, begin, "A kind of object and its number are missing, such as qp 0x12.");
    if (!read_number(reader, stops, UINT32_MAX, &number))
        return false;
    reader->rule->number = (uint32_t)number;
    return true;
}

/* --- names */

struct named {
    const char *name;
    int number;
};

static const struct named opcodes[] = {
#define OPCODE(name) {#name, IBV_WR_##name},
#include "script/words.def"
};

static const struct named signals[] = {
#define SIGNAL(name) {#name, SIG##name},
#include "script/words.def"
};

static const struct named errors[] = {
#define ERROR(name) {#name, name},
#include "script/words.def"
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool read_name(struct reader *reader, const char *stops, const struct named *list, size_t count,
                      const char *prefix, const char *kind, int *number)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!read_word(reader, stops, word))
        return false;
    const char *name = strncmp(word, prefix, strlen(prefix)) ? word : word + strlen(prefix);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].name, name)) {
            *number = list[i].number;
            return true;
        }
    return refuse(reader, begin, "\"%s\" is no %s that scripts know, such as %s.", word, kind, list[0].name);
}

static bool names_packet(const char *pattern)
{
    for (unsigned i = 0; i < 256; i++) {
        const char *name = op_table[i].name, *behind = name ? strchr(name, ' ') : NULL;
        if (name && (!fnmatch(pattern, name, 0) || (behind && !fnmatch(pattern, behind + 1, 0))))
            return true;
    }
    return false;
}

static bool names_message(const char *pattern)
{
    for (unsigned attribute = CM_REQ; attribute <= CM_APR; attribute++)
        if (!fnmatch(pattern, cm_name((enum cm_attribute)attribute), 0))
            return true;
    return false;
}

static bool read_operation(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    char *word = reader->rule->operation;
    bool packet = reader->rule->calls[SCRIPT_packet];
    if (!read_word(reader, stops, word))
        return false;
    return (packet ? names_packet(word) : names_message(word)) ||
           refuse(reader, begin, "\"%s\" is no %s that there is.", word,
                  packet ? "operation of a packet" : "message of the connection manager");
}

static bool read_opcode(struct reader *reader, const char *stops)
{
    const bool *has = reader->rule->calls;
    if (has[SCRIPT_packet] || has[SCRIPT_message])
        return read_operation(reader, stops);
    return read_name(reader, stops, opcodes, COUNT(opcodes), "IBV_WR_", "opcode", &reader->rule->opcode);
}

static bool read_signal(struct reader *reader, const char *stops)
{
    return read_name(reader, stops, signals, COUNT(signals), "SIG", "signal", &reader->rule->signal);
}

static bool read_error(struct reader *reader, const char *stops)
{
    return read_name(reader, stops, errors, COUNT(errors), "", "errno", &reader->rule->error);
}

static const struct named statuses[] = {
#define STATUS(name) {#name, IBV_WC_##name},
#include "script/words.def"
};

static bool read_complete(struct reader *reader, const char *stops)
{
    int status = 0;
    reader->rule->end.wanted = true;
    bool read = read_name(reader, stops, statuses, COUNT(statuses), "IBV_WC_", "status", &status);
    reader->rule->end.status = (uint8_t)status;
    return read;
}

static bool read_vendor(struct reader *reader, const char *stops)
{
    uint64_t number = 0;
    bool read = read_number(reader, stops, UINT16_MAX, &number);
    reader->rule->end.vendor = (uint16_t)number;
    return read;
}

static bool read_drop(struct reader *reader, const char *stops)
{
    return reader->rule->drop = true;
}

static bool read_duplicate(struct reader *reader, const char *stops)
{
    return reader->rule->duplicate = true;
}

static bool read_reorder(struct reader *reader, const char *stops)
{
    return reader->rule->reorder = true;
}

static bool read_corrupt(struct reader *reader, const char *stops)
{
    return reader->rule->corrupt = true;
}

static const struct script_raised all_raised[] = {
#define RAISED(word, type, of) {word, IBV_EVENT_##type, of},
#include "script/words.def"
};

const struct script_raised *script_raised(size_t n)
{
    return n < COUNT(all_raised) ? &all_raised[n] : NULL;
}

static bool read_raise(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!read_word(reader, stops, word))
        return false;
    for (size_t i = 0; i < COUNT(all_raised); i++)
        if (!strcmp(all_raised[i].name, word))
            reader->rule->raised = &all_raised[i];
    return reader->rule->raised ||
           refuse(reader, begin, "\"%s\" is no event that can be raised, such as port-down.", word);
}

static bool read_reject(struct reader *reader, const char *stops)
{
    uint64_t reason = 0;
    reader->rule->rejection.wanted = true;
    bool read = read_number(reader, stops, UINT16_MAX, &reason);
    reader->rule->rejection.reason = (uint16_t)reason;
    return read;
}

static bool read_data(struct reader *reader, const char *stops)
{
    return read_word(reader, stops, reader->rule->rejection.data);
}

const char *script_status_name(int number)
{
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].number == number)
            return statuses[i].name;
    return NULL;
}

const char *script_error_name(int number)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (errors[i].number == number)
            return errors[i].name;
    return NULL;
}

/* --- which calls, as in strace: N, N..M, N+, N+STEP */

static bool read_end(struct reader *reader, const char **word, uint64_t *number)
{
    char *end;
    if (**word < '0' || **word > '9')
        return false;
    *number = strtoull(*word, &end, 10);
    *word = end;
    return *number && *number <= UINT64_MAX / 2;
}

static bool read_when(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest = word;
    struct script_rule *rule = reader->rule;
    if (!read_word(reader, stops, word))
        return false;
    bool good = read_end(reader, &rest, &rule->first);
    rule->last = rule->first;
    if (good && !strncmp(rest, "..", 2)) {
        rest += 2;
        good = read_end(reader, &rest, &rule->last);
    } else if (good && *rest == '+') {
        rule->last = UINT64_MAX;
    }
    if (good && *rest == '+') {
        rest++;
        good = !*rest || read_end(reader, &rest, &rule->step);
    }
    return (good && !*rest) || refuse(reader, begin, "\"%s\" is none of N, N..M, N+ and N+STEP.", word);
}

/* --- the two forms */

struct word {
    const char *word, *short_word;
    bool (*read)(struct reader *, const char *stops);
    unsigned what; /* enum script_kind */
};

enum {
    CALL = SCRIPT_KIND_CALL,
    WORK = SCRIPT_KIND_WORK,
    RECEIVE = SCRIPT_KIND_RECEIVE,
    COMPLETION = SCRIPT_KIND_COMPLETION,
    EVENT = SCRIPT_KIND_EVENT,
    PACKET = SCRIPT_KIND_PACKET,
    MESSAGE = SCRIPT_KIND_MESSAGE,
    REQUEST = SCRIPT_KIND_REQUEST,
    ANYTHING = SCRIPT_KIND_ANYTHING,
};

static const struct word conditions[] = {
#define CONDITION(word, short_word, reader, form, meaning) {word, short_word, read_##reader, ~0u},
#include "script/words.def"
};

static const struct word actions[] = {
#define ACTION(word, short_word, reader, form, what, meaning) {word, short_word, read_##reader, what},
#include "script/words.def"
};

static const struct word *find_word(const struct word *list, size_t count, const char *name, bool is_short)
{
    for (size_t i = 0; i < count && *name; i++)
        if (!strcmp(is_short ? list[i].short_word : list[i].word, name))
            return &list[i];
    return NULL;
}

static bool can_fail(enum script_call call)
{
    return script_names[call].answer < SCRIPT_ANSWER_nothing;
}

/* A pattern stands for all calls of such a name, and, where the rule refuses, for those of them that can fail. */
static bool read_calls(struct reader *reader, const char *pattern, const char *at)
{
    bool any = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++)
        if (call < SCRIPT_CALLS ? !fnmatch(pattern, script_title(call), 0) : !strcmp(pattern, script_title(call)))
            any = reader->rule->calls[call] = true;
    return any ||
           refuse(reader, at, "No call of libibverbs or librdmacm that softverbs sees is named \"%s\".", pattern);
}

static bool read_call_list(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    do {
        skip_blanks(reader);
        const char *begin = reader->at;
        if (!read_word(reader, stops, word))
            return false;
        if (!*word)
            return refuse(reader, begin, "The name of a call is missing.");
        if (!read_calls(reader, word, begin))
            return false;
    } while (stops != long_stops && take(reader, ','));
    return true;
}

static bool check_calls(struct reader *reader, const char *at)
{
    bool any = false, fits = false;
    for (enum script_call call = 0; call < SCRIPT_EVENTS; call++) {
        bool *has = &reader->rule->calls[call];
        fits = fits || (*has && script_names[call].kind & reader->what);
        *has = *has && script_names[call].kind & reader->what && (!reader->rule->error || can_fail(call));
        any = any || *has;
    }
    if (!fits)
        return refuse(reader, at, "Not all actions of the rule can be done to that.");
    return any || refuse(reader, at, "The call can't fail: it has no way to report an error.");
}

static bool read_item(struct reader *reader, const struct word *list, size_t count, const char *what)
{
    char name[SCRIPT_WORD];
    skip_blanks(reader);
    const char *begin = reader->at;
    if (!read_word(reader, long_stops, name))
        return false;
    const struct word *word = find_word(list, count, name, false);
    if (!word)
        return refuse(reader, begin, "\"%s\" is no %s.", name, what);
    reader->what &= word->what;
    skip_blanks(reader);
    return word->read(reader, long_stops);
}

/* Behind "when". */
static bool read_long(struct reader *reader)
{
    skip_blanks(reader);
    const char *begin = reader->at;
    if (!read_call_list(reader, long_stops))
        return false;
    while (take(reader, ','))
        if (!read_item(reader, conditions, COUNT(conditions), "condition"))
            return false;
    if (!take(reader, ':'))
        return refuse(reader, reader->at, "A comma and a condition, or a colon and an action, must stand here.");
    do
        if (!read_item(reader, actions, COUNT(actions), "action"))
            return false;
    while (take(reader, ','));
    return check_calls(reader, begin);
}

static bool read_short_item(struct reader *reader)
{
    char name[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!read_word(reader, "=:;#", name))
        return false;
    const struct word *word = find_word(actions, COUNT(actions), name, true);
    if (!word)
        word = find_word(conditions, COUNT(conditions), name, true);
    if (!word)
        return refuse(reader, begin, "\"%s\" is none of error, delay_enter, signal, when and other actions.", name);
    reader->what &= word->what;
    if (!take(reader, '='))
        return refuse(reader, reader->at, "\"%s\" needs a value: %s=...", name, name);
    return word->read(reader, short_stops);
}

static bool has_action(const struct script_rule *rule)
{
    return rule->error || rule->delay || rule->signal || rule->end.wanted || rule->drop || rule->duplicate ||
           rule->reorder || rule->corrupt || rule->rejection.wanted || rule->raised;
}

static bool read_short(struct reader *reader)
{
    const char *begin = reader->at;
    if (!read_call_list(reader, ",:;#"))
        return false;
    while (take(reader, ':'))
        if (!read_short_item(reader))
            return false;
    return check_calls(reader, begin);
}

static void keep_text(struct script_rule *rule, const char *begin, const char *end)
{
    size_t length = (size_t)(end - begin), most = sizeof rule->text - 1;
    length = length < most ? length : most;
    memcpy(rule->text, begin, length);
    rule->text[length] = 0;
}

static bool read_rule(struct reader *reader)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!read_word(reader, long_stops, word))
        return false;
    bool is_long = !strcmp(word, "when");
    if (!is_long)
        reader->at = begin;
    if (!(is_long ? read_long(reader) : read_short(reader)))
        return false;
    keep_text(reader->rule, begin, reader->at);
    skip_blanks(reader);
    if (!is_at_end(reader))
        return refuse(reader, reader->at, "The rule has ended here, and more follows.");
    return has_action(reader->rule) || refuse(reader, begin, "The rule has no action, such as error or delay.");
}

/* --- lines */

static void next_line(struct reader *reader)
{
    if (*reader->at == '#')
        reader->at += strcspn(reader->at, "\n");
    if (*reader->at == ';') {
        reader->at++;
    } else if (*reader->at == '\n') {
        reader->line_begin = ++reader->at;
        reader->line++;
    }
}

static bool begin_rule(struct reader *reader, struct script *script)
{
    if (script->count == SCRIPT_RULES_MOST)
        return refuse(reader, reader->at, "A script has at most %d rules.", SCRIPT_RULES_MOST);
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
                                         .share = SCRIPT_ALWAYS};
    return true;
}

bool script_parse(const char *text, struct script *script, struct script_fault *fault)
{
    struct reader reader = {.at = text, .line_begin = text, .line = 1, .fault = fault};
    for (; *reader.at; next_line(&reader)) {
        skip_blanks(&reader);
        if (!is_at_end(&reader) && !(begin_rule(&reader, script) && read_rule(&reader)))
            return false;
    }
    return true;
}
