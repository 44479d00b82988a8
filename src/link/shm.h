/* clang-format off */
/* The link to another process of this host: a ring each way. That of a process to itself (loopback) is the same with
 * one ring for both ways, from whichever thread sends to whichever receives.
 *
 * The sender makes its ring when it first sends and hands it over through the receiver's socket; it need not wait for
 * the receiver to map it. The steps of a hand-over:
 *     sender:   makes the ring; notes the receiver's looks; sends the message with its descriptor; counts it
 *     receiver: begins a look; takes the message; maps the ring; says so in the ring; ends the look when there are no more
 * The sender keeps the descriptor until the ring says that it is mapped. Until then it sends the message again
 * whenever it was refused, or was taken and the receiver could not map the ring (it had no descriptor or memory left).
 * A message that still lies in the receiver's queue is not sent twice. A message that could not be sent is tried
 * again by shm_retry, after `postponed` was called, and by shm_insist. Large payloads by reference are read straight
 * from the sender's memory by the receiver, once the receiver has tried that it can. */
/* clang-format on */
#ifndef LINK_SHM_H
#define LINK_SHM_H

#include <sys/types.h>

#include "base/nanos.h"
#include "link/cma.h"
#include "link/doorbell.h"
#include "link/link.h"
#include "link/ring.h"

struct direct_access;

/* The state that all links of a process share. */
struct shm_common {
    _Atomic uint64_t proof; /* a value that other processes find in our memory to be sure that it is ours */
    atomic_uint rings;      /* rings made; the first few are larger */
    atomic_bool asked;      /* cma_permit, for the first ring */
    atomic_bool permitted;  /* and it was: the process that ends the host withdraws it */
    int published;          /* descriptor of this process's publications, for its peers; -1: none */
    /* Something waits: call shm_retry of all links soon, and again for as long as one says so. Called from any thread,
     * also under the sending lock. */
    void (*postponed)(struct shm_common *);
    /* No ring can be made, for this errno. True: something was given up for it, so try again. Likewise from any thread
     * and under the sending lock. */
    bool (*lacking)(struct shm_common *, int error);
};

/* A link with no rings yet. The doorbell is copied; the control_inbox is the other process's. */
struct link *shm_open_link(struct shm_common *, const struct doorbell *, struct control_inbox *);

/* The link of a process to itself, with its own doorbell and control_inbox; attached from the beginning. 0 or errno. */
int shm_open_loopback(struct link **, struct shm_common *, const struct doorbell *, struct control_inbox *);

/* Receiving: one caller at a time, under the receiver's progress lock. The next frame, or false. It is valid until
 * shm_release, which must follow. A frame that is not well formed is dropped inside and never returned. */
bool shm_receive(struct link *, struct frame *);
void shm_release(struct link *);

/* Ends a batch of receives: reports to the sender how much room there is now, and wakes it when it waits for that. */
void shm_drained(struct link *);

/* Tries again what was refused: a doorbell, and handing over the ring. 0: nothing waits any more; EAGAIN: the
 * receiver's queue is full; or EINPROGRESS: the receiver has to map the ring first, or the system has to get room.
 * Thread-safe. */
int shm_retry(struct link *);

/* The other side may have missed that something lies in its ring: once it has taken nothing for a while, it is woken at
 * any attention, or is handed the ring again, but not while it has an earlier message of this kind before it. Returns
 * for how long it has been seen to take nothing. Call it while something lies there (not consumed), again and again;
 * one caller at a time. */
nanos shm_insist(struct link *, nanos now);

/* There is a reason for it: the time begins anew. */
void shm_excuse(struct link *, nanos now);

/* From now on, until the other side takes something, a frame that finds no room is swallowed instead of waiting for
 * some. */
void shm_give_up(struct link *);

/* The other side has handed over its ring: the descriptor stays the caller's. 0; EALREADY; or ring_map's errors. */
int shm_attached(struct link *, int memory, const struct cma_proof *);

/* The memory that the other side publishes, -1 for nothing; the descriptor stays the caller's. After shm_attached, by
 * the same caller, and before anything is read from the ring: until then shm_can_direct returns true, so that a queue
 * pair with READs and WRITEs waits for the first answer. */
void shm_learn(struct link *, int published);

/* Of a link with `directs`: returns true if, as far as is known, this process may read and write by itself what the
 * other publishes. True, too, until the first frame from there. Thread-safe. */
bool shm_can_direct(struct link *);

/* Does one READ or WRITE so (link/direct.h): true, and it is done and seen before all that is sent after it. False:
 * send it as packets, as if nothing had been done. Thread-safe; not between begin and end. */
bool shm_direct(struct link *, const struct direct_access *);

/* Another number after each sleep of the other process, odd while it sleeps: a process that does not sleep looks at its
 * rings. A hint, as it may change at once. Thread-safe. */
unsigned shm_attention(const struct link *);

/* Where the other side announces what it does in our memory; NULL: it does nothing there. As shm_reader. */
const struct direct_seats *shm_seats(struct link *);

/* Accesses that the other side announces there with these numbers are to write nothing (direct_forbid). As shm_seats,
 * which is not NULL. */
void shm_forbid_writes(struct link *, const uint32_t seen[]);

/* Where the link receives from; NULL until attached. Under the receiver's progress lock, or the caller's own. */
struct ring_reader *shm_reader(struct link *);

/* Asks the other side for marks, or takes that back (marks.h). Not of a loopback; as shm_reader, which is not NULL. */
void shm_want_mark(struct link *, bool);

/* The reader has found what is no frame (ring_reader.broken): the other side is asked to mend its ring. Under
 * the receiver's progress lock, and while no other thread looks at the link's reader. */
void shm_refuse(struct link *);

/* Does what the other side asked for so, and goes on with what was asked of it: frames that it had not taken are lost,
 * as on a network, and the link is `lossy`. As shm_refuse; call it after each doorbell. */
void shm_mend(struct link *);

/* After ready returned false: returns true, once, when there is room. From any thread. */
bool shm_got_room(struct link *);

/* Sends the peer a message that we leave. Never blocks. */
void shm_farewell(struct link *);

/* The other process is gone: everything that is sent from now on is swallowed, its resources are given back. */
void shm_sever(struct link *);

/* Discards the frames that have arrived. Under the receiver's progress lock. */
void shm_detach(struct link *);

/* In the child of a fork: the rings are the parent's; unmaps them, and from now on swallows what is sent. */
void shm_abandon(struct link *);

#endif
