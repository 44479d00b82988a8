#include "abi/ucma/ucma.h"

#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_call.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "runtime/clock.h"

struct command {
    const char *name; /* of the function of librdmacm that writes it; NULL: nobody is told of its refusal */
    int (*serve)(struct ucma_call *);
    uint16_t in;       /* bytes of the layout */
    uint16_t least_in; /* of its oldest form */
    uint16_t least_out;
    bool waits; /* is served outside of the lock */
};

#define COMMAND(written_by, function, layout, least, answer)                                                           \
    {                                                                                                                  \
        .name = written_by, .serve = function, .in = sizeof(struct layout), .least_in = least, .least_out = answer     \
    }
#define WHOLE(name, function, layout, answer) COMMAND(name, function, layout, sizeof(struct layout), answer)

enum {
    NO_ANSWER = 0,
    WITHOUT_ECE = sizeof(struct ucma_ece),
    REPORTED = sizeof(struct ucma_reported),
    ROUTE_ANSWER = offsetof(struct ucma_route_response, device_index),
    EVENT_ANSWER = offsetof(struct ucma_event_response, reserved),
};

static const struct command commands[UCMA_COMMANDS] = {
    [UCMA_CREATE_ID] = WHOLE("rdma_create_id", ucma_create_id, ucma_create_id, sizeof(struct ucma_id)),
    [UCMA_DESTROY_ID] = WHOLE("rdma_destroy_id", ucma_destroy_id, ucma_named, REPORTED),
    [UCMA_BIND_IP] = WHOLE("rdma_bind_addr", ucma_bind_ip, ucma_bind_ip, NO_ANSWER),
    [UCMA_RESOLVE_IP] = WHOLE("rdma_resolve_addr", ucma_resolve_ip, ucma_resolve_ip, NO_ANSWER),
    [UCMA_RESOLVE_ROUTE] = WHOLE("rdma_resolve_route", ucma_resolve_route, ucma_valued, NO_ANSWER),
    [UCMA_QUERY_ROUTE] = WHOLE(NULL, ucma_query_route, ucma_named, ROUTE_ANSWER),
    [UCMA_CONNECT] =
        COMMAND("rdma_connect", ucma_connect, ucma_connect, sizeof(struct ucma_connect) - WITHOUT_ECE, NO_ANSWER),
    [UCMA_LISTEN] = WHOLE("rdma_listen", ucma_listen, ucma_valued, NO_ANSWER),
    [UCMA_ACCEPT] =
        COMMAND("rdma_accept", ucma_accept, ucma_accept, sizeof(struct ucma_accept) - WITHOUT_ECE, NO_ANSWER),
    [UCMA_REJECT] = WHOLE("rdma_reject", ucma_reject, ucma_reject, NO_ANSWER),
    [UCMA_DISCONNECT] = WHOLE("rdma_disconnect", ucma_disconnect, ucma_id, NO_ANSWER),
    [UCMA_INIT_QP_ATTR] =
        WHOLE("rdma_init_qp_attr", ucma_init_qp_attr, ucma_named, sizeof(struct ucma_qp_attr_response)),
    [UCMA_GET_EVENT] = {NULL, ucma_get_event, sizeof(struct ucma_get_event), sizeof(struct ucma_get_event),
                        EVENT_ANSWER, true},
    [UCMA_SET_OPTION] = WHOLE("rdma_set_option", ucma_set_option, ucma_set_option, NO_ANSWER),
    [UCMA_NOTIFY] = WHOLE("rdma_notify", ucma_notify, ucma_valued, NO_ANSWER),
    [UCMA_JOIN_IP_MCAST] = WHOLE("rdma_join_multicast", ucma_join_ip, ucma_join_ip, sizeof(struct ucma_id)),
    [UCMA_LEAVE_MCAST] = WHOLE("rdma_leave_multicast", ucma_leave, ucma_named, REPORTED),
    [UCMA_MIGRATE_ID] = WHOLE("rdma_migrate_id", ucma_migrate_id, ucma_named, REPORTED),
    [UCMA_QUERY] = WHOLE(NULL, ucma_query, ucma_named, NO_ANSWER),
    [UCMA_BIND] = WHOLE("rdma_bind_addr", ucma_bind, ucma_bind, NO_ANSWER),
    [UCMA_RESOLVE_ADDR] = WHOLE("rdma_resolve_addr", ucma_resolve_addr, ucma_resolve_addr, NO_ANSWER),
    [UCMA_JOIN_MCAST] = WHOLE("rdma_join_multicast", ucma_join, ucma_join, sizeof(struct ucma_id)),
    [UCMA_RESOLVE_IB_SERVICE] =
        COMMAND("rdma_resolve_addrinfo", ucma_resolve_service, ucma_resolve_service, sizeof(uint32_t), NO_ANSWER),
    [UCMA_WRITE_CM_EVENT] = COMMAND("rdma_write_cm_event", ucma_write_event, ucma_write_event,
                                    offsetof(struct ucma_write_event, rest), NO_ANSWER),
};

/* Programs disconnect what has disconnected, and try addresses and ports until one is to be had: that is no warning.
 * Under the lock of the connection manager. */
static void log_refusal(const struct command *command, const struct identifier *identifier, int error)
{
    bool usual = error != EINVAL || command->serve == ucma_disconnect;
    enum log_level level = usual ? LOG_INFO : LOG_WARN;
    if (!log_wanted(level) || !command->name)
        return;
    if (identifier)
        log_reason(level, REASON_CM_CALL_REFUSED, "%s of identifier %u, whose state is \"%s\": %s", command->name,
                   identifier_number(identifier), identifier_state_name(identifier->state), strerror(error));
    else
        log_reason(level, REASON_CM_CALL_REFUSED, "%s: %s", command->name, strerror(error));
}

static void let_fetch(const struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    event_channel_let_fetch(call->channel, in->id);
}

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
    if (command->serve == ucma_destroy_id)
        let_fetch(call);
    cm_begin(call->channel->cm);
    int error = command->serve(call);
    if (error)
        log_refusal(command, call->identifier, error);
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
