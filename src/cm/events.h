/* Events of identifiers, in the queue of a channel until the program fetches them.
 *
 * Each identifier counts its fetched events, because a program may not destroy it before it has acknowledged them. So
 * an event that is purged has never been counted, and a counted event is never purged. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cm/address.h"
#include "cm/queue_pair/parameters.h"

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

/* "CONNECT_REQUEST": the name after RDMA_CM_EVENT_. */
const char *cm_event_name(enum cm_event_kind);

struct event_account; /* counts the fetched events */

struct cm_event {
    STAILQ_ENTRY(cm_event) next;
    struct event_account *account;   /* the identifier's, which counts the event when it is fetched */
    struct event_account *secondary; /* the multicast membership's, which counts it, too; or NULL */
    struct event_account *requested; /* CM_CONNECT_REQUEST: the new identifier's, which moves along; else NULL */
    uint64_t uid;                    /* the program's name of the identifier or membership */
    uint32_t number;                 /* the number of that, or of the new identifier */
    enum cm_event_kind kind;
    int status;
    bool datagram;                   /* `parameters` are a datagram service's, and has_route means that it has a peer */
    uint64_t argument;               /* CM_USER, CM_INTERNAL */
    struct cm_parameters parameters; /* zeros in an event without parameters */
    struct cm_ece ece;
    /* CM_UNREACHABLE: the route of the requests; CM_ADDR_ERROR: `gid` alone; has_route is false for both */
    struct cm_route route;
    bool has_route;
};

struct event_account {
    struct event_queue *queue;
    uint32_t queued;   /* in the queue */
    uint32_t requests; /* of these, events of kind CM_CONNECT_REQUEST */
    uint32_t fetched;  /* ever */
};

struct event_queue_operations {
    /* Called when the queue has got longer, or shorter, by one event; not by event_fetch. */
    void (*added)(struct event_queue *);
    void (*removed)(struct event_queue *);
};

struct event_queue {
    const struct event_queue_operations *operations;
    STAILQ_HEAD(, cm_event) events;
    uint32_t count;
};

void event_queue_initialize(struct event_queue *, const struct event_queue_operations *);

/* Appends the event to its account's queue. */
void event_push(struct cm_event *);

/* Takes the first event and counts it; the caller owns it. NULL: there is no event. */
struct cm_event *event_fetch(struct event_queue *);

/* Takes the first event that has the account as `account`, `secondary` or `requested` out of its queue, and does not
 * count it as fetched; the caller owns the event. NULL: there is no such event. */
struct cm_event *event_purge(struct event_account *);

/* Moves the account to that queue. Its waiting events move to the end, in their order, and the accounts of new
 * identifiers among them move along. */
void event_move(struct event_account *, struct event_queue *);
