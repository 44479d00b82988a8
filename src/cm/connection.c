#include "cm/connection.h"

#include <errno.h>
#include <string.h>

#include "cm/connection_pending.h"

const char *connection_state_name(enum connection_state state)
{
    static const char *const names[CONNECTION_STATES] = {
        [CONNECTION_IDLE] = "idle",           [CONNECTION_REQ_SENT] = "REQ sent",
        [CONNECTION_REQ_RCVD] = "REQ rcvd",   [CONNECTION_REP_SENT] = "REP sent",
        [CONNECTION_REP_RCVD] = "REP rcvd",   [CONNECTION_ESTABLISHED] = "established",
        [CONNECTION_DREQ_SENT] = "DREQ sent", [CONNECTION_DREQ_RCVD] = "DREQ rcvd",
        [CONNECTION_TIMEWAIT] = "timewait"};
    return state < CONNECTION_STATES ? names[state] : "unknown";
}

uint8_t connection_ack_timeout(uint8_t ack_delay, uint8_t lifetime)
{
    unsigned flight = lifetime + 1u, longer = flight > ack_delay ? flight : ack_delay;
    unsigned shorter = flight > ack_delay ? ack_delay : flight;
    unsigned code = longer + (shorter + 1 >= longer);
    return (uint8_t)(code < 31 ? code : 31);
}

static void report(struct connection *connection, enum connection_outcome outcome, int status,
                   const struct cm_message *message)
{
    if (!connection->abandoned)
        connection->operations->outcome(connection, outcome, status, message);
}

/* --- states and their deadlines */

static void connection_enter(struct connection *connection, enum connection_state state, nanos now)
{
    if (connection->operations->event && connection->state != state)
        connection->operations->event(connection, EVENT_CONNECTION_STATE, connection->state, state);
    connection->state = state;
    connection->since = now;
    connection->mra_came = false;
    connection->pending &= PENDING_RTU | PENDING_REJ | PENDING_DREP; /* other messages are too late */
    connection->deadline = NANOS_NEVER;
}

static void send_and_wait(struct connection *connection, enum connection_state state, enum pending message, nanos now)
{
    connection_enter(connection, state, now);
    connection->pending |= message;
    connection->retries = connection->max_retries;
    connection->deadline = now + connection->timeout;
}

/* The timewait lasts as long as packets of the connection may still be on their way (IBA 12.9.8.4). */
static void enter_timewait(struct connection *connection, nanos now)
{
    connection_enter(connection, CONNECTION_TIMEWAIT, now);
    nanos longer = connection->operations->linger ? connection->operations->linger(connection) : 0;
    connection->deadline = now + connection_wait(connection->agreed.ack_timeout) + longer;
}

static bool retransmit(struct connection *connection, enum pending message, nanos now)
{
    if (!connection->retries)
        return false;
    connection->retries--;
    connection->pending |= message;
    connection->deadline = now + connection->timeout;
    return true;
}

void connection_expire(struct connection *connection, nanos now)
{
    if (now < connection->deadline)
        return;
    connection->deadline = NANOS_NEVER;
    switch (connection->state) {
    case CONNECTION_REQ_SENT:
    case CONNECTION_REP_SENT:
        if (retransmit(connection, connection->state == CONNECTION_REQ_SENT ? PENDING_REQ : PENDING_REP, now))
            return;
        connection_enter(connection, CONNECTION_IDLE, now);
        report(connection, CONNECTION_UNREACHABLE, -ETIMEDOUT, NULL);
        return;
    case CONNECTION_DREQ_SENT:
        if (retransmit(connection, PENDING_DREQ, now))
            return;
        enter_timewait(connection, now);
        report(connection, CONNECTION_DISCONNECTED, -ETIMEDOUT, NULL);
        return;
    case CONNECTION_TIMEWAIT:
        connection_enter(connection, CONNECTION_IDLE, now);
        report(connection, CONNECTION_OVER, 0, NULL);
        return;
    default: /* no deadline */
        return;
    }
}

/* --- what the owner asks for */

void connection_initialize(struct connection *connection, const struct connection_operations *operations)
{
    *connection = (struct connection){.operations = operations, .deadline = NANOS_NEVER};
}

static void agree(struct connection *connection, const struct cm_parameters *parameters)
{
    connection->parameters = *parameters;
    connection->local.qpn = parameters->qpn & CM_QPN_MASK;
    connection->agreed.responder_resources = parameters->responder_resources;
    connection->agreed.initiator_depth = parameters->initiator_depth;
}

