/* Queue pairs of the simulator with the flows of the code under test, for tests of stories. One file does the work
 * of their owners with it (story_owner.c), one has the record of the simulator (story_told.c), and one compares them
 * (story_judge.c). */
#pragma once

#include "tap/traffic.h"
#include "transport/testing/simulator/watcher.h"

enum { POSTED_MOST = 256, FLIGHTS = 8192 };

/* A packet that has left its engine. Bits of its BTH that no code reads identify it. */
struct flight {
    uint32_t psn;
    bool answer;
    uint64_t number; /* in its stream */
    nanos left, came;
    unsigned whole, damaged; /* how often it reached the network */
    bool held, overtaken;
    unsigned kinds, lost; /* as the records say */
};

struct records {
    struct story_record *list;
    uint32_t count, room;
};

/* A queue pair: what the code under test has, and what has really happened. */
struct end {
    struct link link; /* first */
    struct world_of_test *world;
    uint32_t index;
    struct traffic_flow flow;
    struct lock lock;
    struct ibv_qp_attr attr;
    struct records seen, told; /* all records of the story; the simulator's, without faults */
    uint32_t drained;          /* bytes of the records that are in `seen` */
    struct flight *flights;
    uint32_t flown;
    uint64_t numbers[2], passed[2]; /* of each stream: frames, and the last that arrived */
    uint8_t opcodes[POSTED_MOST];
    uint32_t posted, received;
    bool sent_any, repeats; /* the request after a time-out is `repeated` */
    uint32_t next, repeated;
    nanos expired;
};

struct world_of_test {
    struct watcher watcher; /* first */
    struct end ends[WATCHED_MOST];
    struct traffic traffic;
    struct taps taps;
    struct schedule schedule;
    uint64_t dice;
    char complaint[256]; /* the first */
};

/* Totals of all runs, for tests that check that these were not empty. */
struct story_totals {
    uint64_t records, flights, looks, lost, kinds[FAULT_KINDS], of[EVENT_KINDS];
};

extern struct story_totals story_totals;

/* Runs the seed; `faulty`: over a network that also has the faults of the process (script/rules.h). False: the story
 * or the simulator is wrong, which is printed. */
bool story_run(uint64_t seed, bool faulty);

/* Called at the end of each run for each queue pair, with its peer; may be NULL. */
extern void (*story_ended)(struct end *, struct end *peer);

/* --- between the files */

/* The end of a queue pair, whose clock is the simulator's. */
struct end *story_end(struct watcher *, const struct watched *);

/* Keeps the first complaint. */
__attribute__((format(printf, 2, 3))) void story_complain(struct end *, const char *format, ...);

void story_append(struct records *, struct story_record);

/* Expects this record next in the story, at the present time. */
void story_tell(struct end *, enum event, uint64_t a, uint64_t b, uint32_t more);

/* watcher_operations.noted */
void story_noted(struct watcher *, const struct watched *, const char *what, uint64_t a, uint64_t b);

/* Returns true if the event is a fault of a packet. */
bool story_is_fault(uint32_t event);

/* Reads the ring, which must have the last records, and no others. */
void story_look(struct end *);

/* Judges the run at its end: all noted events have records, each packet has its faults', and the counts agree. */
void story_judge(struct end *);
