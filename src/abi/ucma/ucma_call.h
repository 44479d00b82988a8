/* One command of librdmacm, as the functions that serve it see it: its bytes, complete with zeros, and where the answer
 * goes. For ucma*.c only. */
#ifndef ABI_UCMA_UCMA_CALL_H
#define ABI_UCMA_UCMA_CALL_H

#include <stddef.h>

#include "abi/ucma/event_channel.h"
#include "abi/ucma/ucma_layout.h"
#include "gsi/cm.h"

struct ucma_call {
    struct event_channel *channel;
    int fd;         /* as the program named the channel */
    const void *in; /* as long as the layout of the command */
    size_t out;     /* bytes of room for the answer */
    nanos now;
    const struct identifier *identifier; /* the last that ucma_find found; NULL: none */
};

/* Serve one command each: 0 or a positive errno. Under the lock of the connection manager, but for GET_EVENT. */
int ucma_create_id(struct ucma_call *);
int ucma_destroy_id(struct ucma_call *);
int ucma_migrate_id(struct ucma_call *);
int ucma_bind_ip(struct ucma_call *);
int ucma_bind(struct ucma_call *);
int ucma_resolve_ip(struct ucma_call *);
int ucma_resolve_addr(struct ucma_call *);
int ucma_resolve_route(struct ucma_call *);
int ucma_listen(struct ucma_call *);
int ucma_join_ip(struct ucma_call *);
int ucma_join(struct ucma_call *);
int ucma_leave(struct ucma_call *);
int ucma_set_option(struct ucma_call *);
int ucma_query(struct ucma_call *);
int ucma_query_route(struct ucma_call *);
int ucma_init_qp_attr(struct ucma_call *);
int ucma_connect(struct ucma_call *);
int ucma_accept(struct ucma_call *);
int ucma_reject(struct ucma_call *);
int ucma_disconnect(struct ucma_call *);
int ucma_notify(struct ucma_call *);
int ucma_get_event(struct ucma_call *);
int ucma_write_event(struct ucma_call *);
int ucma_resolve_service(struct ucma_call *);

/* The channel's identifier of this number: ENOENT, or EINVAL when it is another channel's. */
int ucma_find(struct ucma_call *, uint32_t number, struct identifier **);

/* Writes the answer to the program's memory, as much of it as there is room for. */
void ucma_respond(const struct ucma_call *, uint64_t response, const void *answer, size_t length);

#endif
