/* Random work between the SRD engines of a desk, and what must hold of it at the end. All chance is the desk's; one
 * world at a time, as what was posted is remembered here. */
#pragma once

#include "transport/testing/srd_desk.h"

enum { WORLD_LIAR = DESK_NODES - 1 }; /* the node that world_lie forges for, where desk->last_lies is set */

/* Work and its possible ends. */
enum world_rule {
    WORLD_ENDS_WELL, /* all of it ends with success */
    WORLD_FAILS,     /* it ends in any way; where with success, it was done */
    WORLD_LIES,      /* work of the liar, or for it, ends in any way, and the others' with success */
};

/* Posts some work. */
void world_post(struct desk *);
/* Posts, receives, transmits, delivers, waits; if it is rough, packets are lost and doubled. */
void world_step(struct desk *, bool rough);
/* Something fails, or does no longer. */
void world_disturb(struct desk *);
/* Nothing fails any more. */
void world_heal(struct desk *);
/* Changes a packet of the liar that is under way. */
void world_lie(struct desk *);
/* All that waits for a receive gets one, and the rest ends. */
void world_finish(struct desk *);

/* Says in words which work is wrong at the end; or NULL. */
const char *world_judge(const struct desk *, enum world_rule);
