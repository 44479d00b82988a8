/* Commands of identifiers that send messages to a peer. Their effect depends on the service: connections (connect.h),
 * or datagrams (resolve.h). `now` and what they return are as in identifier.h. */
#ifndef CM_SERVICE_H
#define CM_SERVICE_H

#include "cm/identifier.h"

struct service_operations {
    /* The most bytes of the program's private data, which callers of the functions respect: in the first message, with
     * and without the header of IP addressing; in accepting and in rejecting. */
    uint8_t request_private, accept_private, reject_private;
    const char *(*state)(const struct session *); /* the state's name */
    /* The reason of the REJ by which the peer ended it; 0: there was no REJ. NULL: the service has no REJ. */
    uint16_t (*rejected)(const struct session *);

    /* Return 0; ENOMEM; or, with nothing changed or logged, EINVAL: the session is in another state, EISCONN. */
    int (*connect)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*accept)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*confirm)(struct identifier *, nanos now);
    int (*reject)(struct identifier *, uint16_t reason, const void *private_data, uint8_t length, nanos now);
    void (*disconnect)(struct identifier *, nanos now);
    int (*establish)(struct identifier *, nanos now); /* NULL: not in this service */
};

int service_connect(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Accepts a request; from then on `uid` names the identifier in its events. A failure rejects the peer. */
int service_accept(struct identifier *, uint64_t uid, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Confirms an active identifier's connection after CONNECT_RESPONSE. A failure rejects the peer. */
int service_confirm(struct identifier *, nanos now);

int service_reject(struct identifier *, uint8_t reason, const void *private_data, uint8_t length, nanos now);
int service_disconnect(struct identifier *, nanos now);

/* Notes an asynchronous event of the program's queue pair: IBV_EVENT_COMM_EST replaces the peer's last message. */
int service_notify(struct identifier *, enum ibv_event_type, nanos now);

#endif
