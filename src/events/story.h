/* The story of a queue pair: its last events, and what was known when its first error happened, for `softverbs why
 * --qp`.
 *
 * It is memory of this process alone (malloc), never memory that peers map, as it has keys and addresses. All of it is
 * under the queue pair's lock, also for readers: this process's helper thread copies it as text for a tool of its user
 * (verbs/ask/qp_story_report.h), so no record is half written, and no read is repeated. */
#pragma once

#include <string.h>

#include "base/likely.h"
#include "base/nanos.h"
#include "events/events.h"

enum { STORY_RECORDS = 64, STORY_RECENT = 8 };

/* An event that has a record (event_kept). */
struct story_record {
    nanos time;
    uint32_t event; /* enum event */
    uint32_t more;  /* the field that event_kept names */
    uint64_t a, b;
};

_Static_assert(sizeof(struct story_record) == 32, "half of a line of the cache");

/* The memory that was refused last: the memory asked for, and the region or window of the key. */
struct story_memory {
    uint64_t address, base, size;
    uint32_t key, length, access, has;
    bool refused, known; /* memory was refused; the key exists, with base, size and has */
    bool window;         /* the key is a memory window's */
    bool key_swapped;    /* the key exists with its bytes in the other order */
    uint32_t pd;         /* handle of the key's protection domain; 0: the queue pair's, or not known */
    nanos gone;          /* when the key ended; 0: it has not, or that is not known */
};

/* The subject of the first failure. */
enum story_subject {
    STORY_NOTHING, /* the queue pair itself, for example an overrun of its completion queue */
    STORY_SEND,    /* a work request of the send queue */
    STORY_RECEIVE, /* a receive, whose message broke no rule */
    STORY_PACKET,  /* a peer's request */
};

struct story_error {
    nanos time, posted;     /* when it happened; when the work was posted, to a millisecond */
    uint64_t id, address;   /* the work request's or receive's; the remote address */
    uint32_t length, limit; /* bytes; a receive's room, a number that a packet's reason is about, or another process
                             * that failed the queue pair */
    uint32_t psn, key;
    uint32_t flushed_sends, flushed_receives;
    uint64_t receive_id;    /* the packet's receive */
    uint16_t reason;        /* 0: no error yet */
    uint8_t subject;        /* enum story_subject */
    uint8_t status;         /* the work's completion */
    uint8_t receive_status; /* the packet's receive; 0: no receive ended */
    uint8_t opcode;         /* a send's enum ibv_wr_opcode, or a packet's opcode */
    struct story_memory memory;
};

/* The last receive that was too short for a message that the service then drops: the receive stays for the next one. */
struct story_short {
    uint64_t id;
    uint32_t room, bytes; /* the receive's; the message's */
    bool known;           /* there was such a receive */
};

enum { STORY_MESSAGES = 8 };

/* SRD: a message that failed, or that this end refused: the first of its peer and reason. */
struct story_message {
    struct story_error error;
    struct story_short too_short; /* the receive that the message met, which stays posted */
    uint8_t gid[16];              /* of the peer; of all zeros: not known */
    uint32_t peer;                /* its queue pair */
    uint32_t times;               /* messages of this peer and reason */
    uint32_t vendor;              /* the completion's vendor_err */
    uint32_t qkey;                /* of a message that was refused for it */
    uint8_t state;                /* enum ibv_qp_state of the end that refused for it */
    bool remote;                  /* the peer is on another host */
};

/* An error of SRD ends one message, so there may be several errors. */
struct story_messages {
    struct story_message list[STORY_MESSAGES];
    uint32_t count;
    uint32_t others; /* messages that have no place in the list */
    uint32_t all;
};

struct story {
    struct story_record records[STORY_RECORDS];
    bool kept;         /* the story is in a file, for when the process has ended */
    bool kept_waiting; /* it was kept while the queue pair had no error, and waited */
    uint32_t
        kept_flushed; /* the work that had been flushed when it was kept, and the messages of SRD that had failed */
    struct story_memory memory;
    struct story_error error;
    struct story_short too_short;
    struct story_messages *failed, *refused; /* of SRD; NULL: no message */
};

/* The records since the last block of STORY_RECENT: among thousands of queue pairs each story is a separate page, whose
 * address costs half a microsecond to translate, so it is touched once for a block. The owner counts the bytes of all
 * records that were ever written, in a line that each packet touches: a message then touches one line of these. */
struct story_recent {
    struct story_record records[STORY_RECENT];
};

_Static_assert(sizeof(struct story) + sizeof(struct story_recent) <= 2560,
               "more than a queue pair may take for its story");
_Static_assert(STORY_RECORDS % STORY_RECENT == 0, "a block is one piece");

/* Copies the block of the last record, whole or not, into the story, which then has all records. Call it before they
 * are read. `at`: bytes that were ever written. */
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

/* The `back`-th record before the next one, once the story is settled; a record without a time was never written. `at`:
 * bytes that were ever written. */
static inline const struct story_record *story_record(const struct story *story, uint32_t at, unsigned back)
{
    return &story->records[(at / sizeof(struct story_record) - back) % STORY_RECORDS];
}

/* Writes a record (no other function does) into a ring of `bytes`, a power of two; `*written` counts all bytes ever
 * written. */
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

/* Writes a record. True: the block is full; settle it before the next record. */
__attribute__((always_inline)) static inline bool story_write(struct story_recent *recent, uint32_t *at, nanos now,
                                                              enum event event, uint32_t more, uint64_t a, uint64_t b)
{
    story_put(recent->records, sizeof recent->records, at, now, event, more, a, b);
    return *at % sizeof recent->records == 0;
}
