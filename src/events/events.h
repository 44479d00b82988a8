/* The events of softverbs, and the counts of queue pairs. Everything that is counted, logged and explained is in
 * events.def, once. The functions of the objects (traffic_note of a queue pair) note that an event has happened; its
 * line defines the consequences. Counts are plain numbers under the queue pair's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "events/kinds.h"
#include "events/probe.h"

enum { EVENTS_COUNTED = EVENTS_BEFORE_REASONS - EVENTS_OF_PACKETS };

enum event_sum {
#define SUM(name, ...) EVENT_SUM_##name,
#include "events/events.def"
    EVENT_SUMS,
    EVENT_SUM_NONE = EVENT_SUMS
};

/* The levels of diag/log.h. */
enum event_level { EVENT_LEVEL_NONE, EVENT_LEVEL_ERROR, EVENT_LEVEL_WARN, EVENT_LEVEL_INFO, EVENT_LEVEL_DEBUG };

/* The kinds of SOFTVERBS_FAULT. */
enum fault_kind {
#define FAULT(name, ...) FAULT_##name,
#include "events/events.def"
    FAULT_KINDS
};

enum event_object {
#define OBJECT(name, ...) EVENT_OF_##name,
#include "events/events.def"
    EVENT_OBJECTS
};

/* The counts that peers add to. */
enum {
#define BY_PEERS(name, ...) BY_PEERS_##name,
#include "events/events.def"
};

enum event_field {
#define FIELD(name, ...) EVENT_FIELD_##name,
#include "events/events.def"
    EVENT_FIELDS
};

/* The event of a kind of faults. */
static inline enum event event_of_fault(enum fault_kind kind)
{
    static const uint8_t events[] = {
#define FAULT(name, ...) EVENT_FAULT_##name,
#include "events/events.def"
    };
    return events[kind];
}

static inline bool event_has_operation(enum event event)
{
    return event < EVENTS_OF_PACKETS;
}

static inline bool event_is_counted(enum event event)
{
    return event >= EVENTS_OF_PACKETS && event < EVENTS_BEFORE_REASONS;
}

static inline bool event_has_reason(enum event event)
{
    return event >= EVENTS_BEFORE_REASONS && event < EVENTS_BEFORE_REFUSALS;
}

/* event_sum and event_level are constants for a constant event. */
static inline enum event_sum event_sum(enum event event)
{
    static const uint8_t sums[] = {
#define PACKETS(name, key, sum, ...) [EVENT_##name] = EVENT_SUM_##sum,
#define COUNTED(name, key, part, sum, ...) [EVENT_##name] = EVENT_SUM_##sum,
#define REASONS(name, ...) [EVENT_##name] = EVENT_SUM_NONE,
#define REFUSALS(name, ...) [EVENT_##name] = EVENT_SUM_NONE,
#define SCRIPTED(name, ...) [EVENT_##name] = EVENT_SUM_NONE,
#define MESSAGES(name, ...) [EVENT_##name] = EVENT_SUM_NONE,
#define EVENT(name, ...) [EVENT_##name] = EVENT_SUM_NONE,
#include "events/events.def"
    };
    return sums[event];
}

static inline enum event_level event_level(enum event event)
{
    static const uint8_t levels[] = {
#define PACKETS(name, key, sum, column, rdma, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define COUNTED(name, key, part, sum, column, rdma, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define REASONS(name, key, column, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define REFUSALS(name, key, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define SCRIPTED(name, word, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define MESSAGES(name, key, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#define EVENT(name, object, level, ...) [EVENT_##name] = EVENT_LEVEL_##level,
#include "events/events.def"
    };
    return levels[event];
}

/* The third field of the event's record in a story, besides `a` and `b`; EVENT_FIELD_LEFT: the event has no record. */
static inline enum event_field event_kept(enum event event)
{
    static const uint8_t kept[] = {
#define PACKETS(name, key, sum, column, rdma, level, kept, ...) [EVENT_##name] = EVENT_FIELD_##kept,
#define COUNTED(name, key, part, sum, column, rdma, level, kept, ...) [EVENT_##name] = EVENT_FIELD_##kept,
#define REASONS(name, key, column, level, kept, ...) [EVENT_##name] = EVENT_FIELD_##kept,
#define MESSAGES(name, ...) [EVENT_##name] = EVENT_FIELD_LEFT,
#define REFUSALS(name, ...) [EVENT_##name] = EVENT_FIELD_NONE,
#define SCRIPTED(name, ...) [EVENT_##name] = EVENT_FIELD_NONE,
#define EVENT(name, object, level, kept, ...) [EVENT_##name] = EVENT_FIELD_##kept,
#include "events/events.def"
    };
    return kept[event];
}

