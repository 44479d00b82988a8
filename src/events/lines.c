#include "events/lines.h"

#include <stdio.h>
#include <string.h>

#include "diag/log.h"

/* A reason of that range without a place of its own would be counted as another one. */
#define REASON(number, name, sentence)                                                                                 \
    _Static_assert((number) >= 100 || (number) < COUNTS_REQUESTER, "counted as another: " #name);
#include "diag/diag.def"
#undef REASON

const struct event_line event_lines[EVENT_KINDS] = {
#define PACKETS(name, key, sum, column, rdma, level, a, b, meaning)                                                    \
    [EVENT_##name] = {#name, key, "", meaning, EVENT_LEVEL_##level, EVENT_FIELD_##a, EVENT_FIELD_##b},
#define COUNTED(name, key, part, sum, column, rdma, level, a, b, meaning)                                              \
    [EVENT_##name] = {#name, key, part, meaning, EVENT_LEVEL_##level, EVENT_FIELD_##a, EVENT_FIELD_##b},
#define REASONS(name, key, column, level, a, b, meaning)                                                               \
    [EVENT_##name] = {#name, key, "", meaning, EVENT_LEVEL_##level, EVENT_FIELD_##a, EVENT_FIELD_##b},
#define MESSAGES(name, key, level, a, b, meaning)                                                                      \
    [EVENT_##name] = {#name, key, "", meaning, EVENT_LEVEL_##level, EVENT_FIELD_##a, EVENT_FIELD_##b},
#include "events/events.def"
};

#define FORM_OF_PACKET_DROPPED COUNTER_PACKET_REASONS
#define FORM_OF_WORK_FAILED COUNTER_REASONS

const struct event_counter event_counters[] = {
#define PACKETS(name, key, sum, column, rdma, level, a, b, meaning)                                                    \
    {key, "", column, rdma, meaning, COUNTER_PACKETS, EVENT_##name},
#define COUNTED(name, key, part, sum, column, rdma, level, a, b, meaning)                                              \
    {key, part, column, rdma, meaning, COUNTER_NUMBER, EVENT_##name},
#define FAULT(name, word, form, example, done, meaning)                                                                \
    {"fault_kinds", word, "KINDS OF FAULTS", "", meaning, COUNTER_FAULT, EVENT_FAULT_##name},
#define REASONS(name, key, column, level, a, b, meaning) {key, "", column, "", meaning, FORM_OF_##name, EVENT_##name},
#define SUM(name, key, column, rdma, meaning) {key, "", column, rdma, meaning, COUNTER_SUM, EVENT_SUM_##name},
#define BY_PEERS(name, key, part, column, meaning) {key, part, column, "", meaning, COUNTER_BY_PEERS, BY_PEERS_##name},
#include "events/events.def"
};

const unsigned event_counters_count = sizeof event_counters / sizeof *event_counters;

bool event_counter_begins(unsigned at)
{
    return at == 0 || strcmp(event_counters[at].key, event_counters[at - 1].key) != 0;
}

/* --- the log */

_Static_assert((int)EVENT_LEVEL_ERROR == (int)LOG_ERROR && (int)EVENT_LEVEL_DEBUG == (int)LOG_DEBUG, "are cast");
_Static_assert((int)EVENT_KINDS <= (int)LOG_KINDS, "each has a quota of lines");

enum form { NUMBER, HEX };

static const struct {
    const char *word;
    enum form form;
} fields[EVENT_FIELDS] = {
#define FIELD(name, word, form) [EVENT_FIELD_##name] = {word, form},
#include "events/events.def"
};

/* ", psn 17" */
static size_t describe_field(char *to, size_t room, enum event_field field, uint64_t value)
{
    if (field == EVENT_FIELD_NONE)
        return 0;
    int length = snprintf(to, room, fields[field].form == HEX ? ", %s 0x%llx" : ", %s %llu", fields[field].word,
                          (unsigned long long)value);
    return (size_t)length < room ? (size_t)length : room - 1;
}

__attribute__((cold)) void event_log(const char *object, uint32_t number, enum event event, uint64_t a, uint64_t b)
{
    const struct event_line *line = &event_lines[event];
    char text[96] = "";
    if (!log_wanted((enum log_level)line->level))
        return;
    size_t used = describe_field(text, sizeof text, line->a, a);
    describe_field(text + used, sizeof text - used, line->b, b);
    log_limited((enum log_level)line->level, event, line->name, "%s 0x%x: %s (%s%s)", object, number, line->meaning,
                line->name, text);
}
