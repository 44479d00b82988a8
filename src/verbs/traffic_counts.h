/* What queue pairs count: packets by operation, bytes, what went wrong. Plain numbers under the queue pair's lock. */
#ifndef VERBS_TRAFFIC_COUNTS_H
#define VERBS_TRAFFIC_COUNTS_H

#include <stdint.h>

enum {
    TRAFFIC_OPERATIONS = 32, /* of the queue pair's service: the lower five bits of an opcode */
    /* Ranges of diag.def, each with so many reasons: why packets are dropped, why our work ends in an error, why a
     * peer's is refused. 0: any other reason. */
    TRAFFIC_REQUESTER = 32,
    TRAFFIC_RESPONDER = TRAFFIC_REQUESTER + 40,
    TRAFFIC_REASONS = TRAFFIC_RESPONDER + 40,
};

/* In the order of the words that SOFTVERBS_FAULT has for them. */
enum {
    TRAFFIC_FAULT_DROP,
    TRAFFIC_FAULT_DUPLICATE,
    TRAFFIC_FAULT_REORDER,
    TRAFFIC_FAULT_DELAY,
    TRAFFIC_FAULT_CORRUPT,
    TRAFFIC_FAULT_KINDS
};

struct traffic {
    uint64_t sent[TRAFFIC_OPERATIONS], received[TRAFFIC_OPERATIONS];
    uint64_t bytes_sent, bytes_received; /* payload */
    uint64_t repeated;                   /* requests that were sent again */
    uint64_t timeouts;                   /* of the ACK timer */
    uint64_t naks_sent, naks_received;
    uint64_t rnrs_sent, rnrs_received; /* NAKs that ask to wait for a receive */
    uint64_t cnps_sent, cnps_received;
    uint64_t faults;                           /* packets lost or corrupted on the user's demand (SOFTVERBS_FAULT) */
    uint64_t fault_kinds[TRAFFIC_FAULT_KINDS]; /* all that met each kind of fault */
    uint64_t dropped[TRAFFIC_REASONS];         /* and what ended in an error; by traffic_reason */
};

/* The same for a device, by whole opcodes: the sum over queue pairs that are no more. */
struct traffic_total {
    uint64_t sent[256], received[256];
    struct traffic rest; /* of its packets only the first, for raw Ethernet frames */
};

static inline unsigned traffic_reason(unsigned reason)
{
    if (reason >= 100 && reason < 140)
        return TRAFFIC_REQUESTER + reason - 100;
    if (reason >= 200 && reason < 240)
        return TRAFFIC_RESPONDER + reason - 200;
    return reason < TRAFFIC_REQUESTER ? reason : 0;
}

/* The reason that is counted there. */
static inline unsigned traffic_reason_at(unsigned place)
{
    return place >= TRAFFIC_RESPONDER   ? place - TRAFFIC_RESPONDER + 200
           : place >= TRAFFIC_REQUESTER ? place - TRAFFIC_REQUESTER + 100
                                        : place;
}

#endif
