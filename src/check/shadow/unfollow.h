/* Objects of the program that the checker can't follow, since what the program does with them passes no call. */
#pragma once

#include <stdbool.h>

#include "check/shadow/shadow.h"

/* Follows the object no longer, nor the queue pairs that use it. Takes the lock. */
void unfollow(enum shadow_kind, const void *handle);

/* Nothing is known of the object of this address, which another one may have had. Takes the lock. */
void unfollow_address(const void *handle);

/* True: a completion queue of this new queue pair is not followed, or its type is a driver's own, whose work may end in
 * any order. Under the lock. */
bool unfollow_is_needed(const struct shadow *qp);
void unfollow_new(struct shadow *qp);
