#include "script/values.h"

#include <fnmatch.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "script/field.h"
#include "script/names.h"
#include "script/raised.h"
#include "wire/cm/cm.h"
#include "wire/op.h"

/* --- numbers and texts */

/* Readers of four forms: one expression, a text that may not be empty, a number that becomes a member of this type, and
 * such a number with a member that becomes true. */
#define READS(word, expression)                                                                                        \
    static bool read_##word(struct reader *reader, const char *stops)                                                  \
    {                                                                                                                  \
        return expression;                                                                                             \
    }
#define TEXT(word, member, what)                                                                                       \
    static bool read_##word(struct reader *reader, const char *stops)                                                  \
    {                                                                                                                  \
        const char *begin = reader->at;                                                                                \
        if (!reader_word(reader, stops, reader->rule->member))                                                         \
            return false;                                                                                              \
        return *reader->rule->member || reader_refuse(reader, begin, "The name " what " is missing.");                 \
    }
#define NUMBER(word, type, most, member)                                                                               \
    static bool read_##word(struct reader *reader, const char *stops)                                                  \
    {                                                                                                                  \
        uint64_t number = 0;                                                                                           \
        bool read = reader_number(reader, stops, most, &number);                                                       \
        reader->rule->member = (type)number;                                                                           \
        return read;                                                                                                   \
    }
