/* The general services interface: the packets from the network for queue pair 1 (IBA 13.5), which are messages of the
 * communication manager. All processes of the host share the port, and any process may receive any datagram. A request
 * is for the process whose program listens at that service; if no program does, the receiving process replies that, as
 * any process would, which shows other hosts that an endpoint is there (`softverbs ping`). A reply is for its
 * requester: it has the number that the requester chose, RequestID or communication ID, and a process chooses this
 * among its own queue pair numbers. So replies find their process as packets for queue pairs do. */
#pragma once

#include "base/bucket.h"
#include "verbs/object/process_objects.h"
#include "wire/cm/cm.h"

#define GSI_SIGNATURE "softverbs " /* the beginning of the private data of our replies; the version follows */

/* Takes a packet for queue pair 1 that has arrived: directly (`forwarded` NULL), or through another process of the host
 * (`forwarded`: the first bytes of its frame). Gives it to the connection manager or the asker, passes it on, answers
 * or drops it. Under process->progress. */
void gsi_receive(struct process *, const struct udp_arrival *, const uint8_t *forwarded);

struct gsi_asker;

/* Each process's part of the interface. */
struct gsi {
    struct bucket answers;   /* limits answers to the network; under process->progress */
    struct gsi_asker *asker; /* waits for answers of other hosts, or NULL; under process->progress */
    _Atomic uint32_t served; /* a bit for each device on whose port we answer; served.c */
};

/* A requester that asks other hosts. */
struct gsi_asker {
    uint32_t first; /* the first of NODE_BLOCK numbers, which are its RequestIDs */
    /* Takes a reply with one of these numbers, whose payload has this length. False: the requester does not wait for
     * it. Under process->progress. */
    bool (*take)(struct gsi_asker *, const struct cm_message *, uint32_t length);
};
