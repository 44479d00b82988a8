/* The types of queue pairs, of any device: ibv_create_qp(3). Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum qp_traits {
    QP_RELIABLE = 1 << 0,   /* its engine repeats lost packets */
    QP_END_TO_END = 1 << 1, /* reliable, and each end executes all that the other sends, so it may take short ways */
    QP_DATAGRAM = 1 << 2,   /* each work request names an address handle; it may join multicast groups */
    QP_SENDS = 1 << 3,      /* programs post sends */
    QP_RECEIVES = 1 << 4,   /* it has receives: its own or an SRQ's */
    QP_RESPONDS = 1 << 5,   /* it takes requests from the network, not only responses */
    QP_NAMES_SRQ = 1 << 6,  /* each work request names an SRQ, which may be a third process's */
    QP_SHARED = 1 << 7,     /* it has neither PD nor queues, and programs have handles of it */
    QP_ETHERNET = 1 << 8,   /* its packets are Ethernet frames, which InfiniBand devices do not have */
    QP_UNORDERED = 1 << 10, /* its messages arrive and end in any order, and each signals its end */
    QP_ADDRESSED = 1 << 11, /* each work request names its receiver, to which the queue pair connects */
    QP_WELCOMES = 1 << 12,  /* it takes connections of such queue pairs, and nothing else */
    QP_INSIDE_WQ = 1 << 9,  /* of a queue pair, not of a type: it is the inside of a work queue (verbs/qp/wq.h) */
};

/* The traits of each type: QP_TRAITS_RC. */
enum qp_type_traits {
#define QP_TYPE(name, traits) QP_TRAITS_##name = (traits),
#include "calls/qp_types.def"
};

enum { QP_KIND_OF_DRIVERS = 0xff }; /* the enum ibv_qp_type of all types that a driver's own call makes */

/* "RC"; NULL: no type of the list. */
const char *qp_type_name(enum ibv_qp_type);

/* Returns true if it is the type of what a driver's own call makes, whose traits are not known by it. */
bool qp_type_is_of_driver(enum ibv_qp_type);

/* The type as programs write it after IBV_QPT_: "RC", or "DRIVER"; "?": it is no type. */
const char *qp_type_word(enum ibv_qp_type);

/* The traits of a type; 0: it is no type of the list. */
uint32_t qp_type_traits(enum ibv_qp_type);

/* The types that have all these traits, as bits (1 << enum ibv_qp_type). */
uint32_t qp_types_with(uint32_t traits);
