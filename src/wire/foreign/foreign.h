/* Memory of the program that the processor can't reach: that of a GPU, which its driver copies. Its bytes have
 * addresses, and stand in lists of pieces as those of any memory, but a load or a store there faults. So nothing here
 * is asked before an access of wire/guarded.h has ended in false: memory of the host pays nothing for it.
 *
 * All copies pass a stage, memory of the host from which the driver copies fast. One thread at a time has it.
 *
 * A short copy takes as long as one of many packets. So bytes of a source are read ahead, to the end of the element of
 * a work request that they are in, and the landings of a message's packets wait for each other. All that waits or is
 * under way has ended when the thread has called foreign_settle, which it does before it gives back process->progress.
 */
#ifndef WIRE_FOREIGN_H
#define WIRE_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/payload.h"

/* The functions of one device. The copies that they begin end in the order in which they began. */
struct foreign_operations {
    /* Begins to copy out of the device's memory into the stage, or from there into it. False: the driver refuses. */
    bool (*copy_out)(void *device, void *stage, const void *from, size_t length);
    bool (*copy_in)(void *device, void *to, const void *stage, size_t length);
    /* All that was begun has ended, and is visible to the device's programs. False: some of it has failed. */
    bool (*fence)(void *device);
    /* Returns true if a copy of these bytes would succeed, as far as the driver knows. */
    bool (*is_there)(void *device, const void *, size_t length);
};

enum {
    FOREIGN_PIECE = 256 << 10, /* bytes of the longest copy that goes on while others are gathered */
    FOREIGN_LANES = 4,         /* messages that are gathered at once, and as many senders that are read ahead for */
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

/* Returns the device whose memory begins at this address, and the number of bytes of it that follow. NULL: no device's,
 * or this thread must not copy it. Set once, by the owner of the regions; NULL: there was no such memory yet. */
typedef const struct foreign *foreign_find(const void *at, size_t *length);
void foreign_find_by(foreign_find *);

/* Returns true if one of the pieces is such memory. */
bool foreign_is_any(const struct iovec *pieces, uint32_t count);

/* As payload_copy, which has failed or would. The `last` bytes of the last piece land by themselves, behind all others;
 * at most eight, and none where it is shorter. */
bool foreign_payload_copy(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count,
                          unsigned last);

/* The message whose packet the calling thread executes from now on: until the next call, landings may wait for more
 * of it, unless it ends with this packet. If they fail after foreign_payload_copy has returned true, *lost becomes
 * true, by foreign_settle_message or before; that is called before *lost goes away or is another message's. NULL: no
 * message, and each landing has ended when foreign_payload_copy returns. Under process->progress. */
void foreign_gather(bool *lost, bool ends);

/* All landings of the message end. */
void foreign_settle_message(const bool *lost);

/* The calling thread sends these bytes in order, in packets: an element of a work request, which stays as it is until
 * that has ended, or what a READ asks for. If they are a device's, the next packet may be read together with those
 * behind it. The sender is any address that stands for the works of one queue. */
void foreign_send(const void *sender, const void *start, size_t length);

/* Another number for each call of a driver, while a thread is within it; 0: none is. For any thread. */
uint32_t foreign_waiting(void);

/* Returns true if landings of this thread wait for more. */
bool foreign_waits(void);

/* All landings and copies that this thread has begun end. False: some of them have failed. */
bool foreign_settle(void);

/* Returns true if the bytes of the piece are there, where the processor does not reach them. */
bool foreign_is_there(const struct iovec *piece);

/* As the atomics of wire/guarded.h, which have failed. Atomic only among the callers, one at a time; the device's own
 * programs may change the word in between. */
bool foreign_compare_and_swap(void *at, uint64_t compare, uint64_t swap, uint64_t *found);
bool foreign_fetch_and_add(void *at, uint64_t add, uint64_t *found);

#endif
