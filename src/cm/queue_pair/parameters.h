/* The parameters of a connection that programs give in commands and get in events. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CM_PARAMETERS_PRIVATE = 256 };

/* A datagram service uses only the first four members. */
struct cm_parameters {
    uint32_t qpn; /* 24 bits */
    uint32_t qkey;
    uint8_t private_length;
    uint8_t private_data[CM_PARAMETERS_PRIVATE];
    uint8_t responder_resources, initiator_depth;
    uint8_t retry_count, rnr_retry_count; /* 0 to 7 */
    bool flow_control;
    bool srq;
};

/* Enhanced connection establishment: options that only the vendors of both ends know. */
struct cm_ece {
    uint32_t vendor, options;
};
