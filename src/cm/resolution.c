#include "cm/resolution.h"

#include <errno.h>
#include <string.h>

#include "cm/connection.h"

enum { PKEY = 0xffff };

/* How long an answer may take, as in Linux's CM. */
static nanos answer_time(void)
{
    enum { CODE = 20 };
    return connection_wait(CODE);
}

const char *resolution_state_name(enum resolution_state state)
{
    static const char *const names[RESOLUTION_STATES] = {
        [RESOLUTION_IDLE] = "idle",
        [RESOLUTION_SENT] = "SIDR_REQ sent",
        [RESOLUTION_RCVD] = "SIDR_REQ rcvd",
        [RESOLUTION_ANSWERED] = "SIDR_REP sent",
    };
    return state < RESOLUTION_STATES ? names[state] : "unknown";
}

void resolution_initialize(struct resolution *resolution, const struct resolution_operations *operations)
{
    *resolution = (struct resolution){.operations = operations, .deadline = NANOS_NEVER};
}

void resolution_ask(struct resolution *resolution, uint64_t service, uint64_t transaction, uint32_t request,
                    const struct cm_parameters *parameters, unsigned retries, nanos now)
{
    resolution->state = RESOLUTION_SENT;
    resolution->service = service;
    resolution->transaction = transaction;
    resolution->request = request;
    resolution->parameters = *parameters;
    resolution->retries = (uint8_t)retries;
    resolution->pending = true;
    resolution->deadline = now + answer_time();
}

void resolution_asked(struct resolution *resolution, const struct cm_message *message)
{
    resolution->state = RESOLUTION_RCVD;
    resolution->service = message->sidr_req.service;
    resolution->transaction = message->transaction;
    resolution->request = message->local_id;
}

int resolution_answer(struct resolution *resolution, enum cm_sidr_status status, const struct cm_parameters *parameters)
{
    if (resolution->state != RESOLUTION_RCVD)
        return EINVAL;
    resolution->state = RESOLUTION_ANSWERED;
    resolution->status = (uint8_t)status;
    resolution->parameters = *parameters;
    resolution->pending = true;
    return 0;
}

void resolution_abandon(struct resolution *resolution, nanos now)
{
    static const struct cm_parameters none;
    resolution->abandoned = true;
    resolution->deadline = NANOS_NEVER;
    if (resolution->state == RESOLUTION_RCVD)
        resolution_answer(resolution, CM_SIDR_REJECTED, &none);
    if (resolution->state == RESOLUTION_SENT)
        resolution->pending = false;
}

bool resolution_goodbye(const struct resolution *resolution, struct cm_message *message)
{
    struct resolution copy = *resolution;
    copy.pending = false;
    resolution_abandon(&copy, 0);
    return resolution_transmit(&copy, message);
}

bool resolution_is_finished(const struct resolution *resolution)
{
    return resolution->abandoned && !resolution->pending;
}

static void end(struct resolution *resolution, const struct cm_message *reply)
{
    resolution->state = RESOLUTION_IDLE;
    resolution->deadline = NANOS_NEVER;
    resolution->pending = false;
    if (!resolution->abandoned)
        resolution->operations->resolved(resolution, reply);
}

void resolution_bereave(struct resolution *resolution, nanos now)
{
    if (resolution->state == RESOLUTION_SENT)
        end(resolution, NULL);
    else if (resolution->state == RESOLUTION_RCVD)
        resolution->state = RESOLUTION_IDLE;
}

bool resolution_receive(struct resolution *resolution, const struct cm_message *message, nanos now)
{
    if (message->attribute == CM_SIDR_REP && resolution->state == RESOLUTION_SENT)
        end(resolution, message);
    else if (message->attribute == CM_SIDR_REQ && resolution->state == RESOLUTION_ANSWERED)
        resolution->pending = true;
    else
        return false;
    return true;
}

void resolution_expire(struct resolution *resolution, nanos now)
{
    if (now < resolution->deadline)
        return;
    if (!resolution->retries--) {
        end(resolution, NULL);
        return;
    }
    resolution->pending = true;
    resolution->deadline = now + answer_time();
}

static void write_request(const struct resolution *resolution, struct cm_message *message)
{
    message->attribute = CM_SIDR_REQ;
    message->local_id = resolution->request;
    message->sidr_req = (struct cm_sidr_req){.pkey = PKEY, .service = resolution->service};
}

static void write_reply(const struct resolution *resolution, struct cm_message *message)
{
    message->attribute = CM_SIDR_REP;
    message->remote_id = resolution->request;
    message->sidr_rep = (struct cm_sidr_rep){.status = resolution->status, .service = resolution->service};
    if (resolution->status != CM_SIDR_VALID)
        return;
    message->modifier = resolution->ece.options;
    message->sidr_rep.vendor = resolution->ece.vendor;
    message->sidr_rep.qpn = resolution->parameters.qpn & CM_QPN_MASK;
    message->sidr_rep.qkey = resolution->parameters.qkey;
}

bool resolution_transmit(struct resolution *resolution, struct cm_message *message)
{
    if (!resolution->pending)
        return false;
    resolution->pending = false;
    *message = (struct cm_message){.transaction = resolution->transaction};
    memcpy(message->private_data, resolution->parameters.private_data, resolution->parameters.private_length);
    if (resolution->state == RESOLUTION_SENT)
        write_request(resolution, message);
    else
        write_reply(resolution, message);
    return true;
}
