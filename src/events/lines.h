/* The text of events.def about each event and counter, for reports and tools. */
#pragma once

#include "events/events.h"

/* The line of events.def on an event. */
struct event_line {
    const char *name, *key, *part, *meaning;
    enum event_level level;
    enum event_object object;
    enum event_field a, b;
};

extern const struct event_line event_lines[EVENT_KINDS];

/* The word of a field, such as "psn"; also its key in a story's record. */
const char *event_field_word(enum event_field);

/* Returns true if the value is a pointer to a word that lives as long as the process. */
bool event_field_is_word(enum event_field);

/* Returns true if the value is a number with a sign, as a status of librdmacm. */
bool event_field_is_signed(enum event_field);

/* How a counter is reported. */
enum event_counter_form {
    COUNTER_PACKETS,        /* by operation */
    COUNTER_NUMBER,         /* a number, or a part of an object of numbers */
    COUNTER_FAULT,          /* a part of `fault_kinds`, for a kind of SOFTVERBS_FAULT */
    COUNTER_SUM,            /* the sum of a field */
    COUNTER_PACKET_REASONS, /* packets dropped, by the reason's number */
    COUNTER_REASONS,        /* by the reason's name */
    COUNTER_BY_PEERS,
};

/* A counter. All are in the order of events.def. */
struct event_counter {
    const char *key, *part, *column, *rdma, *meaning;
    enum event_counter_form form;
    unsigned index; /* enum event, enum event_sum, or BY_PEERS_ */
};

extern const struct event_counter event_counters[];
extern const unsigned event_counters_count;

/* Returns true if this counter is the first one with its key. Counters with the same key follow each other. */
bool event_counter_begins(unsigned at);
