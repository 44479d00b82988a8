/* The oracle of tag matching: the rules of rdma-core's Documentation/tag_matching.md and ibv_post_srq_ops(3), as
 * plainly as possible: one list in the order of posting, searched from its head. It knows nothing of the
 * implementation. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { MODEL_ENTRIES = 4096, MODEL_SENDERS = 32 };

struct model_entry {
    uint64_t tag, mask, id;
    uint32_t handle, room;
    bool enabled;
    /* of its rendezvous */
    int sender;
    uint32_t length;
};

/* A completion. When `status` is not success, only id, status and opcode count. */
struct model_event {
    uint64_t id;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned flags;
    uint32_t length;
    uint64_t tag;
    uint32_t application;
};

struct model_open {
    bool open, tagged, counted, untagged_opcode, rendezvous, whole, told;
    struct model_entry entry;
    uint64_t tag;
    uint32_t application;
    uint32_t length;
};

struct model {
    uint32_t capacity;
    struct model_entry list[MODEL_ENTRIES]; /* in the order of posting */
    uint32_t count;
    struct model_entry rendezvous[MODEL_ENTRIES];
    uint32_t rendezvous_count;
    struct model_open open[MODEL_SENDERS];
    uint16_t unexpected; /* delivered */
    uint16_t processed;  /* reported by software */
};

void model_start(struct model *, uint32_t capacity);

/* Executes an operation: 0 or the errno of the refusal. `handle` of an ADD is the implementation's handle of the
 * entry. *completes: it gives an event. */
int model_operate(struct model *, const struct ibv_ops_wr *, struct model_event *, bool *completes);

/* Begins the sender's message: `bytes` of it are in its first packet, `whole`: that is all. False: it has not
 * arrived, as it needs an ordinary receive, and no receive is posted. */
bool model_begin(struct model *, int sender, const uint8_t *bytes, uint32_t count, bool whole, bool has_receive);

/* Returns true if it was matched, and is eager with more packets to follow: the match completes before the data. */
bool model_matches(struct model *, int sender, struct model_event *);

/* Returns true if it was matched, and its bytes, in any number of packets, arrive later, after a failed fetch. */
bool model_is_late(struct model *, int sender, struct model_event *);

/* Returns true if the open message uses an ordinary receive. */
bool model_is_untagged(const struct model *, int sender);

/* Ends the message: all of it arrived, or not. `receive`: the id of the ordinary receive, if it took one. */
void model_end(struct model *, int sender, uint64_t receive, uint32_t length, enum ibv_wc_status, struct model_event *);

/* Ends the rendezvous of this buffer. */
void model_rendezvous_end(struct model *, uint64_t id, enum ibv_wc_status, struct model_event *);

/* The ids of the rendezvous that are under way with this sender. */
uint32_t model_rendezvous_of(const struct model *, int sender, uint64_t *ids);
