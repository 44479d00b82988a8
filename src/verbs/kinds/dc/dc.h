/* Dynamically connected queue pairs of mlx5: an initiator (DCI) sends each work request to the target (DCT) that it
 * names, and a target takes what initiators send into its SRQ.
 *
 * The initiator is a requester of XRC's packets with one connection at a time. When the next work request names another
 * receiver, and all before it has ended, it asks that target for a responder (HELLO, WELCOME: struct dc_header); the
 * number of the responder is in the place of the SRQ's in each request. The target keeps a responder for each
 * initiator: a queue pair that the program does not know, with the target's SRQ, completion queue, rights and number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nanos.h"
#include "link/link.h"
#include "verbs/qp/kind.h"

struct ah;
struct endpoint_arrival;
struct qp;
struct send_wqe;

enum {
    DC_READS_MOST = 16, /* READs and atomics that a target takes in at a time, from each initiator */
    DC_STREAMS_LOG = 3, /* of the most streams of an initiator that may be in error */
};

/* Returns true if an initiator may have packets with so many payload bytes: inside a host LINK_SEGMENT, over a network
 * a path MTU. A responder computes with what the initiator says. */
static inline bool dc_segment_may_be(uint32_t segment, bool network)
{
    enum { LEAST = 256, MOST = 4096 };
    return network ? segment >= LEAST && segment <= MOST && !(segment & (segment - 1)) : segment == LINK_SEGMENT;
}

/* Sets the access key of a target that the program does not have yet. */
void dct_set_key(struct ibv_qp *, uint64_t key);

/* Names the receiver and the stream of the work request in hand, as mlx5dv_wr_set_dc_addr(3) and _stream. The handle
 * must live until the work has ended. */
void dci_set_address(struct qp *, struct ibv_ah *, uint32_t target, uint64_t key, uint16_t stream);

/* The same for work that is being filled. */
void dci_set_receiver(struct send_wqe *, const struct ah *, uint32_t target, uint64_t key, uint16_t stream);

/* Gives streams to an initiator that the program does not have yet: an error ends the work of its stream alone, until
 * 2^log_errored streams are in error. */
void dci_make_streams(struct ibv_qp *, unsigned log_errored);

/* Ends the error of a stream, for mlx5dv_dci_stream_id_reset(3). */
enum dci_reset {
    DCI_RESET,
    DCI_SOUND,      /* the stream is not in error */
    DCI_STREAMLESS, /* the initiator was made without streams */
    DCI_NOT_IN_RTS,
};
enum dci_reset dci_reset_stream(struct qp *, uint16_t stream);
