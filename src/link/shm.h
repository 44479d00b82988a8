/* clang-format off */
/* The link to another process of this host: a ring in each direction. The link of a process to itself (loopback) has
 * one ring, for all threads.
 *
 * The sender makes its ring when it first sends and hands it over through the receiver's socket; it need not wait for
 * the receiver to map it. The steps of a hand-over:
 *     sender:   makes the ring; reads the receiver's looks; sends the message with its descriptor; counts it
 *     receiver: begins a look; takes the message; maps it; says so in the ring; ends the look when no message is left
 * The sender keeps the descriptor until the ring says that it is mapped. Until then it sends the message again
 * whenever it was refused, or was taken and the receiver could not map the ring (it had no descriptor or memory
 * left). While a message is in the receiver's queue, it is not sent again. A message that could not be sent is tried
 * again by shm_retry, after `postponed` was called, and by shm_insist. Large payloads by reference are read straight
 * from the sender's memory by the receiver, once the receiver has tried that it can. */
/* clang-format on */
#pragma once

#include <sys/types.h>

#include "base/nanos.h"
#include "link/copy/cma.h"
#include "link/doorbell.h"
#include "link/link.h"
#include "link/ring.h"

struct direct_access;

/* The state that all links of a process share. */
struct shm_common {
    _Atomic uint64_t proof; /* a value that other processes find in our memory to be sure that it is ours */
    atomic_uint rings;      /* rings made; the first few are larger */
    atomic_bool asked;      /* cma_permit was called, for the first ring */
    atomic_bool permitted;  /* cma_permit returned true: the owner of this struct calls cma_withdraw in the end */
    int published;          /* descriptor of this process's publications, for its peers; -1: not published */
    /* Asks for shm_retry of all links soon, and again as long as one of them has something left to try. Called from
     * any thread, also under the sending lock. */
    void (*postponed)(struct shm_common *);
    /* Reports that no ring can be made, with the errno. True: something was given up for it, so try again. Called
     * from any thread, also under the sending lock. */
    bool (*lacking)(struct shm_common *, int error);
};

/* A link with no rings yet. The doorbell is copied; the control_inbox belongs to the other process. */
struct link *shm_open_link(struct shm_common *, const struct doorbell *, struct control_inbox *);

/* The link of a process to itself, with its own doorbell and control_inbox; attached from the beginning. 0 or errno. */
int shm_open_loopback(struct link **, struct shm_common *, const struct doorbell *, struct control_inbox *);

/* Receives the next frame, or returns false; one caller at a time, under the receiver's progress lock. The frame is
 * valid until shm_release, which must follow. A frame that is not well formed is dropped inside and never returned. */
bool shm_receive(struct link *, struct frame *);
void shm_release(struct link *);

/* Ends a batch of receives: reports to the sender how much room there is now, and wakes it when it waits for that. */
void shm_drained(struct link *);

/* Tries again what was refused: a doorbell, and handing over the ring. 0: nothing is left to try; EAGAIN: the
 * receiver's queue is full; EINPROGRESS: the receiver has to map the ring first, or the system has no room now.
 * Thread-safe. */
int shm_retry(struct link *);

/* Wakes a receiver that may have missed frames in its ring: once it has taken nothing for a while, it gets a message
 * whatever its attention is, or is handed the ring again, unless an earlier message of this kind is still unread.
 * Returns for how long it has taken nothing. Call it again and again while frames wait (not consumed); one caller at
 * a time. */
nanos shm_insist(struct link *, nanos now);

/* Restarts the time for which the receiver has taken nothing; call it when the delay is explained. */
void shm_excuse(struct link *, nanos now);

/* Drops a frame that finds no room, instead of waiting for room, until the other side takes something again. */
void shm_give_up(struct link *);

/* Maps the ring that the other side handed over; the descriptor stays the caller's. 0, EALREADY, ring_map's errors. */
int shm_attached(struct link *, int memory, const struct cma_proof *);

/* The memory that the other side publishes, -1 for nothing; the descriptor stays the caller's. After shm_attached,
 * by the same caller, and before anything is read from the ring: until then shm_can_direct returns true, so that a
 * queue pair's READs and WRITEs wait for the first answer. */
void shm_learn(struct link *, int published);

/* Returns true if, as far as is known, this process may read and write by itself what the other publishes; true,
 * too, until the first frame from the other side. The link must have `directs`. Thread-safe. */
bool shm_can_direct(struct link *);

/* Does one READ or WRITE directly in the other's memory (link/direct.h). True: done, and visible before all that is
 * sent later. False: send it as packets, as if nothing had been done. Thread-safe; not between begin and end. */
bool shm_direct(struct link *, const struct direct_access *);

/* Returns a number that changes with each sleep of the other process and is odd while it sleeps: a process that does
 * not sleep looks at its rings. It may change at once. Thread-safe. */
unsigned shm_attention(const struct link *);

/* The seats where the other side announces accesses to our memory; NULL: it can't access. Called as shm_reader is. */
const struct direct_seats *shm_seats(struct link *);

/* Forbids the accesses that the other side announces at shm_seats, which is not NULL, with these numbers: they write
 * nothing (direct_forbid). Called as shm_reader is. */
void shm_forbid_writes(struct link *, const uint32_t seen[]);

/* The link's receiving ring; NULL until attached. Under the receiver's progress lock, or the caller's own. */
struct ring_reader *shm_reader(struct link *);

/* Asks the other side for marks (marks.h), or withdraws the question. Not for a loopback. Called as shm_reader is,
 * after that has returned a reader. */
void shm_want_mark(struct link *, bool);

/* Asks the other side to mend its ring, after the reader found something that is not a frame (ring_reader.broken).
 * Under the receiver's progress lock, and while no other thread looks at the link's reader. */
void shm_refuse(struct link *);

/* Mends our ring if the other side has asked for it, and reads its ring again once it has mended that: frames that
 * it had not taken are lost, as on a network, and the link is `lossy`. Called as shm_refuse is, after each doorbell. */
void shm_mend(struct link *);

/* Returns true, once, when there is room again after ready returned false. From any thread. */
bool shm_got_room(struct link *);

/* Sends the peer a message that this process leaves. Never blocks. */
void shm_farewell(struct link *);

/* Ends a link whose other process is gone: everything that is sent later is dropped, its resources are given back. */
void shm_sever(struct link *);

/* Ends receiving: shuts the seats, and unmaps the ring with the frames that wait in it. Under the receiver's progress
 * lock. */
void shm_detach(struct link *);

/* Unmaps the parent's rings in a forked child, and drops everything sent afterwards. */
void shm_abandon(struct link *);
