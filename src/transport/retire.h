/* Ending work requests: in the order of posting, each once. */
#pragma once

#include "transport/owner.h"

/* Ends the oldest work request. The queue must not be empty. `next` moves along if it is the oldest's position. */
void retire_head(struct send_queue *, struct engine_owner *, enum ibv_wc_status, enum reason);

/* Ends with success all work before `next`: for services whose work ends once it is transmitted. */
void retire_transmitted(struct send_queue *, struct engine_owner *);

/* Ends everything with WR_FLUSH_ERR. */
void retire_all(struct send_queue *, struct engine_owner *);

/* Ends the oldest work with this error, and with WR_FLUSH_ERR what has begun after it. */
void retire_begun(struct send_queue *, struct engine_owner *, enum ibv_wc_status, enum reason);

/* Ends the oldest work with this error and all later work with WR_FLUSH_ERR. */
void retire_failed(struct send_queue *, struct engine_owner *, enum ibv_wc_status, enum reason);