/* The wait for an answer is the time that the peer may need, and the time there and back. */
void connection_request(struct connection *connection, const struct cm_req *req, const struct cm_parameters *parameters,
                        nanos now)
{
    agree(connection, parameters);
    connection->active = true;
    connection->req = *req;
    connection->extended = req->transport == CM_TRANSPORT_EXTENDED;
    connection->max_retries = req->max_cm_retries;
    connection->agreed.mtu = req->mtu;
    connection->agreed.ack_timeout = req->primary.ack_timeout;
    connection->agreed.retry_count = parameters->retry_count;
    connection->agreed.rnr_retry_count = parameters->rnr_retry_count;
    uint8_t lifetime = (uint8_t)(req->primary.ack_timeout - (req->primary.ack_timeout > 0));
    connection->timeout = 2 * connection_wait(lifetime) + connection_wait(req->remote_response_timeout);
    send_and_wait(connection, CONNECTION_REQ_SENT, PENDING_REQ, now);
}

/* The depths change places: the number of READs that one end answers is the number that the other may request. */
void connection_requested(struct connection *connection, const struct cm_message *message, nanos now)
{
    const struct cm_req *req = &message->req;
    connection->transaction = message->transaction;
    connection->remote = (struct connection_end){
        .communication_id = message->local_id, .qpn = req->qpn, .psn = req->starting_psn, .guid = req->guid};
    connection->extended = req->transport == CM_TRANSPORT_EXTENDED;
    connection->max_retries = req->max_cm_retries;
    connection->agreed.mtu = req->mtu;
    connection->agreed.ack_timeout = req->primary.ack_timeout;
    connection->agreed.retry_count = req->retry_count;
    connection->agreed.rnr_retry_count = req->rnr_retry_count;
    connection->agreed.responder_resources = req->initiator_depth;
    connection->agreed.initiator_depth = req->responder_resources;
    connection->timeout = connection_wait(req->local_response_timeout);
    connection_enter(connection, CONNECTION_REQ_RCVD, now);
}

int connection_accept(struct connection *connection, const struct cm_parameters *parameters, nanos now)
{
    if (connection->state != CONNECTION_REQ_RCVD)
        return EINVAL;
    agree(connection, parameters);
    send_and_wait(connection, CONNECTION_REP_SENT, PENDING_REP, now);
    return 0;
}

int connection_confirm(struct connection *connection, nanos now)
{
    if (connection->state != CONNECTION_REP_RCVD)
        return EINVAL;
    connection_enter(connection, CONNECTION_ESTABLISHED, now);
    connection->pending |= PENDING_RTU;
    return 0;
}

int connection_establish(struct connection *connection, nanos now)
{
    if (connection->state == CONNECTION_ESTABLISHED)
        return EISCONN;
    if (connection->state != CONNECTION_REP_SENT)
        return EINVAL;
    connection_enter(connection, CONNECTION_ESTABLISHED, now);
    report(connection, CONNECTION_COMPLETE, 0, NULL);
    return 0;
}

static enum cm_about about(const struct connection *connection)
{
    if (connection->state == CONNECTION_REQ_RCVD)
        return CM_ABOUT_REQ;
    return connection->state == CONNECTION_REP_RCVD ? CM_ABOUT_REP : CM_ABOUT_OTHER;
}

int connection_reject(struct connection *connection, uint16_t reason, const void *private_data, uint8_t length,
                      nanos now)
{
    if (connection->state < CONNECTION_REQ_SENT || connection->state > CONNECTION_REP_RCVD)
        return EINVAL;
    bool sent = connection->state == CONNECTION_REP_SENT;
    connection->rejection.reason = reason;
    connection->rejection.about = (uint8_t)about(connection);
    connection->parameters.private_length = length;
    if (length)
        memcpy(connection->parameters.private_data, private_data, length);
    connection->pending |= PENDING_REJ;
    if (sent)
        enter_timewait(connection, now); /* the peer may have the REP, and may send packets */
    else
        connection_enter(connection, CONNECTION_IDLE, now);
    return 0;
}

static void send_goodbye(struct connection *connection, nanos now)
{
    connection->pending |= PENDING_DREP;
    enter_timewait(connection, now);
}

void connection_disconnect(struct connection *connection, nanos now)
{
    if (connection->state == CONNECTION_ESTABLISHED) {
        connection->disconnect_transaction = (uint64_t)connection->agent << 32 | connection->local.communication_id;
        send_and_wait(connection, CONNECTION_DREQ_SENT, PENDING_DREQ, now);
    } else if (connection->state == CONNECTION_DREQ_RCVD)
        send_goodbye(connection, now);
}

