/* The oracle of tag matching: the rules of rdma-core's Documentation/tag_matching.md and ibv_post_srq_ops(3), as
 * plainly as possible: one list in the order of posting, searched from its head. It knows nothing of the
 * implementation. */
#ifndef TRANSPORT_TESTING_TAGS_MODEL_H
#define TRANSPORT_TESTING_TAGS_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { MODEL_ENTRIES = 4096, MODEL_SENDERS = 32 };

struct model_entry {
    uint64_t tag, mask, id;
    uint32_t handle, room;
    bool enabled;
    /* of the rendezvous that it is in */
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

/* 0 or the errno of the refusal. `handle` of an ADD is the implementation's handle of the entry. *completes: there is
 * an event. */
int model_operate(struct model *, const struct ibv_ops_wr *, struct model_event *, bool *completes);

/* The sender's message begins: `bytes` of it are in its first packet, `whole` is all. False: it needs an ordinary
 * receive, and there is none, so that it has not arrived. */
bool model_begin(struct model *, int sender, const uint8_t *bytes, uint32_t count, bool whole, bool has_receive);

/* It was matched, and is eager with more packets to come: the match completes at once, and the data later. */
bool model_matches(struct model *, int sender, struct model_event *);

/* Its bytes could not be had and come later: likewise, for one of any number of packets. */
bool model_is_late(struct model *, int sender, struct model_event *);

/* Returns true if the open message uses an ordinary receive. */
bool model_is_untagged(const struct model *, int sender);

/* It has ended: all of it arrived, or not. `receive`: the id of the ordinary receive, if it took one. */
void model_end(struct model *, int sender, uint64_t receive, uint32_t length, enum ibv_wc_status, struct model_event *);

/* The rendezvous of this buffer has ended. */
void model_rendezvous_end(struct model *, uint64_t id, enum ibv_wc_status, struct model_event *);

/* The rendezvous that are under way with this sender: their ids. */
uint32_t model_rendezvous_of(const struct model *, int sender, uint64_t *ids);

#endif
