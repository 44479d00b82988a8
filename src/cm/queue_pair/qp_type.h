/* The properties of the types of queue pairs (enum ibv_qp_type) that the connection manager needs. Pure. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/cm/cm.h"

/* The types of queue pairs of the port spaces. */
enum { QP_TYPE_CONNECTED = IBV_QPT_RC, QP_TYPE_DATAGRAM = IBV_QPT_UD };

struct qp_type {
    bool datagram;               /* its peers are resolved (SIDR), not connected */
    bool requests, responds;     /* it has the attributes of a reliable requester, of a reliable responder */
    uint8_t transport, extended; /* the values in a REQ for such a queue pair */
    uint8_t peer;                /* the type that the receiver of such a REQ needs; 0: there is no such REQ */
};

/* The properties of a type; all are 0 if it does not exist. */
const struct qp_type *qp_type_find(uint8_t type);

/* The type that the receiver of this REQ needs; 0: no such type. */
uint8_t qp_type_of_peer(const struct cm_req *);
