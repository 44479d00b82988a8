/* Commands of identifiers that reach out to a peer. Their effect depends on the service: connections (connect.h), or
 * datagrams (resolve.h). Returns, and `now`, are as in identifier.h. */
#ifndef CM_SERVICE_H
#define CM_SERVICE_H

#include "cm/identifier.h"

struct service_operations {
    /* Of the private data of the first message that the program has, with and without the header of IP addressing, and
     * of that of accepting and rejecting: the most bytes, which callers of the functions keep. */
    uint8_t request_private, accept_private, reject_private;
    const char *(*state)(const struct session *); /* in words */
    /* The reason of the peer's REJ, by which it ended; 0: none came. NULL: the service has no REJ. */
    uint16_t (*rejected)(const struct session *);

    /* 0; ENOMEM; or, with nothing changed or logged, EINVAL: the session is in another state, EISCONN. */
    int (*connect)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*accept)(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);
    int (*confirm)(struct identifier *, nanos now);
    int (*reject)(struct identifier *, uint16_t reason, const void *private_data, uint8_t length, nanos now);
    void (*disconnect)(struct identifier *, nanos now);
    int (*establish)(struct identifier *, nanos now); /* NULL: there is nothing to establish */
};

int service_connect(struct identifier *, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Of a request: answers it, with the identifier's events named by `uid` from then on. A failure rejects the peer. */
int service_accept(struct identifier *, uint64_t uid, const struct cm_parameters *, const struct cm_ece *, nanos now);

/* Of an active one, after CONNECT_RESPONSE. A failure rejects the peer. */
int service_confirm(struct identifier *, nanos now);

int service_reject(struct identifier *, uint8_t reason, const void *private_data, uint8_t length, nanos now);
int service_disconnect(struct identifier *, nanos now);

/* The program's queue pair had an asynchronous event: IBV_EVENT_COMM_EST is as good as the peer's last message. */
int service_notify(struct identifier *, enum ibv_event_type, nanos now);

#endif
