/* Management datagrams (MADs) of the communication manager: what queue pair 1 gets in the payload of a UD packet (IBA
 * 13.4.2), so far the two messages that resolve a service ID (12.11). Pure and total, as wire.h says. */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include <stddef.h>
#include <stdint.h>

enum {
    MAD_BYTES = 256,
    MAD_QP = 1,
    MAD_QKEY = 0x80010000,     /* the well-known one of queue pair 1 */
    MAD_REQUEST_PRIVATE = 216, /* bytes of private data (IBA 12.11.1 and 12.11.2) */
    MAD_REPLY_PRIVATE = 136,
    MAD_REPLY_INFORMATION = 72, /* bytes of additional information */
};

enum mad_message { MAD_SIDR_REQ = 0x17, MAD_SIDR_REP = 0x18 }; /* attribute IDs (IBA 16.7) */

enum mad_status { /* of a SIDR_REP */
                  MAD_SIDR_VALID = 0,
                  MAD_SIDR_NOT_SUPPORTED = 1, /* nobody offers the service */
};

struct mad {
    enum mad_message message;
    uint64_t transaction; /* chosen by the requester, like `request`; the reply has the same */
    uint32_t request;     /* RequestID */
    uint64_t service;     /* ServiceID */
    union {
        struct {
            uint16_t pkey;
            uint8_t private_data[MAD_REQUEST_PRIVATE];
        } sidr_req;
        struct {
            uint8_t status; /* enum mad_status, or another */
            uint8_t information_length;
            uint32_t qp; /* 24 bits; of the service, when the status is VALID, like `qkey` */
            uint32_t qkey;
            uint8_t information[MAD_REPLY_INFORMATION];
            uint8_t private_data[MAD_REPLY_PRIVATE];
        } sidr_rep;
    };
};

enum mad_fault {
    MAD_FINE = 0,
    MAD_TRUNCATED, /* shorter than a MAD, or than its fields say */
    MAD_CLASS,     /* not of the communication manager as IBA 1.2 and later have it, or not its method */
    MAD_MESSAGE,   /* another message of it, known or not */
};

/* Writes all MAD_BYTES. */
void mad_encode(const struct mad *, uint8_t to[MAD_BYTES]);

/* Total: any input gives a fault or a message. What stands behind MAD_BYTES is ignored. */
enum mad_fault mad_decode(const uint8_t *bytes, size_t length, struct mad *);

#endif
