/* Work whose end a script decides (docs/reference/scripts.md): it is never done. Sends keep their place in the queue
 * and the order; a receive takes its message, which then finds no memory, so the peer is notified, too. */
#pragma once

#include <infiniband/verbs.h>

#include "script/reach.h"
#include "transport/send_queue.h"

enum { SCRIPTED_KEY = 0xff }; /* lkey of a receive's only element, whose address has the end; real keys are larger */

static inline uint32_t scripted_word(struct script_end end)
{
    return (uint32_t)end.vendor << 8 | end.status;
}

static inline struct script_end scripted_end(uint32_t word)
{
    return (struct script_end){(enum ibv_wc_status)(word & UINT8_MAX), (uint16_t)(word >> 8)};
}

/* Gives posted work this end. */
static inline void scripted_mark(struct send_wqe *work, struct script_end end)
{
    work->opcode |= WORK_SCRIPTED;
    work->owner_value = scripted_word(end);
}

static inline struct script_end scripted_end_of(const struct send_wqe *work)
{
    return scripted_end(work->owner_value);
}

/* ibv_post_send(3) of one work request with this end. Thread-safe. */
int scripted_post_send(struct ibv_qp *, struct ibv_send_wr *, struct script_end, struct ibv_send_wr **bad);

/* Gives this end to the work request that this thread's batch has begun last. */
void scripted_build(struct ibv_qp_ex *, struct script_end);

/* Returns the element that a receive with this end has instead of its list. */
static inline struct ibv_sge scripted_receive(struct script_end end)
{
    return (struct ibv_sge){.addr = scripted_word(end), .length = INT32_MAX, .lkey = SCRIPTED_KEY};
}
