/* Ethernet on the host: every process with flow rules is a port of one switch. A frame is sent to the processes that
 * have a rule for its destination address, and to processes with rules that name no address; each gives it to its own
 * queue pairs as its rules say (ibv_create_flow(3)). Nothing leaves the host.
 *
 * Order within a process and device: sniffers see everything. Then normal rules by priority: all rules of the first
 * priority that matches take the frame, each queue pair once; rules that don't trap let lower priorities have it,
 * too. A frame that no normal rule took is passed to the default rules in the same way. A rule that drops is before
 * others of its priority. */
#pragma once

#include "verbs/kinds/ethernet/flow_match.h"
#include "verbs/object/object.h"

struct process;
struct steering;

struct flow {
    struct ibv_flow ibv;
    struct object object;
    struct qp *qp;
    unsigned device; /* its index */
    uint8_t rank;    /* enum flow_rank */
    bool multicast_only, passes_on, egress;
    uint16_t priority;
    uint8_t group[16]; /* the host's group that was joined to get the frames */
    TAILQ_ENTRY(flow) next;
    struct flow_rule rule; /* ends with an array */
};

enum flow_rank { FLOW_SNIFFER, FLOW_NORMAL, FLOW_DEFAULT };

/* Makes the steering and its endpoint for frames from links. 0 or ENOMEM. */
int steering_create(struct process *);
void steering_destroy(struct steering *);
void steering_inherit(struct process *); /* in the child of a fork */

/* Enters a rule: from now on frames are steered by it. 0, ENOMEM, ENOSPC, or ENODEV in the child of a fork. Takes
 * process->progress. */
int steering_add(struct process *, struct flow *);
/* Removes a rule; no thread uses it any more when this returns. Takes process->progress. */
void steering_remove(struct process *, struct flow *);

/* Applies egress rules and their counters; true: the frame must not be sent. Under qp->lock. */
bool steering_withholds(const struct qp *, const uint8_t *frame, uint32_t length);

/* Writes the group of the processes with rules for this destination; NULL: of the processes with other rules. */
void steering_group(const uint8_t *destination, uint8_t group[16]);

enum { STEERING_HEADER = 4 }; /* bytes before a frame on a link: the number of the queue pair that sends it */
