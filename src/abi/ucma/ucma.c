#include "abi/ucma/ucma.h"

#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_call.h"
#include "base/uncancelled.h"
#include "runtime/clock.h"

struct command {
    int (*serve)(struct ucma_call *);
    uint16_t in;       /* bytes of the layout */
    uint16_t least_in; /* of its oldest form */
    uint16_t least_out;
    bool waits; /* is served outside of the lock */
};

#define COMMAND(function, layout, least, answer)                                                                       \
    {                                                                                                                  \
        .serve = function, .in = sizeof(struct layout), .least_in = least, .least_out = answer                         \
    }
#define WHOLE(function, layout, answer) COMMAND(function, layout, sizeof(struct layout), answer)

enum {
    NO_ANSWER = 0,
    WITHOUT_ECE = sizeof(struct ucma_ece),
    REPORTED = sizeof(struct ucma_reported),
    ROUTE_ANSWER = offsetof(struct ucma_route_response, device_index),
    EVENT_ANSWER = offsetof(struct ucma_event_response, reserved),
};

static const struct command commands[UCMA_COMMANDS] = {
    [UCMA_CREATE_ID] = WHOLE(ucma_create_id, ucma_create_id, sizeof(struct ucma_id)),
    [UCMA_DESTROY_ID] = WHOLE(ucma_destroy_id, ucma_named, REPORTED),
    [UCMA_BIND_IP] = WHOLE(ucma_bind_ip, ucma_bind_ip, NO_ANSWER),
    [UCMA_RESOLVE_IP] = WHOLE(ucma_resolve_ip, ucma_resolve_ip, NO_ANSWER),
    [UCMA_RESOLVE_ROUTE] = WHOLE(ucma_resolve_route, ucma_valued, NO_ANSWER),
    [UCMA_QUERY_ROUTE] = WHOLE(ucma_query_route, ucma_named, ROUTE_ANSWER),
    [UCMA_CONNECT] = COMMAND(ucma_connect, ucma_connect, sizeof(struct ucma_connect) - WITHOUT_ECE, NO_ANSWER),
    [UCMA_LISTEN] = WHOLE(ucma_listen, ucma_valued, NO_ANSWER),
    [UCMA_ACCEPT] = COMMAND(ucma_accept, ucma_accept, sizeof(struct ucma_accept) - WITHOUT_ECE, NO_ANSWER),
    [UCMA_REJECT] = WHOLE(ucma_reject, ucma_reject, NO_ANSWER),
    [UCMA_DISCONNECT] = WHOLE(ucma_disconnect, ucma_id, NO_ANSWER),
    [UCMA_INIT_QP_ATTR] = WHOLE(ucma_init_qp_attr, ucma_named, sizeof(struct ucma_qp_attr_response)),
    [UCMA_GET_EVENT] = {ucma_get_event, sizeof(struct ucma_get_event), sizeof(struct ucma_get_event), EVENT_ANSWER,
                        true},
    [UCMA_SET_OPTION] = WHOLE(ucma_set_option, ucma_set_option, NO_ANSWER),
    [UCMA_NOTIFY] = WHOLE(ucma_notify, ucma_valued, NO_ANSWER),
    [UCMA_JOIN_IP_MCAST] = WHOLE(ucma_join_ip, ucma_join_ip, sizeof(struct ucma_id)),
    [UCMA_LEAVE_MCAST] = WHOLE(ucma_leave, ucma_named, REPORTED),
    [UCMA_MIGRATE_ID] = WHOLE(ucma_migrate_id, ucma_named, REPORTED),
    [UCMA_QUERY] = WHOLE(ucma_query, ucma_named, NO_ANSWER),
    [UCMA_BIND] = WHOLE(ucma_bind, ucma_bind, NO_ANSWER),
    [UCMA_RESOLVE_ADDR] = WHOLE(ucma_resolve_addr, ucma_resolve_addr, NO_ANSWER),
    [UCMA_JOIN_MCAST] = WHOLE(ucma_join, ucma_join, sizeof(struct ucma_id)),
    [UCMA_RESOLVE_IB_SERVICE] = COMMAND(ucma_resolve_service, ucma_resolve_service, sizeof(uint32_t), NO_ANSWER),
    [UCMA_WRITE_CM_EVENT] =
        COMMAND(ucma_write_event, ucma_write_event, offsetof(struct ucma_write_event, rest), NO_ANSWER),
};

/* The program may write the command again while it is served, so a copy is taken. */
static int serve(struct ucma_call *call, const struct command *command, const uint8_t *bytes, size_t length)
{
    _Alignas(8) uint8_t copy[sizeof(struct ucma_write_event)] = {0};
    memcpy(copy, bytes, length < command->in ? length : command->in);
    call->in = copy;
    call->now = clock_now();
    if (command->waits)
        return command->serve(call);
    int before = uncancelled_begin();
    cm_begin(call->channel->cm);
    int error = command->serve(call);
    cm_end(call->channel->cm);
    uncancelled_end(before);
    return error;
}

int ucma_write(struct event_channel *channel, int fd, const void *bytes, size_t length)
{
    struct ucma_header header;
    if (length < sizeof header)
        return EINVAL;
    memcpy(&header, bytes, sizeof header);
    if (header.command >= UCMA_COMMANDS || header.in + sizeof header > length)
        return EINVAL;
    const struct command *command = &commands[header.command];
    if (!command->serve)
        return ENOSYS;
    if (cm_is_inherited(channel->cm) && !(command->waits && cm_is_over(channel->cm)))
        return EIO;
    if (header.in < command->least_in)
        return EINVAL;
    if (header.out < command->least_out)
        return ENOSPC;
    struct ucma_call call = {.channel = channel, .fd = fd, .out = header.out};
    return serve(&call, command, (const uint8_t *)bytes + sizeof header, header.in);
}