#define WANTED_NUMBER(word, type, most, member, wanted)                                                                \
    NUMBER(word##_number, type, most, member)                                                                          \
    READS(word, read_##word##_number(reader, stops) && (reader->rule->wanted = true))

static bool read_count(struct reader *reader, const char *stops, uint64_t *count)
{
    const char *begin = reader->at;
    if (!reader_number(reader, stops, UINT64_MAX / 2, count))
        return false;
    return *count || reader_refuse(reader, begin, "Calls are counted from 1 on.");
}

static bool read_nth(struct reader *reader, const char *stops)
{
    if (!read_count(reader, stops, &reader->rule->turns.first))
        return false;
    reader->rule->turns.last = reader->rule->turns.first;
    return true;
}

READS(from, read_count(reader, stops, &reader->rule->turns.first))
READS(to, read_count(reader, stops, &reader->rule->turns.last))
READS(every, read_count(reader, stops, &reader->rule->turns.step))
READS(chance, reader_share(reader, stops, &reader->rule->draw.share))
READS(after, reader_time(reader, stops, 0, &reader->rule->after))
READS(stop, reader_time(reader, stops, 0, &reader->rule->process.stop))
READS(freeze, reader_time(reader, stops, 0, &reader->rule->process.freeze))
READS(data, reader_word(reader, stops, reader->rule->rejection.data))
READS(delay, reader_time(reader, stops, stops == reader_short_stops ? 1e3 : 0, &reader->rule->delay))
TEXT(program, program, "of a program")
TEXT(device, on.device, "of a device")
TEXT(peer, peer, "or address of a peer")
TEXT(places, caller.counts, "of a file")
NUMBER(place, uint32_t, UINT32_MAX, caller.place)
NUMBER(peer_qp, uint32_t, UINT32_MAX, peer_qp)
WANTED_NUMBER(wr_id, uint64_t, UINT64_MAX, wr_id.number, wr_id.wanted)
WANTED_NUMBER(index, uint64_t, UINT32_MAX, index.number, index.wanted)
WANTED_NUMBER(reject, uint16_t, UINT16_MAX, rejection.reason, rejection.wanted)
WANTED_NUMBER(cut, uint32_t, UINT32_MAX, packet.length, packet.cut)

static bool read_once(struct reader *reader, const char *stops)
{
    reader->rule->turns.most = 1;
    return true;
}

static const char *meant_among(enum names names, const char *word, char text[READER_MEANT])
{
    struct suggestion suggestion = suggest_begin(names_after_prefix(names, word));
    uint64_t number;
    names_suggest(names, &suggestion);
    if (text_number(word, 0, INT16_MAX, &number))
        suggestion.meant = names_name(names, (int)number);
    return reader_meant(&suggestion, text);
}

static bool refuse_name(struct reader *reader, const char *at, enum names names, const char *word)
{
    char meant[READER_MEANT];
    return reader_refuse(reader, at, "\"%s\" is no %s that scripts know, such as %s.%s", word, names_kind(names),
                         names_example(names), meant_among(names, word, meant));
}

static bool read_on(struct reader *reader, const char *stops)
{
    uint64_t number;
    int none;
    const char *begin = reader->at;
    if (!reader_word(reader, stops, reader->rule->on.kind))
        return false;
    if (!*reader->rule->on.kind)
        return reader_refuse(reader, begin, "A kind of object and its number are missing, such as qp 0x12.");
    if (!names_number(NAMES_OBJECTS, reader->rule->on.kind, &none))
        return refuse_name(reader, begin, NAMES_OBJECTS, reader->rule->on.kind);
    if (!reader_number(reader, stops, UINT32_MAX, &number))
        return false;
    reader->rule->on.number = (uint32_t)number;
    return true;
}

/* --- names */

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool read_name(struct reader *reader, const char *stops, enum names names, int *number)
{
    char word[SCRIPT_WORD];
    reader_skip(reader);
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    return names_number(names, word, number) || refuse_name(reader, begin, names, word);
}

/* "SEND_ONLY" of "RC SEND_ONLY" */
static const char *operation_of(const char *operation)
{
    const char *blank = strchr(operation, ' ');
    return blank ? blank + 1 : operation;
}

static bool names_packet(const char *pattern, struct suggestion *suggestion)
{
    bool any = false;
    for (unsigned i = 0; i < 256; i++) {
        const char *name = op_table[i].name;
        if (!name)
            continue;
        any = any || !fnmatch(pattern, name, 0) || !fnmatch(pattern, operation_of(name), 0);
        suggest_try(suggestion, operation_of(name));
    }
    return any;
}

static bool names_message(const char *pattern, struct suggestion *suggestion)
{
    bool any = false;
    for (unsigned attribute = CM_REQ; attribute <= CM_APR; attribute++) {
        any = any || !fnmatch(pattern, cm_name((enum cm_attribute)attribute), 0);
        suggest_try(suggestion, cm_name((enum cm_attribute)attribute));
    }
    return any;
}

/* Reads a pattern for operations, which must match some: "SEND" matches no packet, "SEND*" does. */
static bool read_operation(struct reader *reader, const char *stops)
{
    char *word = reader->rule->operation, wider[SCRIPT_WORD + 1], meant[READER_MEANT];
    const char *begin = reader->at;
    bool packet = reader->rule->calls[SCRIPT_packet];
    bool (*names)(const char *, struct suggestion *) = packet ? names_packet : names_message;
    if (!reader_word(reader, stops, word))
        return false;
    struct suggestion suggestion = suggest_begin(word);
    if (names(word, &suggestion))
        return true;
    snprintf(wider, sizeof wider, "%s*", word);
    if (*word && names(wider, &(struct suggestion){.name = wider}))
        suggestion.meant = wider;
    return reader_refuse(reader, begin, "\"%s\" is not %s.%s", word,
                         packet ? "an operation of a packet, such as SEND_ONLY"
                                : "a message of the connection manager, such as REQ",
                         reader_meant(&suggestion, meant));
}

static bool read_opcode(struct reader *reader, const char *stops)
{
    const bool *has = reader->rule->calls;
    if (has[SCRIPT_packet] || has[SCRIPT_message])
        return read_operation(reader, stops);
    return read_name(reader, stops, NAMES_OPCODES, &reader->rule->opcode);
}

READS(signal, read_name(reader, stops, NAMES_SIGNALS, &reader->rule->signal))
READS(error, read_name(reader, stops, NAMES_ERRORS, &reader->rule->error))
NUMBER(vendor, uint16_t, UINT16_MAX, end.vendor)

static bool read_complete(struct reader *reader, const char *stops)
{
    int status = 0;
    reader->rule->end.wanted = true;
    bool read = read_name(reader, stops, NAMES_STATUSES, &status);
    reader->rule->end.status = (uint8_t)status;
    return read;
}

#define FATE(NAME, word)                                                                                               \
    static bool read_##word(struct reader *reader, const char *stops)                                                  \
    {                                                                                                                  \
        reader->rule->fates |= SCRIPT_##NAME;                                                                          \
        return true;                                                                                                   \
    }
#include "script/words.def"

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
    char word[SCRIPT_WORD], meant[READER_MEANT];
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    struct suggestion suggestion = suggest_begin(word);
    for (size_t i = 0; i < COUNT(all_raised); i++) {
        suggest_try(&suggestion, all_raised[i].name);
        if (!strcmp(all_raised[i].name, word))
            reader->rule->raised = &all_raised[i];
    }
    return reader->rule->raised ||
           reader_refuse(reader, begin, "\"%s\" is not an event that can be raised, such as port-down.%s", word,
                         reader_meant(&suggestion, meant));
}

static bool refuse_field(struct reader *reader, const char *at, const char *word)
{
    char meant[READER_MEANT], name[SCRIPT_WORD];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (strchr(word, '=') && field_find(reader->rule->calls, name))
        return reader_refuse(reader, at, "Write a blank between \"%s\" and its value.", name);
    struct suggestion suggestion = suggest_begin(word);
    field_suggest(reader->rule->calls, &suggestion);
    return reader_refuse(reader, at, "\"%s\" is not a field that can be set there.%s", word,
                         reader_meant(&suggestion, meant));
}

static bool refuse_value(struct reader *reader, const char *at, const char *value, const char *word)
{
    char meant[READER_MEANT];
    struct suggestion suggestion = suggest_begin(value);
    field_suggest_value(word, &suggestion);
    return reader_refuse(reader, at, "\"%s\" is not a value of %s.%s", value, word, reader_meant(&suggestion, meant));
}

static bool read_set(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD], value[SCRIPT_WORD];
    struct script_rule *rule = reader->rule;
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    if (rule->changes.count == SCRIPT_CHANGES_MOST)
        return reader_refuse(reader, begin, "A rule sets at most %d fields.", SCRIPT_CHANGES_MOST);
    const struct script_field *field = field_find(rule->calls, word);
    if (!field)
        return refuse_field(reader, begin, word);
    reader_skip(reader);
    begin = reader->at;
    if (!reader_word(reader, stops, value))
        return false;
    return field_read(field, value, &rule->changes.list[rule->changes.count++]) ||
           refuse_value(reader, begin, value, word);
}

