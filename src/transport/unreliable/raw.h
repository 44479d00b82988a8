/* Raw packets: a work request is an Ethernet frame, or with IBV_WR_TSO the bytes of several. Pure, as rc.h says. */
#ifndef TRANSPORT_UNRELIABLE_RAW_H
#define TRANSPORT_UNRELIABLE_RAW_H

#include "transport/unreliable/unreliable.h"
#include "wire/ether.h"

enum {
    RAW_FRAME_MAX = 8192,  /* a link's segment: longer than the jumbo frames that programs use with an MTU of 4096 */
    RAW_TSO_MAX = 1 << 18, /* payload bytes of one IBV_WR_TSO */
    RAW_TSO_HEADER_MAX = 512,
};

enum raw_option {
    RAW_STRIP_VLAN = 1 << 0,        /* an outermost C-VLAN tag is not stored, the completion has it */
    RAW_STORE_FRAME_CHECK = 1 << 1, /* the frame check sequence is stored behind the frame */
};

struct raw {
    struct unreliable common;
    uint32_t sent;    /* TSO: payload bytes of the work at `next` that are sent already */
    uint32_t segment; /* of it, those in the frame that raw_next made */
};

/* A frame that has arrived, in memory that nobody changes meanwhile. */
struct raw_frame {
    const struct ether *ether;
    bool checksums_hold;
    uint32_t flow_tag;
};

void raw_initialize(struct raw *, struct engine_owner *, const struct send_queue *);
void raw_start_receiving(struct raw *);
void raw_start_transmitting(struct raw *);

/* After a batch was posted, as rc_posted. In the error state and in SQE all of it is flushed. */
void raw_posted(struct raw *);

/* Writes the next frame to `frame`, with its checksums if the work asks for them, and its length. False: there is none,
 * or it can't be sent and the send queue is in error. The same frame again until raw_sent. */
bool raw_next(struct raw *, uint8_t frame[RAW_FRAME_MAX], uint32_t *length);

/* That frame is on its way. */
void raw_sent(struct raw *);

/* Stores the frame in the next receive. Without one, or when it is too short, the frame is dropped, as a network does.
 */
void raw_receive(struct raw *, const struct raw_frame *);

/* Where a TSO work request keeps its headers: work->remote_address bytes behind the beginning of its elements, in the
 * owner's slot. work->compare_or_add is their length, work->swap the payload bytes of each segment but the last. */
static inline uint8_t *raw_tso_header(const struct send_wqe *work)
{
    return (uint8_t *)work->inline_data + work->remote_address;
}

/* As unreliable_flush and ud_reset. */
void raw_flush(struct raw *);
void raw_reset(struct raw *);

#endif
