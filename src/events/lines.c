#include "events/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/likely.h"
#include "diag/log.h"
#include "events/process_events.h"

const struct event_line event_lines[EVENT_KINDS] = {
#define LINE(name, key, part, object, level, a, b, meaning)                                                            \
    [EVENT_##                                                                                                          \
        name] = {#name, key, part, meaning, EVENT_LEVEL_##level, EVENT_OF_##object, EVENT_FIELD_##a, EVENT_FIELD_##b},
#define PACKETS(name, key, sum, column, rdma, level, kept, a, b, meaning) LINE(name, key, "", QP, level, a, b, meaning)
#define COUNTED(name, key, part, sum, column, rdma, level, kept, a, b, meaning)                                        \
    LINE(name, key, part, QP, level, a, b, meaning)
#define REASONS(name, key, column, level, kept, a, b, meaning) LINE(name, key, "", QP, level, a, b, meaning)
#define MESSAGES(name, key, level, a, b, meaning) LINE(name, key, "", CONNECTION, level, a, b, meaning)
#define REFUSALS(name, key, level, meaning) LINE(name, key, "", PROCESS, level, REASON, CALL, meaning)
#define SCRIPTED(name, word, level, meaning) LINE(name, "scripted", word, PROCESS, level, REASON, CALL, meaning)
#define EVENT(name, object, level, kept, a, b, meaning) LINE(name, "", "", object, level, a, b, meaning)
#include "events/events.def"
};

#define FORM_OF_PACKET_DROPPED COUNTER_PACKET_REASONS
#define FORM_OF_WORK_FAILED COUNTER_REASONS

const struct event_counter event_counters[] = {
#define PACKETS(name, key, sum, column, rdma, level, kept, a, b, meaning)                                              \
    {key, "", column, rdma, meaning, COUNTER_PACKETS, EVENT_##name},
#define COUNTED(name, key, part, sum, column, rdma, level, kept, a, b, meaning)                                        \
    {key, part, column, rdma, meaning, COUNTER_NUMBER, EVENT_##name},
#define FAULT(name, word, form, example, done, meaning)                                                                \
    {"fault_kinds", word, "KINDS OF FAULTS", "", meaning, COUNTER_FAULT, EVENT_FAULT_##name},
#define REASONS(name, key, column, level, kept, a, b, meaning)                                                         \
    {key, "", column, "", meaning, FORM_OF_##name, EVENT_##name},
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

enum form { NUMBER, HEX, STATE, WORD, SIGNED };

struct described {
    const char *word;
    enum form form;
};

static const struct described fields[EVENT_FIELDS] = {
#define FIELD(name, word, form) [EVENT_FIELD_##name] = {word, form},
#include "events/events.def"
};

static const struct described objects[EVENT_OBJECTS] = {
#define OBJECT(name, word, form) [EVENT_OF_##name] = {word, form},
#include "events/events.def"
};

const char *event_field_word(enum event_field field)
{
    return fields[field].word;
}

const char *event_state_word(unsigned state)
{
    static const char *const words[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return state < sizeof words / sizeof *words ? words[state] : "?";
}

bool event_field_is_word(enum event_field field)
{
    return fields[field].form == WORD;
}

bool event_field_is_signed(enum event_field field)
{
    return fields[field].form == SIGNED;
}

/* Writes a value with its word: "psn 17". */
static size_t describe_value(char *to, size_t room, const struct described *said, uint64_t value)
{
    int length = said->form == WORD     ? snprintf(to, room, "%s %s", said->word, (const char *)(uintptr_t)value)
                 : said->form == STATE  ? snprintf(to, room, "%s %s", said->word, event_state_word((unsigned)value))
                 : said->form == SIGNED ? snprintf(to, room, "%s %lld", said->word, (long long)value)
                                        : snprintf(to, room, said->form == HEX ? "%s 0x%llx" : "%s %llu", said->word,
                                                   (unsigned long long)value);
    return (size_t)length < room ? (size_t)length : room - 1;
}

static void write_event(uint32_t number, enum event event, const char *text)
{
    const struct event_line *line = &event_lines[event];
    char object[48];
    describe_value(object, sizeof object, &objects[line->object], number);
    log_limited((enum log_level)line->level, event, line->name, "%s: %s (%s%s)", object, line->meaning, line->name,
                text);
}

/* Keeps an event for the process if its object keeps no events. */
static void keep_for_process(uint32_t number, const struct event_line *line, enum event event, uint64_t a, uint64_t b)
{
    if (line->object == EVENT_OF_DEVICE || line->object == EVENT_OF_PROCESS)
        process_events_note(event, number, a, b);
}

cold void event_log(uint32_t number, enum event event, uint64_t a, uint64_t b)
{
    const struct event_line *line = &event_lines[event];
    event_probe(number, event, a, b);
    keep_for_process(number, line, event, a, b);
    char text[128] = "";
    size_t used = 0;
    if (!log_wanted((enum log_level)line->level))
        return;
    for (int i = 0; i < 2; i++) {
        enum event_field field = i ? line->b : line->a;
        if (field == EVENT_FIELD_NONE)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, ", ");
        used += describe_value(text + used, sizeof text - used, &fields[field], i ? b : a);
    }
    write_event(number, event, text);
}

cold void event_say(uint32_t number, enum event event, uint64_t a, uint64_t b, const char *format, ...)
{
    char text[256] = ", ";
    va_list arguments;
    event_probe(number, event, a, b);
    keep_for_process(number, &event_lines[event], event, a, b);
    if (!log_wanted((enum log_level)event_lines[event].level))
        return;
    va_start(arguments, format);
    vsnprintf(text + 2, sizeof text - 2, format, arguments);
    va_end(arguments);
    write_event(number, event, text);
}
