/* Ethernet frames as queue pairs of raw packets send and receive them. */
#pragma once

#include "transport/send_queue.h"
#include "wire/ether.h"

enum {
    RAW_FRAME_MAX = 8192,  /* a link's segment: longer than the jumbo frames that programs use with an MTU of 4096 */
    RAW_TSO_MAX = 1 << 18, /* payload bytes of one IBV_WR_TSO */
    RAW_TSO_HEADER_MAX = 512,
};

enum raw_option {
    RAW_STRIP_VLAN = 1 << 0,        /* an outermost C-VLAN tag is not stored; the completion has it */
    RAW_STORE_FRAME_CHECK = 1 << 1, /* the frame check sequence is stored after the frame */
};

/* A frame that has arrived, in memory that no thread changes meanwhile. */
struct raw_frame {
    const struct ether *ether;
    bool checksums_hold;
    uint32_t flow_tag;
};

/* The place of a TSO work request's header: work->remote_address bytes after the beginning of its elements, in the same
 * slot. work->compare_or_add is the header's length, work->swap the payload bytes of each segment except the last. */
static inline uint8_t *raw_tso_header(const struct send_wqe *work)
{
    return (uint8_t *)work->inline_data + work->remote_address;
}
