/* The payload of a packet, by reference: the bytes stay where they are until the receiver asks for them.
 *
 * The maker of the payload owns the memory, which stays valid until the call that got the payload returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    PAYLOAD_STORES = UINT32_MAX
}; /* as `count`: `pull` stores all of it by itself, in the places that payload_copy got */
enum { PAYLOAD_PIECES_MAX = 32 }; /* the most SGEs of a work request, so the most pieces of a packet */

struct payload {
    uint32_t length;            /* bytes in all pieces together */
    uint32_t count;             /* pieces; 0 when length is 0 */
    const struct iovec *pieces; /* NULL when length is 0 */
    /* A link may ship the list of pieces instead of the bytes when the sender says that the memory stays unchanged
     * until the packet is acknowledged (RC SEND and WRITE). */
    bool by_reference;
    /* NULL: the pieces are plain memory of this process. Otherwise the link's function that fetches `to` (at most
     * PAYLOAD_PIECES_MAX + 1 pieces, whose lengths add up to at most length - offset) from `offset` on, in any
     * order. False: the bytes can't be read, or are not valid any more. */
    bool (*pull)(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count);
    void *source; /* for pull */
};

/* The bytes at the end of a destination that land in one store: the largest naturally aligned word that fits. */
static inline unsigned payload_last_word(uintptr_t end, size_t length)
{
    if (length >= 8 && (end & 7) == 0)
        return 8;
    if (length >= 4 && (end & 3) == 0)
        return 4;
    return length >= 2 && (end & 1) == 0 ? 2 : 1;
}

/* Fills the pieces `to` with bytes of the payload, from `offset` on. The last byte lands last and, where the end of the
 * destination is aligned to eight bytes, the last eight bytes land in one store (otherwise the bytes of
 * payload_last_word): programs poll memory for the end of a WRITE. `count` is at most PAYLOAD_PIECES_MAX. Source and
 * destination may overlap if each is one piece. False: a pull failed, memory of either side is gone (guarded.h), or the
 * payload is shorter; the destination is then undefined. */
bool payload_copy(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count);

/* Find out why a copy failed: return true if the destination, or the payload's plain pieces, are still there. Both
 * touch each page. */
bool payload_can_land(const struct iovec *to, uint32_t count);
bool payload_is_there(const struct payload *);
