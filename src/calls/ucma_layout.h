/* The layouts of the commands that librdmacm writes to its device, and of the answers (ABI version 4 of rdma_ucm), in
 * host byte order unless noted. Fields that came later are at the ends; older libraries leave them out. */
#pragma once

#include <stdint.h>

enum ucma_command_number {
#define COMMAND(number, page, how, serve, layout, least, answer, object) UCMA_##number,
#define NO_COMMAND(number) UCMA_##number,
#include "calls/ucma.def"
    UCMA_COMMANDS
};

enum { UCMA_NO_OBJECT = UINT16_MAX }; /* in ucma.def: the command names no object */

enum { UCMA_PRIVATE = 256, UCMA_IP_ADDRESS = 28, UCMA_ADDRESS = 128 };

struct ucma_header {
    uint32_t command;
    uint16_t in, out; /* bytes of the command that follows, bytes of room for the answer */
};

struct ucma_create_id {
    uint64_t uid, response;
    uint16_t space;
    uint8_t qp_type;
    uint8_t reserved[5];
};

struct ucma_id { /* DISCONNECT; the answer of CREATE_ID, JOIN */
    uint32_t id;
};

struct ucma_reported { /* the answer of DESTROY_ID, LEAVE, MIGRATE_ID */
    uint32_t events;
};

struct ucma_named { /* DESTROY_ID, QUERY_ROUTE, LEAVE_MCAST: `value` unused; QUERY: option; MIGRATE_ID: descriptor;
                     * INIT_QP_ATTR: state */
    uint64_t response;
    uint32_t id;
    uint32_t value;
};

struct ucma_valued { /* RESOLVE_ROUTE: milliseconds; LISTEN: backlog; NOTIFY: event */
    uint32_t id;
    uint32_t value;
};

struct ucma_bind_ip {
    uint64_t response;
    uint8_t address[UCMA_IP_ADDRESS];
    uint32_t id;
};

struct ucma_bind {
    uint32_t id;
    uint16_t size;
    uint16_t reserved;
    uint8_t address[UCMA_ADDRESS];
};

struct ucma_resolve_ip {
    uint8_t source[UCMA_IP_ADDRESS], destination[UCMA_IP_ADDRESS];
    uint32_t id;
    uint32_t milliseconds;
};

struct ucma_resolve_addr {
    uint32_t id;
    uint32_t milliseconds;
    uint16_t source_size, destination_size;
    uint32_t reserved;
    uint8_t source[UCMA_ADDRESS], destination[UCMA_ADDRESS];
};

struct ucma_path_record {
    uint8_t dgid[16], sgid[16];
    uint16_t dlid, slid; /* big-endian */
    uint32_t raw_traffic;
    uint32_t flow_label; /* big-endian */
    uint32_t reversible;
    uint32_t mtu;
    uint16_t pkey; /* big-endian */
    uint8_t hop_limit, traffic_class, count, sl;
    uint8_t mtu_selector, rate_selector, rate;
    uint8_t lifetime_selector, lifetime;
    uint8_t preference;
};

struct ucma_route_response {
    uint64_t node_guid; /* big-endian */
    struct ucma_path_record paths[2];
    uint8_t source[UCMA_IP_ADDRESS], destination[UCMA_IP_ADDRESS];
    uint32_t path_count;
    uint8_t port;
    uint8_t reserved[3];
    uint32_t device_index; /* from here on later */
    uint32_t reserved1;
};

struct ucma_address_response { /* of QUERY: ADDR, GID */
    uint64_t node_guid;        /* big-endian */
    uint8_t port;
    uint8_t reserved;
    uint16_t pkey; /* big-endian */
    uint16_t source_size, destination_size;
    uint8_t source[UCMA_ADDRESS], destination[UCMA_ADDRESS];
    uint32_t device_index; /* from here on later */
    uint32_t reserved1;
};

struct ucma_path_response { /* of QUERY: PATH; with one path */
    uint32_t count;
    uint32_t reserved;
    uint32_t flags;
    uint32_t reserved1;
    uint8_t path[64]; /* a PathRecord as on the wire (IBA 15.2.5.16) */
};

struct ucma_conn_param {
    uint32_t qpn, qkey;
    uint8_t private_data[UCMA_PRIVATE];
    uint8_t private_length;
    uint8_t srq, responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count;
    uint8_t valid;
};

struct ucma_ah_attr {
    uint8_t dgid[16];
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class, reserved;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port;
    uint8_t reserved1;
};

struct ucma_ud_param {
    uint32_t qpn, qkey;
    struct ucma_ah_attr ah;
    uint8_t private_data[UCMA_PRIVATE];
    uint8_t private_length;
    uint8_t reserved[7];
};

struct ucma_ece {
    uint32_t vendor, options;
};

struct ucma_connect {
    struct ucma_conn_param parameters;
    uint32_t id;
    uint32_t reserved;
    struct ucma_ece ece; /* later */
};

struct ucma_accept {
    uint64_t uid;
    struct ucma_conn_param parameters;
    uint32_t id;
    uint32_t reserved;
    struct ucma_ece ece; /* later */
};

struct ucma_reject {
    uint32_t id;
    uint8_t private_length, reason;
    uint8_t reserved[2];
    uint8_t private_data[UCMA_PRIVATE];
};

struct ucma_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct ucma_qp_attr_response {
    uint32_t mask, state, current_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qpn, access;
    struct ucma_ah_attr ah, alternate_ah;
    struct ucma_qp_cap cap;
    uint16_t pkey_index, alternate_pkey_index;
    uint8_t notify_drained, draining, max_rd_atomic, max_dest_rd_atomic;
    uint8_t min_rnr_timer, port, timeout, retry_count;
    uint8_t rnr_retry, alternate_port, alternate_timeout;
    uint8_t reserved[5];
};

struct ucma_get_event {
    uint64_t response;
};

struct ucma_event_response {
    uint64_t uid;
    uint32_t id;
    uint32_t event;
    int32_t status;
    union {
        struct ucma_conn_param conn;
        struct ucma_ud_param ud;
        uint32_t argument[2];
    };
    uint32_t reserved; /* from here on later */
    struct ucma_ece ece;
};

struct ucma_set_option {
    uint64_t value; /* address */
    uint32_t id, level, name, length;
};

/* A path of RDMA_OPTION_IB_PATH; the record is a PathRecord (IBA table 205). */
struct ucma_path {
    uint32_t flags, reserved;
    uint8_t record[64];
};

struct ucma_join_ip {
    uint64_t response, uid;
    uint8_t address[UCMA_IP_ADDRESS];
    uint32_t id;
};

struct ucma_join {
    uint64_t response, uid;
    uint32_t id;
    uint16_t size, flags;
    uint8_t address[UCMA_ADDRESS];
};

struct ucma_resolve_service {
    uint32_t id;
    uint8_t service[84];
};

struct ucma_write_event {
    uint32_t id;
    uint32_t reserved;
    uint32_t event;
    int32_t status;
    uint64_t argument;
    uint8_t rest[296];
};
