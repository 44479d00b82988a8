/* The general services interface: the packets from the network for queue pair 1 (IBA 13.5), which are messages of the
 * communication manager. All processes of the host share the port and each may be handed any datagram. A request is for
 * the process whose program listens at that service; when none does, the process that gets it replies so, as all would
 * reply the same, which shows other hosts that an endpoint is there (`softverbs ping`). A reply is for its requester:
 * it echoes the number that the requester chose, RequestID or communication ID, and a process chooses it among the
 * queue pair numbers that are its own. So replies find their process like packets for queue pairs do. */
#ifndef GSI_GSI_H
#define GSI_GSI_H

#include "base/bucket.h"
#include "process/process.h"
#include "wire/cm.h"

#define GSI_SIGNATURE "softverbs " /* the beginning of the private data of our replies; the version follows */

/* A packet for queue pair 1 has arrived: directly (`forwarded` NULL), or by way of another process of the host, then
 * those are its frame's first bytes. Gives it to the connection
 * manager or the asker, passes it on, answers or drops it. Under
 * process->progress. */
void gsi_receive(struct process *, const struct udp_arrival *, const uint8_t *forwarded);

struct gsi_asker;

/* Of the process. */
struct gsi {
    struct bucket answers;   /* to requests from the network; under process->progress */
    struct gsi_asker *asker; /* waits for answers of other hosts; NULL: none; likewise */
    _Atomic uint32_t served; /* a bit for each device on whose port we answer; served.c */
};

/* A requester to other hosts. */
struct gsi_asker {
    uint32_t first; /* of NODE_BLOCK numbers: the RequestIDs */
    /* A reply with one of them: false when no requester waits for it. `length` of the payload that it came in. Under
     * process->progress. */
    bool (*take)(struct gsi_asker *, const struct cm_message *, uint32_t length);
};

#endif
