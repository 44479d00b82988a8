/* A link carries frames from this process to one other, in order. It knows nothing of packets. This is its sending
 * side; how frames arrive depends on the kind.
 *
 * A caller holds the link between begin and end, so that what `ready` said stays true until the send and a batch costs
 * one lock. Implementations: shm (a process of this host, or this one itself) and udp (another host, which may lose and
 * reorder frames). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/likely.h"
#include "link/frame.h"

enum {
    LINK_SEGMENT = 16384,             /* most payload bytes of a frame that carries its bytes */
    LINK_REFERENCE_SEGMENT = 1 << 20, /* most payload bytes of a frame that carries a reference */
};

struct link;

struct link_operations {
    /* Takes and gives back the sending side (a short lock; other senders wait). `begin` returns true if `ready` is
     * known to be true; false means nothing. `end` also wakes a sleeping receiver if something was sent. */
    bool (*begin)(struct link *);
    void (*end)(struct link *);

    /* Returns true, between begin and end, if there is room for one frame of LINK_SEGMENT payload bytes; then the
     * next send succeeds. False also asks to be woken: the receiver rings this process's doorbell once there is room
     * again. */
    bool (*ready)(struct link *);

    /* Puts a frame into the link, between begin and end; everything in it may be reused at once, except memory of a
     * payload by_reference, which must stay unchanged until the receiver has answered or revoke was called. Such a
     * payload may be longer than LINK_SEGMENT only after can_reference said yes. A frame to a peer that is gone is
     * swallowed (FRAME_SENT). */
    enum frame_sent (*send)(struct link *, const struct frame *);

    /* Makes every reference that was sent until now invalid: the receiver, should it be copying right now, throws the
     * result away and treats the packet as lost. After the return the memory may be reused. */
    void (*revoke)(struct link *);

    /* Returns true if payloads may be sent by reference: the receiver can read this process's memory. */
    bool (*can_reference)(struct link *);

    /* Returns true if the receiver has taken all frames that were sent. */
    bool (*consumed)(struct link *);

    void (*close)(struct link *);
};

struct link {
    const struct link_operations *operations;
    atomic_bool directs; /* shm_can_direct and shm_direct may be called (link/shm.h): it is a link of shm */
    atomic_uint unsent;  /* frames that were accepted but could not leave this host, since this was last set to 0 */
    atomic_int error;    /* errno of the last frame in `unsent`; 0: it was longer than the link carries */
    atomic_bool lossy;   /* shm: the receiver has lost frames that count as taken (shm_mend) */
    atomic_int refused;  /* errno, if the latest frame could not leave; 0: it left */
};

/* Drops a frame longer than the link carries (engines cut payloads to fit); its work fails when the retries run out. */
cold __attribute__((unused)) static enum frame_sent link_drop_too_long(struct link *link)
{
    atomic_store(&link->error, 0);
    atomic_fetch_add(&link->unsent, 1);
    return FRAME_SENT;
}
