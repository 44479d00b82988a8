/* Events of identifiers, in the queue of a channel until the program fetches them.
 *
 * Each identifier knows how many events of it were fetched, because a program may not destroy it before it has
 * acknowledged them; so an event that is purged must never have been counted, and one that was counted never be purged.
 */
#ifndef CM_EVENTS_H
#define CM_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/address.h"
#include "cm/parameters.h"

enum cm_event_kind { /* numbers of enum rdma_cm_event_type */
                     CM_ADDR_RESOLVED = 0,
                     CM_ADDR_ERROR = 1,
                     CM_ROUTE_RESOLVED = 2,
                     CM_ROUTE_ERROR = 3,
                     CM_CONNECT_REQUEST = 4,
                     CM_CONNECT_RESPONSE = 5,
                     CM_CONNECT_ERROR = 6,
                     CM_UNREACHABLE = 7,
                     CM_REJECTED = 8,
                     CM_ESTABLISHED = 9,
                     CM_DISCONNECTED = 10,
                     CM_DEVICE_REMOVAL = 11,
                     CM_MULTICAST_JOIN = 12,
                     CM_MULTICAST_ERROR = 13,
                     CM_ADDR_CHANGE = 14,
                     CM_TIMEWAIT_EXIT = 15,
                     CM_ADDRINFO_RESOLVED = 16,
                     CM_ADDRINFO_ERROR = 17,
                     CM_USER = 18,
                     CM_INTERNAL = 19,
                     CM_EVENT_KINDS
};

/* "CONNECT_REQUEST": the rest of its name behind RDMA_CM_EVENT_. */
const char *cm_event_name(enum cm_event_kind);

struct event_account; /* counts the fetched events */

struct cm_event {
    STAILQ_ENTRY(cm_event) next;
    struct event_account *account;   /* counts the event when it is fetched, and takes it along when it goes */
    struct event_account *secondary; /* so does this, or NULL: the multicast join that the event is of */
    struct event_account *requested; /* CM_CONNECT_REQUEST: of the new identifier, which moves along; NULL otherwise */
    uint64_t uid;                    /* as the program named what the event is for, and its number */
    uint32_t number;
    enum cm_event_kind kind;
    int status;
    bool datagram;                   /* `parameters` are those of a datagram service, with `route` if it has a peer */
    uint64_t argument;               /* CM_USER, CM_INTERNAL */
    struct cm_parameters parameters; /* length 0 and zeros when there are none */
    struct cm_ece ece;
    struct cm_route route; /* CM_UNREACHABLE: where the requests went, also without has_route */
    bool has_route;
};

struct event_account {
    struct event_queue *queue;
    uint32_t queued;   /* in the queue */
    uint32_t requests; /* of them, of kind CM_CONNECT_REQUEST */
    uint32_t fetched;  /* ever */
};

struct event_queue_operations {
    /* The queue is longer, or shorter, by one, not because of event_fetch. */
    void (*added)(struct event_queue *);
    void (*removed)(struct event_queue *);
};

struct event_queue {
    const struct event_queue_operations *operations;
    STAILQ_HEAD(, cm_event) events;
    uint32_t count;
};

void event_queue_initialize(struct event_queue *, const struct event_queue_operations *);

/* Puts it at the end of its account's queue. */
void event_push(struct cm_event *);

/* Takes the first and counts it; it is the caller's then. NULL: there is none. */
struct cm_event *event_fetch(struct event_queue *);

/* Takes the first of the events that concern the account (in any of the three ways) out of its queue, uncounted; it is
 * the caller's then. NULL: there is none. */
struct cm_event *event_purge(struct event_account *);

/* From now on the account's events are for that queue; those that wait move to its end, in their order, and what is new
 * in requests among them goes along. */
void event_move(struct event_account *, struct event_queue *);

#endif
