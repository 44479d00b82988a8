/* Posted receives, as the engines see them. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

/* A posted receive. It stays valid and unchanged from owner->take_receive until owner->received or
 * owner->return_receive. */
struct recv_wqe {
    uint64_t id;
    uint32_t sge_count;
    uint32_t skip;  /* bytes at the start of the message that are not stored (a tag-matching header); usually 0 */
    uint32_t limit; /* the most bytes that are stored, the others are left out; 0: the whole message must fit */
    const struct ibv_sge *sge;
};
