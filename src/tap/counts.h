/* What queue pairs count: packets by operation, bytes, what went wrong. Plain numbers under the queue pair's lock. */
#ifndef TAP_COUNTS_H
#define TAP_COUNTS_H

#include <stdint.h>

enum {
    COUNTS_OPERATIONS = 32, /* of the queue pair's service: the lower five bits of an opcode */
    /* Ranges of diag.def, each with so many reasons: why packets are dropped, why our work ends in an error, why a
     * peer's is refused. 0: any other reason. */
    COUNTS_REQUESTER = 40,
    COUNTS_RESPONDER = COUNTS_REQUESTER + 40,
    COUNTS_REASONS = COUNTS_RESPONDER + 40,
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

struct counts {
    uint64_t sent[COUNTS_OPERATIONS], received[COUNTS_OPERATIONS];
    uint64_t bytes_sent, bytes_received; /* payload */
    uint64_t repeated;                   /* requests that were sent again */
    uint64_t timeouts;                   /* of the ACK timer */
    uint64_t naks_sent, naks_received;
    uint64_t rnrs_sent, rnrs_received; /* NAKs that ask to wait for a receive */
    uint64_t cnps_sent, cnps_received;
    uint64_t direct_writes, direct_reads, direct_bytes; /* of ours that this process did by itself */
    uint64_t faults;                           /* packets lost or corrupted on the user's demand (SOFTVERBS_FAULT) */
    uint64_t fault_kinds[TRAFFIC_FAULT_KINDS]; /* all that met each kind of fault */
    uint32_t
        dropped[COUNTS_REASONS]; /* and what ended in an error; by counts_reason; as short as a queue pair must be */
};

/* The same for a device, by whole opcodes: the sum over queue pairs that are no more. */
struct counts_total {
    uint64_t sent[256], received[256];
    struct counts rest; /* of its packets only the first, for raw Ethernet frames */
};

static inline unsigned counts_reason(unsigned reason)
{
    if (reason >= 100 && reason < 140)
        return COUNTS_REQUESTER + reason - 100;
    if (reason >= 200 && reason < 240)
        return COUNTS_RESPONDER + reason - 200;
    return reason < COUNTS_REQUESTER ? reason : 0;
}

/* The reason that is counted there. */
static inline unsigned counts_reason_at(unsigned place)
{
    return place >= COUNTS_RESPONDER   ? place - COUNTS_RESPONDER + 200
           : place >= COUNTS_REQUESTER ? place - COUNTS_REQUESTER + 100
                                       : place;
}

#endif