/* An established connection sends one DREQ, without waiting for the answer. */
void connection_abandon(struct connection *connection, nanos now)
{
    connection->abandoned = true;
    if (connection->state == CONNECTION_REQ_SENT)
        connection_reject(connection, CM_REJECT_TIMEOUT, NULL, 0, now);
    else if (connection->state <= CONNECTION_REP_RCVD)
        connection_reject(connection, CM_REJECT_CONSUMER, NULL, 0, now);
    else
        connection_disconnect(connection, now);
    if (connection->state != CONNECTION_DREQ_SENT)
        return;
    unsigned pending = connection->pending;
    enter_timewait(connection, now);
    connection->pending |= pending & PENDING_DREQ;
}

/* Acts on a copy, which reports to no owner. Writes a sent DREQ or DREP again, as it may be lost, and no process would
 * repeat it. */
bool connection_goodbye(const struct connection *connection, struct cm_message *message)
{
    static const struct connection_operations silent = {NULL, NULL, NULL};
    struct connection copy = *connection;
    copy.operations = &silent;
    copy.pending = 0;
    if (copy.state == CONNECTION_DREQ_SENT && !copy.abandoned)
        copy.pending = PENDING_DREQ;
    else if (copy.state == CONNECTION_TIMEWAIT && copy.parting)
        copy.pending = copy.parting == CONNECTION_DREQ_CAME ? PENDING_DREP : 0;
    else if (!copy.abandoned)
        connection_abandon(&copy, 0);
    return connection_transmit(&copy, message);
}

bool connection_is_finished(const struct connection *connection)
{
    return connection->abandoned && connection->state == CONNECTION_IDLE && !connection->pending;
}

/* A connection in the making is rejected, an established one is disconnected. */
void connection_bereave(struct connection *connection, nanos now)
{
    switch (connection->state) {
    case CONNECTION_REQ_SENT:
    case CONNECTION_REQ_RCVD:
    case CONNECTION_REP_SENT:
    case CONNECTION_REP_RCVD:
        connection_enter(connection, CONNECTION_IDLE, now);
        report(connection, CONNECTION_REJECTED, CM_REJECT_CONSUMER, NULL);
        return;
    case CONNECTION_ESTABLISHED:
    case CONNECTION_DREQ_SENT:
        enter_timewait(connection, now);
        report(connection, CONNECTION_DISCONNECTED, 0, NULL);
        return;
    case CONNECTION_DREQ_RCVD:
        enter_timewait(connection, now);
        return;
    default:
        return;
    }
}

/* --- messages that arrive */

static bool is_from_peer(const struct connection *connection, const struct cm_message *message)
{
    return connection->remote.communication_id == message->local_id;
}

/* Takes an MRA: the peer's answer to our REQ or REP takes longer, so this end waits longer. */
static void receive_mra(struct connection *connection, const struct cm_message *mra, nanos now)
{
    bool waits =
        (connection->state == CONNECTION_REQ_SENT && mra->mra.about == CM_ABOUT_REQ) ||
        (connection->state == CONNECTION_REP_SENT && mra->mra.about == CM_ABOUT_REP && is_from_peer(connection, mra));
    if (!waits || connection->mra_came)
        return;
    connection->mra_came = true;
    connection->deadline =
        now + connection_wait(mra->mra.service_timeout) + connection_wait(connection->agreed.ack_timeout);
}

/* Takes a repeated REP: the RTU was lost, or the program has not confirmed yet. */
static void receive_rep_again(struct connection *connection, const struct cm_message *message)
{
    if (!connection->active || !is_from_peer(connection, message))
        return;
    if (connection->state == CONNECTION_ESTABLISHED)
        connection->pending |= PENDING_RTU;
    else if (connection->state == CONNECTION_REP_RCVD)
        connection->pending |= PENDING_MRA;
}

static void receive_rep(struct connection *connection, const struct cm_message *message, nanos now)
{
    const struct cm_rep *rep = &message->rep;
    if (connection->state != CONNECTION_REQ_SENT) {
        receive_rep_again(connection, message);
        return;
    }
    connection_enter(connection, CONNECTION_REP_RCVD, now);
    connection->remote = (struct connection_end){.communication_id = message->local_id,
                                                 .qpn = connection->extended ? rep->eecn : rep->qpn,
                                                 .psn = rep->starting_psn,
                                                 .guid = rep->guid};
    connection->agreed.responder_resources = rep->initiator_depth;
    connection->agreed.initiator_depth = rep->responder_resources;
    connection->agreed.rnr_retry_count = rep->rnr_retry_count;
    uint8_t lifetime = (uint8_t)(connection->agreed.ack_timeout - (connection->agreed.ack_timeout > 0));
    connection->agreed.ack_timeout = connection_ack_timeout(rep->target_ack_delay, lifetime);
    report(connection, CONNECTION_ANSWERED, 0, message);
}

