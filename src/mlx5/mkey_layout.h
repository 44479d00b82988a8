/* The layouts of indirect keys in work requests (WORK_VENDOR_CONFIGURE): rkey has the key, owner_value the rights,
 * immediate the number of pieces, compare_or_add the rounds; the pieces are in the place of inline data. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

#include "transport/send_queue.h"
#include "verbs/memory/indirect.h"

void mkey_layout_begin(struct send_wqe *, uint32_t key);

/* Put the pieces into work with this many bytes of room. False: they have no room, or there are none. */
bool mkey_layout_put_list(struct send_wqe *, uint32_t room, uint16_t count, const struct ibv_sge *);
bool mkey_layout_put_interleaved(struct send_wqe *, uint32_t room, uint32_t rounds, uint16_t count,
                                 const struct mlx5dv_mr_interleaved *);

/* The layout of work; its pieces are the work's own. */
struct indirect_layout mkey_layout_of(const struct send_wqe *);
