/* For tests of stories: queue pairs of the simulator that have the flows of the code under test. One file does the work
 * of their owners with it (story_owner.c), one has the record of the simulator (story_told.c), and one compares them
 * (story_judge.c). */
#ifndef TAP_TESTING_STORY_WORLD_H
#define TAP_TESTING_STORY_WORLD_H

#include "tap/traffic.h"
#include "transport/testing/simulator/watcher.h"

enum { POSTED_MOST = 256, FLIGHTS = 8192 };

/* A packet that has left its engine. It is known again by bits of its BTH that no code looks at. */
struct flight {
    uint32_t psn;
    bool answer;
    uint64_t number; /* in its stream */
    nanos left, came;
    unsigned whole, damaged; /* how often it came to the network */
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
    struct records seen, told; /* all that the story had; those of the simulator, without faults */
    uint32_t drained;          /* bytes of the records that are in `seen` */
    struct flight *flights;
    uint32_t flown;
    uint64_t numbers[2], passed[2]; /* of each stream: frames, and the last that came */
    uint8_t opcodes[POSTED_MOST];
    uint32_t posted, received;
    bool sent_any, repeats; /* the request behind a time-out is that of `repeated` */
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

/* Of all runs, for tests that look whether they were about something. */
struct story_totals {
    uint64_t records, flights, looks, lost, kinds[FAULT_KINDS], of[EVENT_KINDS];
};

extern struct story_totals story_totals;

/* A run of the seed, over a network that also has the faults of the process (script/meet.h), or has not. False: the
 * story or the simulator is wrong, which is printed. */
bool story_run(uint64_t seed, bool faulty);

/* Called at the end of each run for each queue pair, with the one that it is connected with; NULL: not. */
extern void (*story_ended)(struct end *, struct end *peer);

/* --- between the files */

/* Its endpoint, whose clock is that of the simulator. */
struct end *story_end(struct watcher *, const struct watched *);

/* Only the first is kept. */
__attribute__((format(printf, 2, 3))) void story_complain(struct end *, const char *format, ...);

void story_append(struct records *, struct story_record);

/* The story must have this record next, with the time of the endpoint. */
void story_tell(struct end *, enum event, uint64_t a, uint64_t b, uint32_t more);

/* watcher_operations.noted */
void story_noted(struct watcher *, const struct watched *, const char *what, uint64_t a, uint64_t b);

/* The event is a fault of a packet. */
bool story_is_fault(uint32_t event);

/* A reader comes: the ring must have the last records, and no others. */
void story_look(struct end *);

/* The run is over: all that was told has a record, each packet those of its faults, and the counts agree. */
void story_judge(struct end *);

#endif