static void receive_rtu(struct connection *connection, const struct cm_message *message, nanos now)
{
    if (connection->state != CONNECTION_REP_SENT || !is_from_peer(connection, message))
        return;
    connection_enter(connection, CONNECTION_ESTABLISHED, now);
    report(connection, CONNECTION_COMPLETE, 0, message);
}

/* A REJ of a REQ, or of a requester that gave up, need not have the peer's communication ID. */
static bool may_reject(const struct connection *connection, const struct cm_message *message)
{
    return message->rej.about == CM_ABOUT_REQ || message->rej.reason == CM_REJECT_TIMEOUT ||
           is_from_peer(connection, message);
}

static void receive_rej(struct connection *connection, const struct cm_message *message, nanos now)
{
    if (!may_reject(connection, message))
        return;
    switch (connection->state) {
    case CONNECTION_REQ_SENT:
    case CONNECTION_REQ_RCVD:
    case CONNECTION_REP_SENT:
        if (message->rej.reason == CM_REJECT_STALE)
            enter_timewait(connection, now);
        else
            connection_enter(connection, CONNECTION_IDLE, now);
        break;
    case CONNECTION_REP_RCVD:
    case CONNECTION_ESTABLISHED:
    case CONNECTION_DREQ_SENT:
        enter_timewait(connection, now);
        break;
    default:
        return;
    }
    connection->peers_reason = message->rej.reason;
    report(connection, CONNECTION_REJECTED, message->rej.reason, message);
}

static void receive_dreq(struct connection *connection, const struct cm_message *message, nanos now)
{
    if (!is_from_peer(connection, message) || message->dreq.remote_qpn != connection->local.qpn)
        return;
    connection->parting |= CONNECTION_DREQ_CAME;
    switch (connection->state) {
    case CONNECTION_REP_SENT:
    case CONNECTION_ESTABLISHED:
    case CONNECTION_DREQ_SENT:
        connection->disconnect_transaction = message->transaction;
        connection_enter(connection, CONNECTION_DREQ_RCVD, now);
        report(connection, CONNECTION_DISCONNECTED, 0, message);
        return;
    case CONNECTION_TIMEWAIT:
        connection->disconnect_transaction = message->transaction;
        connection->pending |= PENDING_DREP;
        return;
    default: /* DREQ_RCVD: the program decides when to answer */
        return;
    }
}

static void receive_drep(struct connection *connection, const struct cm_message *message, nanos now)
{
    if (!is_from_peer(connection, message))
        return;
    if (connection->state >= CONNECTION_DREQ_SENT)
        connection->parting |= CONNECTION_DREP_CAME;
    if (connection->state != CONNECTION_DREQ_SENT && connection->state != CONNECTION_DREQ_RCVD)
        return;
    bool waited = connection->state == CONNECTION_DREQ_SENT;
    enter_timewait(connection, now);
    if (waited)
        report(connection, CONNECTION_DISCONNECTED, 0, message);
}

/* Takes a repeated REQ: the program has not answered yet, or the REP was lost, which is repeated by its timer. */
static void receive_req_again(struct connection *connection, const struct cm_message *message, nanos now)
{
    if (connection->state == CONNECTION_REQ_RCVD && !connection->active)
        connection->pending |= PENDING_MRA;
}

/* Other messages mean nothing to a connection, or concern alternate paths, which are not supported. */
static void (*const receivers[])(struct connection *, const struct cm_message *, nanos now) = {
    [CM_REQ] = receive_req_again, [CM_MRA] = receive_mra,   [CM_REP] = receive_rep,   [CM_RTU] = receive_rtu,
    [CM_REJ] = receive_rej,       [CM_DREQ] = receive_dreq, [CM_DREP] = receive_drep,
};

bool connection_receive(struct connection *connection, const struct cm_message *message, nanos now)
{
    enum connection_state state = connection->state;
    unsigned pending = connection->pending;
    bool mra_came = connection->mra_came;
    uint8_t parting = connection->parting;
    if (message->attribute < sizeof receivers / sizeof *receivers && receivers[message->attribute])
        receivers[message->attribute](connection, message, now);
    return connection->state != state || connection->pending != pending || connection->mra_came != mra_came ||
           connection->parting != parting;
}
