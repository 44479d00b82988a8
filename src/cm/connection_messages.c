/* The messages of a connection: each message is a function of its state. */
#include <string.h>

#include "cm/connection.h"
#include "cm/connection_pending.h"

enum { MRA_TIMEOUT = 24 }; /* code of the time that a program may take to answer */

static void put_private(const struct connection *connection, struct cm_message *message)
{
    memcpy(message->private_data, connection->parameters.private_data, connection->parameters.private_length);
}

static void write_req(const struct connection *connection, struct cm_message *message)
{
    message->remote_id = 0;
    message->req = connection->req;
    message->req.vendor = connection->ece.vendor;
    message->modifier = connection->ece.options;
    put_private(connection, message);
}

static void write_rep(const struct connection *connection, struct cm_message *message)
{
    const struct cm_parameters *parameters = &connection->parameters;
    message->modifier = connection->ece.options;
    message->rep = (struct cm_rep){.vendor = connection->ece.vendor,
                                   .qkey = parameters->qkey,
                                   .starting_psn = connection->local.psn,
                                   .responder_resources = parameters->responder_resources,
                                   .target_ack_delay = connection->target_ack_delay,
                                   .rnr_retry_count = parameters->rnr_retry_count,
                                   .guid = connection->local.guid,
                                   .srq = parameters->srq || connection->extended};
    if (connection->extended)
        message->rep.eecn = connection->local.qpn;
    else {
        message->rep.qpn = connection->local.qpn;
        message->rep.initiator_depth = parameters->initiator_depth;
        message->rep.flow_control = parameters->flow_control;
    }
    put_private(connection, message);
}

/* A peer whose answer to our REQ has not arrived knows that REQ by our GUID and communication ID only. */
static void write_rej(const struct connection *connection, struct cm_message *message)
{
    message->rej = (struct cm_rej){.about = connection->rejection.about, .reason = connection->rejection.reason};
    if (connection->rejection.reason == CM_REJECT_TIMEOUT) {
        message->rej.information_length = sizeof(uint64_t);
        for (unsigned i = 0; i < sizeof(uint64_t); i++)
            message->rej.information[i] = (uint8_t)(connection->local.guid >> (56 - 8 * i));
    }
    put_private(connection, message);
}

static void write_mra(const struct connection *connection, struct cm_message *message)
{
    message->mra =
        (struct cm_mra){.about = connection->active ? CM_ABOUT_REP : CM_ABOUT_REQ, .service_timeout = MRA_TIMEOUT};
}

static void write_dreq(const struct connection *connection, struct cm_message *message)
{
    message->transaction = connection->disconnect_transaction;
    message->dreq.remote_qpn = connection->remote.qpn;
}

static void write_drep(const struct connection *connection, struct cm_message *message)
{
    message->transaction = connection->disconnect_transaction;
}

static const struct {
    enum pending pending;
    enum cm_attribute attribute;
    void (*write)(const struct connection *, struct cm_message *); /* NULL: only the communication IDs */
} messages[] = {
    {PENDING_REQ, CM_REQ, write_req},    {PENDING_MRA, CM_MRA, write_mra}, {PENDING_REP, CM_REP, write_rep},
    {PENDING_RTU, CM_RTU, NULL},         {PENDING_REJ, CM_REJ, write_rej}, {PENDING_DREQ, CM_DREQ, write_dreq},
    {PENDING_DREP, CM_DREP, write_drep},
};

bool connection_transmit(struct connection *connection, struct cm_message *message)
{
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (!(connection->pending & messages[i].pending))
            continue;
        connection->pending &= (uint16_t)~messages[i].pending;
        *message = (struct cm_message){.attribute = messages[i].attribute,
                                       .transaction = connection->transaction,
                                       .local_id = connection->local.communication_id,
                                       .remote_id = connection->remote.communication_id};
        if (messages[i].write)
            messages[i].write(connection, message);
        return true;
    }
    return false;
}
