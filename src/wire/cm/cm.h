/* Messages of the communication manager (CM): management datagrams of class 7, which queue pair 1 gets in the payload
 * of a UD packet (IBA volume 1, 12.6 to 12.11, and 13.4.2). Pure and total, as wire.h says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cm/mad.h"

enum cm_attribute { /* attribute IDs (IBA 16.7) */
                    CM_REQ = 0x10,
                    CM_MRA = 0x11,
                    CM_REJ = 0x12,
                    CM_REP = 0x13,
                    CM_RTU = 0x14,
                    CM_DREQ = 0x15,
                    CM_DREP = 0x16,
                    CM_SIDR_REQ = 0x17,
                    CM_SIDR_REP = 0x18,
                    CM_LAP = 0x19, /* of LAP and APR only the communication IDs are decoded */
                    CM_APR = 0x1a,
};

enum {
    CM_PRIVATE_MAX = 224,    /* bytes of private data: of RTU, DREP; cm_private_size has the others */
    CM_INFORMATION_MAX = 72, /* bytes of additional information: of REJ, SIDR_REP */
    CM_QPN_MASK = 0xffffff,
};

enum cm_transport { CM_TRANSPORT_RC = 0, CM_TRANSPORT_UC = 1, CM_TRANSPORT_EXTENDED = 3 }; /* cm_req.transport */
enum { CM_EXTENDED_XRC = 1 };                                                              /* .extended_transport */

enum cm_about { CM_ABOUT_REQ = 0, CM_ABOUT_REP = 1, CM_ABOUT_OTHER = 2 }; /* which message an MRA or REJ answers */

enum cm_reject { /* reasons of a REJ (IBA 12.6.7.2), only those that are sent or looked at here */
                 CM_REJECT_TIMEOUT = 4,
                 CM_REJECT_INVALID_SERVICE = 8,
                 CM_REJECT_STALE = 10,
                 CM_REJECT_CONSUMER = 28,
                 CM_REJECT_VENDOR_OPTION = 35,
};

enum cm_sidr_status { /* of a SIDR_REP (IBA 12.11.2.1) */
                      CM_SIDR_VALID = 0,
                      CM_SIDR_UNSUPPORTED = 1,
                      CM_SIDR_REJECTED = 2,
                      CM_SIDR_NO_QP = 3,
                      CM_SIDR_REDIRECT = 4,
                      CM_SIDR_VERSION = 5,
};

struct cm_path {
    uint16_t local_lid, remote_lid;
    uint8_t local_gid[16], remote_gid[16];
    uint32_t flow_label; /* 20 bits */
    uint8_t rate;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    uint8_t subnet_local;
    uint8_t ack_timeout; /* 5 bits, as a queue pair's */
};

struct cm_req {
    uint32_t vendor; /* vendor ID, 24 bits */
    uint64_t service;
    uint64_t guid; /* of the sender's channel adapter */
    uint32_t qkey;
    uint32_t qpn;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint32_t local_eecn, remote_eecn;
    uint8_t remote_response_timeout, local_response_timeout; /* 5 bits: 4.096 us * 2^n */
    uint8_t transport;                                       /* enum cm_transport */
    uint8_t flow_control;
    uint32_t starting_psn; /* the first PSN of the receiver's send queue */
    uint8_t retry_count, rnr_retry_count;
    uint16_t pkey;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t rdc_exists;
    uint8_t max_cm_retries;
    uint8_t srq;
    uint8_t extended_transport;
    struct cm_path primary, alternate;
};

struct cm_mra {
    uint8_t about; /* enum cm_about */
    uint8_t service_timeout;
};

struct cm_rej {
    uint8_t about;
    uint8_t information_length;
    uint16_t reason;
    uint8_t information[CM_INFORMATION_MAX];
};

struct cm_rep {
    uint32_t vendor;
    uint32_t qkey;
    uint32_t qpn;
    uint32_t eecn; /* XRC: the queue pair number */
    uint32_t starting_psn;
    uint8_t responder_resources, initiator_depth;
    uint8_t target_ack_delay;
    uint8_t failover;
    uint8_t flow_control;
    uint8_t rnr_retry_count;
    uint8_t srq;
    uint64_t guid;
};

struct cm_dreq {
    uint32_t remote_qpn; /* the receiver's */
};

struct cm_sidr_req {
    uint16_t pkey;
    uint64_t service;
};

struct cm_sidr_rep {
    uint8_t status; /* enum cm_sidr_status */
    uint8_t information_length;
    uint32_t vendor;
    uint32_t qpn;
    uint64_t service;
    uint32_t qkey;
    uint8_t information[CM_INFORMATION_MAX];
};

struct cm_message {
    enum cm_attribute attribute;
    uint64_t transaction;
    uint32_t modifier;  /* attribute modifier: ECE options */
    uint32_t local_id;  /* the sender's communication ID; of a SIDR_REQ the RequestID; a SIDR_REP does not have it */
    uint32_t remote_id; /* the receiver's; of a SIDR_REP the RequestID; REQ and SIDR_REQ do not have it */
    union {
        struct cm_req req;
        struct cm_mra mra;
        struct cm_rej rej;
        struct cm_rep rep;
        struct cm_dreq dreq;
        struct cm_sidr_req sidr_req;
        struct cm_sidr_rep sidr_rep;
    };
    uint8_t private_data[CM_PRIVATE_MAX];
};

enum cm_fault {
    CM_FINE = 0,
    CM_TRUNCATED, /* shorter than a management datagram */
    CM_CLASS,     /* another class, version (of IBA before 1.2) or method than the communication manager's */
    CM_ATTRIBUTE, /* a message that does not exist */
    CM_LENGTH,    /* additional information longer than its field */
};

/* Writes all MAD_BYTES. Bits of a value beyond the width of its field are cut off. */
void cm_encode(const struct cm_message *, uint8_t to[MAD_BYTES]);

/* Decodes a message. Total: any input gives a fault or a message, whose unused parts are zero. Ignores bytes after
 * MAD_BYTES. */
enum cm_fault cm_decode(const uint8_t *bytes, size_t length, struct cm_message *);

/* The number of bytes of private data that each message of this attribute carries. */
unsigned cm_private_size(enum cm_attribute);

/* Returns true if a message of this attribute names the receiver's communication ID, or the receiver's request
 * (SIDR_REP). */
bool cm_is_reply(enum cm_attribute);

/* "REQ" and so on; "unknown" for a number without a name. */
const char *cm_name(enum cm_attribute);

/* Writes all fields that are not 0 on one line, by name, with the IP addressing that a request may carry; always
 * ends with NUL within `size`. Returns `to`. */
char *cm_describe(const struct cm_message *, char *to, size_t size);
