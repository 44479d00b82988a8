/* The general services interface: what comes from the network for queue pair 1 (IBA 13.5). So far it is the part of a
 * communication manager that every endpoint has: it is asked for a service, and nobody offers any, so it says that.
 * This tells other hosts that an endpoint is there (`softverbs ping`), and a connection manager can grow here.
 *
 * All processes of the host share the port and each may be handed any datagram. A request is answered by whoever gets
 * it, as all would say the same. A reply is for who has asked: it echoes the number that the requester chose, RequestID
 * here and the communication IDs of the other messages, and a process chooses it among the queue pair numbers that are
 * its own. So replies find their process like packets for queue pairs do. */
#ifndef VERBS_GSI_H
#define VERBS_GSI_H

#include "verbs/object.h"
#include "wire/cm.h"

#define GSI_SIGNATURE "softverbs " /* what the private data of our replies begins with; the version follows */

/* From now on this process answers on the device's port, if it has one, and others of the host know it. Under
 * process->control. */
void gsi_serve(struct process *, const struct device *);

/* A packet for queue pair 1 has arrived: directly (`passed_on` NULL), or by way of another process of the host, then
 * those are its frame's first bytes. Answers it, hands it to the asker, passes it on or drops it. Under
 * process->progress. */
void gsi_receive(struct process *, const struct udp_arrival *, const uint8_t *passed_on);

/* Somebody who asks other hosts. */
struct gsi_asker {
    uint32_t first; /* of NODE_BLOCK numbers: the RequestIDs */
    /* A reply with one of them: false when nobody waits for it. `length` of the payload that it came in. Under
     * process->progress. */
    bool (*take)(struct gsi_asker *, const struct cm_message *, uint32_t length);
};

#endif
