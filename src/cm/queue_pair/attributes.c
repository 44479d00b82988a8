#include "cm/queue_pair/attributes.h"

#include <errno.h>

#include "cm/connect.h"
#include "cm/queue_pair/qp_type.h"

enum { MASK_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT };

static struct ibv_ah_attr make_way(const struct identifier *identifier)
{
    const struct cm_route *route = &identifier->session->route;
    struct ibv_ah_attr way = {.is_global = 1,
                              .port_num = route->from.number,
                              .grh = {.flow_label = route->flow_label,
                                      .sgid_index = route->from.gid_index,
                                      .hop_limit = route->hop_limit,
                                      .traffic_class = route->traffic_class}};
    memcpy(way.grh.dgid.raw, route->gid, sizeof way.grh.dgid.raw);
    return way;
}

/* Writes the attributes of an identifier without a connection. */
static int describe_alone(const struct identifier *identifier, struct ibv_qp_attr *attr, int *mask)
{
    bool datagram = qp_type_find(identifier->qp_type)->datagram;
    attr->port_num = identifier->port.number;
    attr->qkey = datagram ? CM_QKEY : 0;
    *mask = (int)MASK_INIT | (int)(datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    return 0;
}

static int refuse_connection(const struct identifier *identifier, const struct connection *connection)
{
    return identifier_refuse_connection(identifier, EINVAL, connection_state_name(connection->state),
                                        connection->peers_reason);
}

static int describe_init(const struct identifier *identifier, const struct connection *connection,
                         struct ibv_qp_attr *attr, int *mask)
{
    if (connection->state < CONNECTION_REQ_SENT || connection->state > CONNECTION_ESTABLISHED)
        return refuse_connection(identifier, connection);
    attr->port_num = identifier->port.number;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (connection->agreed.responder_resources)
        attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    *mask = (int)MASK_INIT | IBV_QP_ACCESS_FLAGS;
    return 0;
}

static bool knows_peer(const struct connection *connection)
{
    return connection->state >= CONNECTION_REQ_RCVD && connection->state <= CONNECTION_ESTABLISHED;
}

static int describe_rtr(const struct identifier *identifier, const struct connection *connection,
                        struct ibv_qp_attr *attr, int *mask)
{
    if (!knows_peer(connection))
        return refuse_connection(identifier, connection);
    attr->ah_attr = make_way(identifier);
    attr->path_mtu = connection->agreed.mtu;
    attr->dest_qp_num = connection->remote.qpn;
    attr->rq_psn = connection->local.psn;
    *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp_type_find(identifier->qp_type)->responds) {
        attr->max_dest_rd_atomic = connection->agreed.responder_resources;
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return 0;
}

static int describe_rts(const struct identifier *identifier, const struct connection *connection,
                        struct ibv_qp_attr *attr, int *mask)
{
    const struct qp_type *type = qp_type_find(identifier->qp_type);
    if (!knows_peer(connection))
        return refuse_connection(identifier, connection);
    attr->sq_psn = connection->remote.psn;
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (type->requests) {
        attr->retry_cnt = connection->agreed.retry_count;
        attr->rnr_retry = connection->agreed.rnr_retry_count;
        attr->max_rd_atomic = connection->agreed.initiator_depth;
        *mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (type->requests || type->responds) {
        attr->timeout =
            identifier->options.ack_timeout_set ? identifier->options.ack_timeout : connection->agreed.ack_timeout;
        *mask |= IBV_QP_TIMEOUT;
    }
    return 0;
}

int attributes_of(const struct identifier *identifier, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
    const struct connection *connection = connect_of(identifier->session);
    *attr = (struct ibv_qp_attr){.qp_state = state};
    if (!identifier->has_port)
        return identifier_refuse(identifier, EINVAL, REASON_CM_UNBOUND, "its state is %s",
                                 identifier_state_name(identifier->state));
    if (state > IBV_QPS_ERR)
        return identifier_refuse(identifier, EINVAL, REASON_STATE_UNKNOWN, "qp_state %u", state);
    if (!connection)
        return describe_alone(identifier, attr, mask);
    switch (state) {
    case IBV_QPS_INIT:
        return describe_init(identifier, connection, attr, mask);
    case IBV_QPS_RTR:
        return describe_rtr(identifier, connection, attr, mask);
    case IBV_QPS_RTS:
        return describe_rts(identifier, connection, attr, mask);
    default:
        return identifier_refuse(identifier, EINVAL, REASON_CM_QP_STATE, "qp_state %u", state);
    }
}
