/* Tag matching (IBV_SRQT_TM): the receive side of MPI. One `struct tags` for each shared receive queue, one `struct
 * tags_port` for each queue pair on it. Pure: no lock, no allocation, no clock. One caller at a time.
 *
 * The owner feeds it the operations of programs (tags_operate) and the messages of queue pairs (tags_arrive,
 * tags_received, tags_sent), and gets values back: the receive for a message, entries for the completion queue, and
 * work requests for the queue pair's own send queue, which carries out the rendezvous.
 *
 * A message, by the engine's calls:
 * - take_receive: tags_arrive decides, and tags_match may have an event to report at once. A tagged message has its
 *   receive at once (tags_receive). Another message needs a receive from the ordinary queue: tags_accept is called once
 *   the message has one; without a receive it has not arrived.
 * - received: tags_received returns the entry for the completion queue. A rendezvous continues by itself: tags_work
 *   fills a place of the send queue whenever one is free, with the READ and later the FIN; tags_sent takes their ends.
 *
 * The rules, and our answers where the documents are silent: docs/reference/tag-matching.md. */
#pragma once

#include <infiniband/tm_types.h>

#include "transport/owner.h"
#include "transport/tm/tag_list.h"

enum {
    TAGS_TMH = sizeof(struct ibv_tmh),
    TAGS_HEAD = sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh),
    TAGS_RENDEZVOUS_MAX = 64, /* the longest rendezvous request, with the software's header */
    TAGS_SGES_MAX = 16,       /* of a tagged buffer */
};

/* An entry of the completion queue. */
struct tags_event {
    uint64_t id;
    enum ibv_wc_status status;
    enum reason reason;
    enum ibv_wc_opcode opcode;
    unsigned flags; /* enum ibv_wc_flags */
    uint32_t length;
    uint32_t immediate_or_key;
    uint64_t tag; /* struct ibv_wc_tm_info */
    uint32_t application;
    bool notable; /* solicited, or an error */
};

#define TAGS_WORK (1u << 31) /* in work->owner_value, with the entry */

/* The kinds of messages for the matching list. */
enum tags_kind {
    TAGS_NOTHING,
    TAGS_PLAIN,      /* not a SEND: takes an ordinary receive */
    TAGS_NO_TAG,     /* carries no tag: takes an ordinary receive, and reports that */
    TAGS_MALFORMED,  /* has a header that can't be matched: taken as a message without a tag */
    TAGS_UNEXPECTED, /* carries a tag that was not posted: takes an ordinary receive, and is counted */
    TAGS_EAGER,      /* its payload is stored into a tagged buffer */
    TAGS_RENDEZVOUS, /* its data will be read into a tagged buffer */
    TAGS_INCOMPLETE, /* its tagged buffer is too small for its data, and gets the headers; software does the rest */
};

/* Entries on their way through a rendezvous. */
struct tags_queue {
    uint32_t first, last;
};

struct tags_port {
    uint8_t open;                         /* enum tags_kind of the message whose receive is taken */
    uint32_t entry;                       /* its tagged buffer; or 0 */
    struct tags_queue to_read, to_finish; /* entries that need a place in the send queue */
    struct tags_queue working;            /* entries that have one */
};

struct tags {
    struct tag_list list;
    char *buffers; /* of every entry; see tags.c */
    size_t stride;
    uint32_t sges_max;
    uint16_t delivered;      /* unexpected messages, modulo 2^16: U */
    uint16_t handled;        /* unexpected messages that software has reported: S */
    uint32_t disabled;       /* entries that can't match before S and U meet */
    uint64_t enabled_before; /* sequence number of the oldest disabled entry */
    uint64_t matched;        /* messages that have taken an entry */
};

/* The size of the memory for tags_initialize, 64-aligned and zero. `sges_max` is at most TAGS_SGES_MAX. */
size_t tags_size(uint32_t capacity, uint32_t sges_max);
void tags_initialize(struct tags *, void *memory, uint32_t capacity, uint32_t sges_max);

/* Checks this operation of ibv_post_srq_ops(3): REASON_NONE, or REASON_TM_OPCODE, _FLAGS, _SGES. */
enum reason tags_check(const struct tags *, const struct ibv_ops_wr *);

/* Executes an operation, and writes an ADD's handle into it. REASON_NONE or why it is refused: a reason of
 * tags_check, or REASON_TM_LIST_FULL. *completes: the operation gives an event, as does each DEL that fails. */
enum reason tags_operate(struct tags *, struct ibv_ops_wr *, struct tags_event *, bool *completes);

/* Describes an entry for reports: its receive's id, and the size of its buffer. */
void tags_describe(const struct tags *, uint32_t entry, uint64_t *id, uint64_t *bytes);

/* Opens a message on the port, which must not have an open one. TAGS_NOTHING: its first bytes could not be fetched. */
enum tags_kind tags_arrive(struct tags *, struct tags_port *, const struct packet *);

/* Returns true, and the event that reports the match, if the open message was matched and is eager, with more packets
 * to follow: matches are reported at once, in order; tags_received reports the data. Called once, after tags_arrive. */
bool tags_match(struct tags *, const struct tags_port *, const struct packet *, struct tags_event *);

/* Matches as tags_match does, for a message of which only the first bytes could be fetched: it ends when the others
 * have arrived. False, too, if the match has been reported before. */
bool tags_match_early(struct tags *, const struct tags_port *, struct tags_event *);

/* Notes that the message has got an ordinary receive: only now it has arrived. */
void tags_accept(struct tags *, struct tags_port *, enum tags_kind);

/* The receive of the open message, if it was matched; otherwise NULL. Valid until tags_received. */
const struct recv_wqe *tags_receive(const struct tags *, const struct tags_port *);

/* Ends the open message's receive, and always gives an event. `id`: of the ordinary receive, if the message took
 * one. */
void tags_received(struct tags *, struct tags_port *, uint64_t id, const struct recv_cqe *, struct tags_event *);

/* Returns true if a rendezvous needs a place in the send queue. */
static inline bool tags_have_work(const struct tags_port *port)
{
    return port->to_read.first | port->to_finish.first;
}

/* Returns true if this work belongs to a rendezvous: the owner's `sent` passes it to tags_sent. */
static inline bool tags_owns(const struct send_wqe *work)
{
    return work->owner_value & TAGS_WORK && (work->opcode == IBV_WR_RDMA_READ || work->opcode == IBV_WR_SEND);
}

/* Fills a place of the send queue, with room for TAGS_HEAD bytes of inline data and sges_max elements, if work is
 * waiting. */
bool tags_work(struct tags *, struct tags_port *, struct send_wqe *);

/* Takes the end of that work; true: it gives an event. */
bool tags_sent(struct tags *, struct tags_port *, const struct send_wqe *, enum ibv_wc_status, enum reason,
               struct tags_event *);

/* Ends a rendezvous as flushed; called until it returns false: all have ended. The queue pair is in error or will be
 * forgotten, and its send queue has no work of a rendezvous any more. */
bool tags_flush(struct tags *, struct tags_port *, struct tags_event *);
