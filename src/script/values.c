#include "script/values.h"

#include <fnmatch.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "script/field.h"
#include "script/parse.h"
#include "script/raised.h"
#include "wire/cm.h"
#include "wire/op.h"

/* --- numbers and texts */

static bool read_count(struct reader *reader, const char *stops, uint64_t *count)
{
    const char *begin = reader->at;
    if (!reader_number(reader, stops, UINT64_MAX / 2, count))
        return false;
    return *count || reader_refuse(reader, begin, "Calls are counted from 1 on.");
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

static bool read_chance(struct reader *reader, const char *stops)
{
    return reader_share(reader, stops, &reader->rule->draw.share);
}

static bool read_after(struct reader *reader, const char *stops)
{
    return reader_time(reader, stops, 0, &reader->rule->after);
}

static bool read_delay(struct reader *reader, const char *stops)
{
    return reader_time(reader, stops, stops == reader_short_stops ? 1e3 : 0, &reader->rule->delay);
}

static bool read_program(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    if (!reader_word(reader, stops, reader->rule->program))
        return false;
    return *reader->rule->program || reader_refuse(reader, begin, "The name of a program is missing.");
}

static bool read_device(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    if (!reader_word(reader, stops, reader->rule->on.device))
        return false;
    return *reader->rule->on.device || reader_refuse(reader, begin, "The name of a device is missing.");
}

static bool read_peer(struct reader *reader, const char *stops)
{
    const char *begin = reader->at;
    if (!reader_word(reader, stops, reader->rule->peer))
        return false;
    return *reader->rule->peer || reader_refuse(reader, begin, "The name or address of a peer is missing.");
}

static bool read_peer_qp(struct reader *reader, const char *stops)
{
    uint64_t number = 0;
    bool read = reader_number(reader, stops, UINT32_MAX, &number);
    reader->rule->peer_qp = (uint32_t)number;
    return read;
}

static bool read_wr_id(struct reader *reader, const char *stops)
{
    reader->rule->wr_id.wanted = true;
    return reader_number(reader, stops, UINT64_MAX, &reader->rule->wr_id.number);
}

static bool read_index(struct reader *reader, const char *stops)
{
    reader->rule->index.wanted = true;
    return reader_number(reader, stops, UINT32_MAX, &reader->rule->index.number);
}

static bool read_on(struct reader *reader, const char *stops)
{
    uint64_t number;
    const char *begin = reader->at;
    if (!reader_word(reader, stops, reader->rule->on.kind))
        return false;
    if (!*reader->rule->on.kind)
        return reader_refuse(reader, begin, "A kind of object and its number are missing, such as qp 0x12.");
    if (!reader_number(reader, stops, UINT32_MAX, &number))
        return false;
    reader->rule->on.number = (uint32_t)number;
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
    if (!reader_word(reader, stops, word))
        return false;
    const char *name = strncmp(word, prefix, strlen(prefix)) ? word : word + strlen(prefix);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].name, name)) {
            *number = list[i].number;
            return true;
        }
    return reader_refuse(reader, begin, "\"%s\" is no %s that scripts know, such as %s.", word, kind, list[0].name);
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
    if (!reader_word(reader, stops, word))
        return false;
    return (packet ? names_packet(word) : names_message(word)) ||
           reader_refuse(reader, begin, "\"%s\" is no %s that there is.", word,
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
    bool read = reader_number(reader, stops, UINT16_MAX, &number);
    reader->rule->end.vendor = (uint16_t)number;
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
    char word[SCRIPT_WORD];
    const char *begin = reader->at;
    if (!reader_word(reader, stops, word))
        return false;
    for (size_t i = 0; i < COUNT(all_raised); i++)
        if (!strcmp(all_raised[i].name, word))
            reader->rule->raised = &all_raised[i];
    return reader->rule->raised ||
           reader_refuse(reader, begin, "\"%s\" is no event that can be raised, such as port-down.", word);
}

static bool read_reject(struct reader *reader, const char *stops)
{
    uint64_t reason = 0;
    reader->rule->rejection.wanted = true;
    bool read = reader_number(reader, stops, UINT16_MAX, &reason);
    reader->rule->rejection.reason = (uint16_t)reason;
    return read;
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
        return reader_refuse(reader, begin, "\"%s\" is no field that can be set there.", word);
    reader_skip(reader);
    begin = reader->at;
    if (!reader_word(reader, stops, value))
        return false;
    return field_read(field, value, &rule->changes.list[rule->changes.count++]) ||
           reader_refuse(reader, begin, "\"%s\" is no value of %s.", value, word);
}

static bool read_stop(struct reader *reader, const char *stops)
{
    return reader_time(reader, stops, 0, &reader->rule->process.stop);
}

static bool read_freeze(struct reader *reader, const char *stops)
{
    return reader_time(reader, stops, 0, &reader->rule->process.freeze);
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

static bool read_cut(struct reader *reader, const char *stops)
{
    uint64_t length = 0;
    reader->rule->packet.cut = true;
    bool read = reader_number(reader, stops, UINT32_MAX, &length);
    reader->rule->packet.length = (uint32_t)length;
    return read;
}

static const struct named forged[] = {
#define FORGED(name, syndrome) {#name, SCRIPT_FORGED_##name},
#include "script/words.def"
};

static bool read_forge(struct reader *reader, const char *stops)
{
    int kind = 0;
    bool read = read_name(reader, stops, forged, COUNT(forged), "", "packet", &kind);
    reader->rule->packet.forged = (uint8_t)kind;
    return read;
}

/* "100Mbit", with a fraction, as tc(8) has it. */
static bool read_bandwidth(struct reader *reader, const char *stops)
{
    static const struct {
        const char *name;
        double bits;
    } units[] = {{"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}};
    char word[SCRIPT_WORD];
    const char *begin = reader->at, *rest;
    double number, unit = 0;
    if (!reader_word(reader, stops, word))
        return false;
    bool good = reader_decimal(word, &number, &rest);
    for (size_t i = 0; i < COUNT(units); i++)
        unit = !strcmp(rest, units[i].name) ? units[i].bits : unit;
    if (!good || number * unit < 1 || number * unit > 1e15)
        return reader_refuse(reader, begin, "\"%s\" is no rate from 1bit on, in bit, kbit, Mbit or Gbit.", word);
    reader->rule->packet.bandwidth = (uint64_t)(number * unit);
    return true;
}

static bool read_data(struct reader *reader, const char *stops)
{
    return reader_word(reader, stops, reader->rule->rejection.data);
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
    if (!reader_word(reader, stops, word))
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
    return (good && !*rest) || reader_refuse(reader, begin, "\"%s\" is none of N, N..M, N+ and N+STEP.", word);
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
