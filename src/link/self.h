/* The link of a process to itself: one ring, from whichever thread sends to whichever receives. */
#ifndef LINK_SELF_H
#define LINK_SELF_H

#include "link/doorbell.h"
#include "link/link.h"
#include "link/ring.h"

/* 0 or errno. The doorbell is the process's own and outlives the link. */
int self_open(struct link **, const struct doorbell *);

/* Where the link receives from, so that looking for frames costs no call. */
struct ring_reader *self_reader(struct link *);

/* After ready said no: is there room now? From any thread; says so once. */
bool self_got_room(struct link *);

/* In the child of a fork: the ring is shared with the parent; unmaps it, and from now on swallows what is sent. */
void self_abandon(struct link *);

#endif