/* Fires the probe of an event, keeps it for the process if it is of a device or of the process, and writes a line of
 * the log if its level is wanted: the object and its number, the meaning, the name and the fields. */
void event_log(uint32_t number, enum event, uint64_t a, uint64_t b);

/* The same as event_log, but with this text in the place of the fields. */
void event_say(uint32_t number, enum event, uint64_t a, uint64_t b, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Notes an event that is not counted, of the object with this number. If the compiler knows the event and it has no
 * line in the log (frequent events have none), its probe is in the caller. */
__attribute__((always_inline)) static inline void event_note(uint32_t number, enum event event, uint64_t a, uint64_t b)
{
    if (event_level(event) != EVENT_LEVEL_NONE)
        event_log(number, event, a, b);
    else if (__builtin_constant_p(event))
        event_probe_here(number, event, a, b);
    else
        event_probe(number, event, a, b);
}

/* "INIT"; "?" if the number is not a state of a queue pair. */
const char *event_state_word(unsigned state);

/* --- counts */

/* The reasons of diag.def below 300 are counted: why packets are dropped, why our work ends in an error, why a peer's
 * is refused. Place 0 counts all other reasons. Reasons of a wait (118, 120 to 122) are lines of the log alone. */
#define EVENTS_COUNTS(number) ((number) < 300 && (number) != 118 && ((number) < 120 || (number) > 122))

enum {
    COUNTS_OPERATIONS = 32, /* operations of the queue pair's service: the lower five bits of an opcode */
    COUNTED_REASONS = 300,
    COUNTS_REASONS = 1
#define REASON(number, name, sentence) +EVENTS_COUNTS(number)
#include "diag/diag.def"
#undef REASON
};

struct counts {
    uint64_t packets[EVENTS_OF_PACKETS][COUNTS_OPERATIONS];
    uint64_t numbers[EVENTS_COUNTED]; /* by event, from the first COUNTED one on */
    uint64_t sums[EVENT_SUMS];
    uint32_t reasons[COUNTS_REASONS]; /* by counts_place; short, to keep queue pairs small */
};

/* The counts of a device, by whole opcodes: the sum over destroyed queue pairs. */
struct counts_total {
    uint64_t packets[EVENTS_OF_PACKETS][256];
    struct counts rest; /* its `packets` are used only for raw Ethernet frames, the first operation */
};

/* The place of a reason in `reasons`, or 0 if it is not counted; and the reason of a place. */
unsigned counts_place(unsigned reason);
unsigned counts_reason(unsigned place);

/* How often a COUNTED event has happened. */
static inline uint64_t counts_number(const struct counts *counts, enum event event)
{
    return counts->numbers[event - EVENTS_OF_PACKETS];
}

/* Counts `times` events at once; `sum` is the sum of their fields `b`. */
static inline void counts_add(struct counts *counts, enum event event, uint64_t times, uint64_t sum)
{
    counts->numbers[event - EVENTS_OF_PACKETS] += times;
    if (event_sum(event) != EVENT_SUM_NONE)
        counts->sums[event_sum(event)] += sum;
}

/* Counts an event as its line says. The event is a constant, so that this becomes an addition or two. */
__attribute__((always_inline)) static inline void counts_note(struct counts *counts, enum event event, uint64_t a,
                                                              uint64_t b)
{
    if (event_has_operation(event))
        counts->packets[event][a]++;
    else if (event_is_counted(event))
        counts->numbers[event - EVENTS_OF_PACKETS]++;
    else if (event_has_reason(event))
        counts->reasons[counts_place((unsigned)a)]++;
    if (event_sum(event) != EVENT_SUM_NONE)
        counts->sums[event_sum(event)] += b;
}

/* Adds all counts but the packets by operation. */
void counts_sum(struct counts *to, const struct counts *from);
