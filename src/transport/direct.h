/* READs and WRITEs of a reliable connection, or of SRD, that the owner does in the peer's memory by itself, without a
 * packet. */
#pragma once

#include "transport/owner.h"

enum {
    DIRECT_LENGTH_MAX = 1 << 20, /* such work is done while the program posts, which must not take long */
    DIRECT_TOGETHER = 16,
};

/* WRITEs that are done at one time, or one READ: the requests, and their local memory in this order, as pieces; the
 * last piece is not empty. */
struct direct_works {
    uint32_t count, piece_count;
    uint32_t length; /* of all works together; at most DIRECT_LENGTH_MAX */
    uint32_t qkey;   /* of SRD */
    const struct send_wqe *works[DIRECT_TOGETHER];
    struct iovec pieces[PAYLOAD_PIECES_MAX];
};

/* Does works in the peer's memory. True: all are done, in their order. False: they must be sent as packets, as if they
 * had not been tried. */
typedef bool direct_doer(struct engine_owner *, const struct direct_works *);
