/* Memory of the program that the processor can't reach: a GPU's, which its driver copies. Its bytes have addresses, and
 * are in lists of pieces like any memory, but a load or a store there faults. So a copy of one piece calls a function
 * here only after an access of wire/guarded.h has returned false; all others cost a look whether there is such memory.
 *
 * All copies pass through a stage, memory of the host from which the driver copies fast. One thread at a time uses it.
 *
 * A short copy takes as long as a copy of many packets. So bytes of a source are read ahead, to the end of their
 * element of the work request, and the landings of a message's packets wait for each other. foreign_settle ends all
 * copies that wait or were begun; a thread calls it before it gives back process->progress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/payload.h"

/* The functions of one device. The copies that they begin end in the order in which they began. */
struct foreign_operations {
    /* Begin to copy out of the device's memory into the stage, or from the stage into it. False: the driver refuses. */
    bool (*copy_out)(void *device, void *stage, const void *from, size_t length);
    bool (*copy_in)(void *device, void *to, const void *stage, size_t length);
    /* Waits until all copies that were begun are visible to the device's programs. False: some have failed. */
    bool (*fence)(void *device);
    /* Returns true if a copy of these bytes would succeed, as far as the driver knows. */
    bool (*is_there)(void *device, const void *, size_t length);
};

enum {
    FOREIGN_PIECE = 256 << 10, /* bytes of the longest copy that runs while others are gathered */
    FOREIGN_LANES = 4,         /* messages that are gathered, and elements that are read ahead, at the same time */
    FOREIGN_LANDINGS = 2 * FOREIGN_LANES,
    FOREIGN_AHEAD = 4 * FOREIGN_LANES,
};

struct foreign {
    const struct foreign_operations *operations;
    void *device;
    uint8_t *stage;
    size_t stage_length;
    uint8_t *landings, *ahead; /* FOREIGN_LANDINGS and FOREIGN_AHEAD pieces */
};

/* Returns the device that has this address, and the number of its bytes from there on. NULL: no device, or this thread
 * must not copy its memory. The owner of the regions sets the function once; before, there is no such memory. */
typedef const struct foreign *foreign_find(const void *at, size_t *length);
void foreign_find_by(foreign_find *);

/* Returns true if one of the pieces is a device's memory. */
bool foreign_is_any(const struct iovec *pieces, uint32_t count);

/* Copies what payload_copy can't. The `last` bytes of the last piece, at most eight, land by themselves, after all
 * others. */
bool foreign_payload_copy(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count,
                          unsigned last);

/* Names the message whose packet the calling thread executes from now on: until the next call, landings may wait for
 * more of the message, unless it `ends` with this packet. If they fail after foreign_payload_copy returned true, *lost
 * becomes true, at the latest in foreign_settle_message, which is called before *lost is freed or used anew. NULL: no
 * message, and each landing has ended when foreign_payload_copy returns. Under process->progress. */
void foreign_gather(bool *lost, bool ends);

/* Ends all landings of the message. */
void foreign_settle_message(const bool *lost);

/* Names bytes that the calling thread sends in order, in packets: an element of a work request, which does not change
 * until the request has ended, or the data of a READ. If they are a device's, the next packet may be read together with
 * later ones. `sender` is any address that identifies the queue of the work requests. */
void foreign_send(const void *sender, const void *start, size_t length);

/* A number that differs for each call of a driver, while a thread is within it; 0: no thread is. Any thread. */
uint32_t foreign_waiting(void);

/* Returns true if landings of this thread wait for more of their messages. */
bool foreign_waits(void);

/* Ends all landings and copies that this thread has begun. False: some of them have failed. */
bool foreign_settle(void);

/* Returns true if the bytes of the piece exist in a device's memory. */
bool foreign_is_there(const struct iovec *piece);

/* Do what the atomics of wire/guarded.h do, after these have failed. They are atomic only among their callers, one at a
 * time: a program of the device may change the word meanwhile. */
bool foreign_compare_and_swap(void *at, uint64_t compare, uint64_t swap, uint64_t *found);
bool foreign_fetch_and_add(void *at, uint64_t add, uint64_t *found);
