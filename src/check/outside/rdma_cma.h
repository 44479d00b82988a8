/* The part of librdmacm's interface (<rdma/rdma_cma.h>) that the checker uses. The library is optional, so its header
 * is not needed either. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

enum { RDMA_PS_TCP = 0x0106 };

enum rdma_cm_event_type {
    RDMA_CM_EVENT_CONNECT_REQUEST = 4,
    RDMA_CM_EVENT_ESTABLISHED = 9,
    RDMA_CM_EVENT_DISCONNECTED = 10,
    RDMA_CM_EVENT_DEVICE_REMOVAL = 11
};

enum { RDMA_MAX_INIT_DEPTH = 0xff }; /* as initiator_depth: the most that the device has */

struct rdma_event_channel {
    int fd;
};

struct rdma_cm_id {
    struct ibv_context *verbs;
    struct rdma_event_channel *channel;
    void *context;
    struct ibv_qp *qp; /* and more */
};

struct rdma_conn_param {
    const void *private_data;
    uint8_t private_data_len, responder_resources, initiator_depth; /* and more */
};

struct rdma_cm_event {
    struct rdma_cm_id *id, *listen_id;
    enum rdma_cm_event_type event;
    int status;
    struct rdma_conn_param conn; /* a member of a union */
};

struct rdma_addrinfo {
    int ai_flags, ai_family, ai_qp_type, ai_port_space; /* and more */
};
