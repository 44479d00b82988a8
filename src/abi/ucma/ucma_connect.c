/* Commands that reach out to the peer, and the events that report it. */
#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_call.h"
#include "cm/service.h"
#include "events/refusal.h"

enum { RETRIES_MOST = 7 };

static uint8_t cap(uint8_t count)
{
    return count < RETRIES_MOST ? count : RETRIES_MOST;
}

static struct cm_parameters read_parameters(const struct ucma_conn_param *in)
{
    struct cm_parameters parameters = {.qpn = in->qpn & 0xffffff,
                                       .qkey = in->qkey,
                                       .private_length = in->private_length,
                                       .responder_resources = in->responder_resources,
                                       .initiator_depth = in->initiator_depth,
                                       .retry_count = cap(in->retry_count),
                                       .rnr_retry_count = cap(in->rnr_retry_count),
                                       .flow_control = in->flow_control != 0,
                                       .srq = in->srq != 0};
    memcpy(parameters.private_data, in->private_data, in->private_length);
    return parameters;
}

int ucma_connect(struct ucma_call *call)
{
    const struct ucma_connect *in = call->in;
    struct cm_parameters parameters = read_parameters(&in->parameters);
    struct cm_ece ece = {in->ece.vendor, in->ece.options};
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    if (!in->parameters.valid)
        return refuse(EINVAL, REASON_CM_PARAMETERS, "identifier %u: valid is 0", in->id);
    return service_connect(identifier, &parameters, &ece, call->now);
}

int ucma_accept(struct ucma_call *call)
{
    const struct ucma_accept *in = call->in;
    struct cm_parameters parameters = read_parameters(&in->parameters);
    struct cm_ece ece = {in->ece.vendor, in->ece.options};
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    if (!in->parameters.valid)
        return service_confirm(identifier, call->now);
    return service_accept(identifier, in->uid, &parameters, &ece, call->now);
}

int ucma_reject(struct ucma_call *call)
{
    const struct ucma_reject *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : service_reject(identifier, in->reason, in->private_data, in->private_length, call->now);
}

int ucma_disconnect(struct ucma_call *call)
{
    const struct ucma_id *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : service_disconnect(identifier, call->now);
}

int ucma_notify(struct ucma_call *call)
{
    const struct ucma_valued *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : service_notify(identifier, in->value, call->now);
}

/* --- events */

static void write_conn(const struct cm_event *event, struct ucma_conn_param *to)
{
    const struct cm_parameters *from = &event->parameters;
    *to = (struct ucma_conn_param){.qpn = from->qpn,
                                   .qkey = from->qkey,
                                   .private_length = from->private_length,
                                   .srq = from->srq,
                                   .responder_resources = from->responder_resources,
                                   .initiator_depth = from->initiator_depth,
                                   .flow_control = from->flow_control,
                                   .retry_count = from->retry_count,
                                   .rnr_retry_count = from->rnr_retry_count};
    memcpy(to->private_data, from->private_data, from->private_length);
}

static void write_ud(const struct cm_event *event, struct ucma_ud_param *to)
{
    const struct cm_parameters *from = &event->parameters;
    *to = (struct ucma_ud_param){.qpn = from->qpn, .qkey = from->qkey, .private_length = from->private_length};
    memcpy(to->private_data, from->private_data, from->private_length);
    if (!event->has_route)
        return;
    to->ah = (struct ucma_ah_attr){.flow_label = event->route.flow_label,
                                   .sgid_index = event->route.from.gid_index,
                                   .hop_limit = event->route.hop_limit,
                                   .traffic_class = event->route.traffic_class,
                                   .is_global = 1,
                                   .port = event->route.from.number};
    memcpy(to->ah.dgid, event->route.gid, 16);
}

static void write_parameters(const struct cm_event *event, struct ucma_event_response *reply)
{
    if (event->kind == CM_USER || event->kind == CM_INTERNAL)
        memcpy(reply->argument, &event->argument, sizeof event->argument);
    else if (event->datagram)
        write_ud(event, &reply->ud);
    else
        write_conn(event, &reply->conn);
}

int ucma_get_event(struct ucma_call *call)
{
    const struct ucma_get_event *in = call->in;
    struct cm_event event;
    int error = event_channel_wait(call->channel, call->fd, &event);
    if (error)
        return error;
    struct ucma_event_response reply = {.uid = event.uid,
                                        .id = event.number,
                                        .event = event.kind,
                                        .status = event.status,
                                        .ece = {event.ece.vendor, event.ece.options}};
    write_parameters(&event, &reply);
    ucma_respond(call, in->response, &reply, sizeof reply);
    return 0;
}

int ucma_write_event(struct ucma_call *call)
{
    const struct ucma_write_event *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    if (in->event != CM_USER && in->event != CM_INTERNAL)
        return refuse(EINVAL, REASON_CM_WRITE_EVENT, "identifier %u: event %u", in->id, in->event);
    struct cm_event *event = identifier_event(identifier, in->event, in->status);
    if (!event)
        return ENOMEM;
    event->argument = in->argument;
    event_push(event);
    return 0;
}
