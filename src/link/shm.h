/* The link to another process of this host: a ring each way.
 *
 * The sender makes its ring when it first sends and hands it over through the receiver's socket; it need not wait for
 * the receiver to map it. Large payloads by reference are read straight from the sender's memory by the receiver, once
 * the receiver has tried that it can. */
#ifndef LINK_SHM_H
#define LINK_SHM_H

#include <sys/types.h>

#include "link/doorbell.h"
#include "link/link.h"
#include "link/pull.h"
#include "link/ring.h"

/* What all links of a process have in common. */
struct shm_host {
    _Atomic uint64_t probe; /* a value that other processes find in our memory to be sure that it is ours */
    atomic_uint rings;      /* rings made; the first few are larger */
    /* The receiver's queue was full, the attach has to be sent again with shm_attach. Called under the sending lock. */
    void (*postponed)(struct shm_host *, void *owner);
};

/* A link with no rings yet. The doorbell is copied; `letters` counts, in shared memory, the letters to the other
 * process that it should look for even when it polls. `owner` is for postponed. */
struct link *shm_open_link(struct shm_host *, const struct doorbell *, atomic_uint *letters, void *owner);

/* Tries again to hand over the ring, if it hasn't been: 0, EAGAIN, or why it can't. */
int shm_attach(struct link *);

/* The other side has handed over its ring: the descriptor stays the caller's. 0; EALREADY; or ring_map's errors. */
int shm_attached(struct link *, int memory, const struct probe *);

/* Where the link receives from; NULL until attached. Under the receiver's progress lock, or the caller's own. */
struct ring_reader *shm_reader(struct link *);

/* After ready said no: is there room now? From any thread; says so once. */
bool shm_got_room(struct link *);

/* Tells the peer that we leave. Never blocks. */
void shm_farewell(struct link *);

/* The other process is gone: everything that is sent from now on is swallowed, what it takes is given back. */
void shm_sever(struct link *);

/* What has arrived is of no interest any more. Under the receiver's progress lock. */
void shm_detach(struct link *);

/* In the child of a fork: the rings are the parent's; unmaps them, and from now on swallows what is sent. */
void shm_abandon(struct link *);

#endif
