/* What the two ways of posting sends share: ibv_post_send and the ibv_wr_* builders. Under qp->lock. */
#ifndef VERBS_POST_H
#define VERBS_POST_H

#include "verbs/object.h"

/* Can this queue pair do the operation (enum ibv_wr_opcode) at all, and with inline data? */
bool post_is_legal(const struct qp *, unsigned opcode);
bool post_takes_inline(unsigned opcode);

/* The enum ibv_send_flags that its work requests can have. */
unsigned post_flags(const struct qp *);

/* IBV_WR_TSO: may the header be that long, and the segments; and into the slot. */
enum reason post_check_tso(const struct qp *, uint32_t header, uint32_t mss);
void post_set_tso(const struct qp *, struct work *, const void *header, uint16_t length, uint16_t mss);

/* Is work accepted in the queue pair's state? */
bool post_is_open(const struct qp *);

/* A free slot, or NULL: the program has not polled enough completions yet. post_commit enters it when it is filled. */
struct work *post_reserve(struct qp *);
void post_commit(struct qp *);

/* Hands what was committed to the engine and the link. */
void post_start(struct qp *);

/* Logs a refused call, and sets errno, which it answers. */
int post_refused(struct qp *, enum reason, uint64_t id);

#endif
