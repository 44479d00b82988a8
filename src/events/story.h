/* The story of a queue pair: its last events, and what was known when its first error happened, for `softverbs why
 * --qp`.
 *
 * It is memory of this process alone (malloc), never memory that peers map, as it has keys and addresses. All of it is
 * under the queue pair's lock, readers included: they are the helper thread of this process, which copies it as text
 * for a tool of its user (verbs/ask/qp_story_report.h), so there is no record that is half written, and nothing to
 * repeat. */
#ifndef EVENTS_STORY_H
#define EVENTS_STORY_H

#include <string.h>

#include "base/likely.h"
#include "base/nanos.h"
#include "events/events.h"

enum { STORY_RECORDS = 64, STORY_RECENT = 8 };

/* An event that events.def keeps. */
struct story_record {
    nanos time;
    uint32_t event; /* enum event */
    uint32_t more;  /* the field that event_kept names */
    uint64_t a, b;
};

_Static_assert(sizeof(struct story_record) == 32, "half of a line of the cache");

/* The memory that was refused last: which was asked for, and what there is. */
struct story_memory {
    uint64_t address, base, size;
    uint32_t key, length, access, has;
    bool refused, known; /* one was; its key is a region's, which the second halves are of */
    bool window;         /* that is a memory window */
};

/* The subject of the first failure. */
enum story_subject {
    STORY_NOTHING, /* the queue pair itself, as by an overrun completion queue */
    STORY_SEND,    /* a work request of the send queue */
    STORY_RECEIVE, /* a receive, whose message broke no rule */
    STORY_PACKET,  /* a peer's request */
};

struct story_error {
    nanos time, posted;     /* when it happened; when the work was posted, to a millisecond */
    uint64_t id, address;   /* of the work request or receive; the remote address */
    uint32_t length, limit; /* bytes; of a receive the room that it has, of a packet a number that its reason is about,
                             * of the queue pair itself the process that failed it, if that is another */
    uint32_t psn, key;
    uint32_t flushed_sends, flushed_receives;
    uint64_t receive_id;    /* of a packet's receive */
    uint16_t reason;        /* 0: no error, as yet */
    uint8_t subject;        /* enum story_subject */
    uint8_t status;         /* of the work's completion */
    uint8_t receive_status; /* of a packet's receive; 0: none ended */
    uint8_t opcode;         /* enum ibv_wr_opcode of a send, the packet's of a packet */
    struct story_memory memory;
};

/* The last receive that was too short for a message of a service that drops it: the receive stays for the next one. */
struct story_short {
    uint64_t id;
    uint32_t room, bytes; /* of the receive; of the message */
    bool known;           /* there was one */
};

struct story {
    struct story_record records[STORY_RECORDS];
    bool kept;             /* in a file, for when the process has ended */
    bool kept_waiting;     /* then as that of one that had no error, and waited */
    uint32_t kept_flushed; /* work that had been flushed then */
    struct story_memory memory;
    struct story_error error;
    struct story_short too_short;
};

/* The records since the last block of STORY_RECENT: among thousands of queue pairs each story is a separate page, whose
 * address costs half a microsecond to translate, so it is touched once for a block. Its owner counts the bytes of all
 * records that were ever written, among what each packet touches: a message touches one line of these then. */
struct story_recent {
    struct story_record records[STORY_RECENT];
};

_Static_assert(sizeof(struct story) + sizeof(struct story_recent) <= 2560, "what a queue pair may take more");
_Static_assert(STORY_RECORDS % STORY_RECENT == 0, "a block lies in one piece");

/* Copies the block of the last record, whole or not, into the story, whose records are then all that there are. Before
 * they are read. `at`: bytes that were ever written. */
static inline void story_settle(struct story *story, const struct story_recent *recent, uint32_t at)
{
    if (!at)
        return;
    uint32_t last = at - (uint32_t)sizeof *recent->records, begin = last - last % sizeof recent->records;
    char *to = (char *)story->records + begin % sizeof story->records;
    if (likely(at - begin == sizeof recent->records))
        memcpy(to, recent->records, sizeof recent->records);
    else
        memcpy(to, recent->records, at - begin);
}

/* Where the `back`-th record before the next one is, once the story is settled; one without a time was never written.
 * `at`: bytes that were ever written. */
static inline const struct story_record *story_record(const struct story *story, uint32_t at, unsigned back)
{
    return &story->records[(at / sizeof(struct story_record) - back) % STORY_RECORDS];
}

/* The only one that writes records: into a ring of so many bytes, a power of two, whose bytes are counted at `written`.
 */
__attribute__((always_inline)) static inline void story_put(struct story_record *ring, uint32_t bytes,
                                                            uint32_t *written, nanos now, enum event event,
                                                            uint32_t more, uint64_t a, uint64_t b)
{
    uint32_t at = *written;
    struct story_record *record = (struct story_record *)((char *)ring + at % bytes);
    *written = at + (uint32_t)sizeof *record;
    record->time = now;
    record->event = event;
    record->more = more;
    record->a = a;
    record->b = b;
}

/* True: a block is full, and is to be settled before the next record. */
__attribute__((always_inline)) static inline bool story_write(struct story_recent *recent, uint32_t *at, nanos now,
                                                              enum event event, uint32_t more, uint64_t a, uint64_t b)
{
    story_put(recent->records, sizeof recent->records, at, now, event, more, a, b);
    return *at % sizeof recent->records == 0;
}

#endif