static bool read_hide(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    bool *calls = reader->rule->calls, listed = calls[SCRIPT_ibv_get_device_list];
    if (!reader_word(reader, stops, reader->rule->hidden))
        return false;
    memset(calls, 0, sizeof reader->rule->calls);
    calls[SCRIPT_ibv_get_device_list] = listed;
    return (listed && *reader->rule->hidden) ||
           reader_refuse(reader, begin, "Only ibv_get_device_list can hide a device, by its name.");
}

static bool read_forge(struct reader *reader, const char *stops)
{
    int kind = 0;
    bool read = read_name(reader, stops, NAMES_FORGED, &kind);
    reader->rule->packet.forged = (uint8_t)kind;
    return read;
}

/* Reads a rate such as "100Mbit" or "1.5Gbit", in the units of tc(8). */
static bool find_rate(const char *word, double *rate)
{
    static const struct text_unit units[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0}};
    return text_quantity(word, units, 1e15, rate) && *rate >= 1;
}

static bool read_bandwidth(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD], meant[READER_MEANT], joined[READER_JOINED];
    const char *begin = reader->at;
    struct suggestion suggestion = {0};
    double rate;
    if (!reader_word(reader, stops, word))
        return false;
    if (find_rate(word, &rate)) {
        reader->rule->packet.bandwidth = (uint64_t)rate;
        return true;
    }
    suggestion.meant = find_rate(reader_join(reader, stops, word, joined), &rate) ? joined : NULL;
    return reader_refuse(reader, begin, "\"%s\" is not a rate from 1bit on, in bit, kbit, Mbit or Gbit.%s", word,
                         reader_meant(&suggestion, meant));
}

/* --- which calls, as in strace: N, N..M, N+, N+STEP */

static bool read_end(struct reader *reader, const char **word, uint64_t *number)
{
    return text_digits(*word, number, word) && *number && *number <= UINT64_MAX / 2;
}

static bool read_when(struct reader *reader, const char *stops)
{
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest = word;
    struct script_rule *rule = reader->rule;
    if (!reader_word(reader, stops, word))
        return false;
    bool good = read_end(reader, &rest, &rule->turns.first);
    rule->turns.last = rule->turns.first;
    if (good && !strncmp(rest, "..", 2)) {
        rest += 2;
        good = read_end(reader, &rest, &rule->turns.last);
    } else if (good && *rest == '+') {
        rule->turns.last = UINT64_MAX;
    }
    if (good && *rest == '+') {
        rest++;
        good = !*rest || read_end(reader, &rest, &rule->turns.step);
    }
    return (good && !*rest) || reader_refuse(reader, begin, "\"%s\" is not one of N, N..M, N+ and N+STEP.", word);
}

/* --- the words */

enum {
#define KIND(NAME, name) NAME = SCRIPT_KIND_##NAME,
#include "script/words.def"
    ANYTHING = SCRIPT_KIND_ANYTHING,
};

static const struct value_word conditions[] = {
#define CONDITION(word, short_word, reader, form, meaning) {word, short_word, read_##reader, ~0u},
#include "script/words.def"
};

static const struct value_word actions[] = {
#define ACTION(word, short_word, reader, form, what, meaning) {word, short_word, read_##reader, what},
#include "script/words.def"
};

static const struct value_word *find_word(const struct value_word *list, size_t count, const char *name, bool is_short)
{
    for (size_t i = 0; i < count && *name; i++)
        if (!strcmp(is_short ? list[i].short_word : list[i].word, name))
            return &list[i];
    return NULL;
}

const struct value_word *value_condition(const char *name, bool is_short)
{
    return find_word(conditions, COUNT(conditions), name, is_short);
}

const struct value_word *value_action(const char *name, bool is_short)
{
    return find_word(actions, COUNT(actions), name, is_short);
}

void value_suggest(struct suggestion *suggestion, bool of_actions, bool is_short)
{
    const struct value_word *list = of_actions ? actions : conditions;
    size_t count = of_actions ? COUNT(actions) : COUNT(conditions);
    for (size_t i = 0; i < count; i++)
        suggest_try(suggestion, is_short ? list[i].short_word : list[i].word);
}
