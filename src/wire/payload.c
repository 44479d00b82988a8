#include "wire/payload.h"

#include <stddef.h>
#include <string.h>

#include "base/likely.h"
#include "wire/foreign/foreign.h"
#include "wire/guarded.h"

/* Reads the last word first: where the regions overlap, the copy of the other bytes may overwrite it. It lands in one
 * store after all others. */
static inline bool copy_and_land_word(uint8_t *to, const uint8_t *from, size_t length, unsigned last)
{
    uint64_t word;
    return guarded_load(from + length - last, last, &word) &&
           (length == last || guarded_copy(to, from, length - last)) && guarded_store(to + length - last, word, last);
}

/* The size is a constant in each call, so the compiler evaluates payload_last_word once. */
static inline bool copy_and_land(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length == 0)
        return true;
    switch (payload_last_word((uintptr_t)to + length, length)) {
    case 8:
        return copy_and_land_word(to, from, length, 8);
    case 4:
        return copy_and_land_word(to, from, length, 4);
    case 2:
        return copy_and_land_word(to, from, length, 2);
    default:
        return copy_and_land_word(to, from, length, 1);
    }
}

/* A place in a list of pieces. */
struct cursor {
    const struct iovec *piece;
    uint32_t left; /* pieces from `piece` on */
    size_t skip;   /* bytes of `piece` that were passed */
};

/* Moves on by `length` bytes, and copies them to `to` unless that is NULL. False: the pieces end before, or are
 * gone. */
static bool payload_take(struct cursor *from, uint8_t *to, size_t length)
{
    while (length) {
        if (from->left == 0)
            return false;
        size_t here = from->piece->iov_len - from->skip;
        size_t part = here < length ? here : length;
        if (to && !guarded_copy(to, (const uint8_t *)from->piece->iov_base + from->skip, part))
            return false;
        if (to)
            to += part;
        length -= part;
        from->skip += part;
        if (part == here) {
            from->piece++;
            from->left--;
            from->skip = 0;
        }
    }
    return true;
}

static bool take_and_land(struct cursor *from, uint8_t *to, size_t length)
{
    unsigned last = payload_last_word((uintptr_t)to + length, length);
    uint64_t word = 0;
    return payload_take(from, to, length - last) && payload_take(from, (uint8_t *)&word, last) &&
           guarded_store(to + length - last, word, last);
}

/* Copies to `count` pieces; the last one is not empty. */
static bool copy_pieces(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct cursor from = {payload->pieces, payload->count, 0};
    if (!payload_take(&from, NULL, offset))
        return false;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!payload_take(&from, to[i].iov_base, to[i].iov_len))
            return false;
    return take_and_land(&from, to[count - 1].iov_base, to[count - 1].iov_len);
}

/* A link may store the bytes in any order (the kernel's copy does), so the last word is fetched into a variable, as one
 * more piece of the same call, and stored from there. */
static bool pull_pieces(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct iovec split[PAYLOAD_PIECES_MAX + 1];
    if (count > PAYLOAD_PIECES_MAX)
        return false;
    struct iovec *end = &split[count - 1];
    memcpy(split, to, count * sizeof(*to));
    uint8_t *stop = (uint8_t *)end->iov_base + end->iov_len;
    unsigned last = payload_last_word((uintptr_t)stop, end->iov_len);
    uint64_t word = 0;
    end->iov_len -= last;
    uint32_t kept = end->iov_len ? count : count - 1;
    split[kept] = (struct iovec){&word, last};
    return payload->pull(payload, offset, split, kept + 1) && guarded_store(stop - last, word, last);
}

/* A separate function, so that the short way does not save registers for it. */
cold static bool payload_copy_slow(const struct payload *payload, uint32_t offset, const struct iovec *to,
                                   uint32_t count)
{
    size_t total = 0;
    while (count && to[count - 1].iov_len == 0)
        count--;
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_add_overflow(total, to[i].iov_len, &total))
            return false;
    if (offset > payload->length || total > payload->length - offset)
        return false;
    if (count == 0)
        return true;
    if (payload->pull && payload->count == PAYLOAD_STORES)
        return payload->pull(payload, offset, to, count);
    const struct iovec *end = &to[count - 1];
    unsigned last = payload_last_word((uintptr_t)end->iov_base + end->iov_len, end->iov_len);
    if (foreign_is_any(to, count))
        return foreign_payload_copy(payload, offset, to, count, last);
    return payload->pull
               ? pull_pieces(payload, offset, to, count)
               : copy_pieces(payload, offset, to, count) || foreign_payload_copy(payload, offset, to, count, last);
}

cold static bool copy_foreign(const struct payload *payload, uint32_t offset, const struct iovec *to)
{
    return foreign_payload_copy(payload, offset, to, 1,
                                payload_last_word((uintptr_t)to->iov_base + to->iov_len, to->iov_len));
}

bool payload_copy(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    if (count != 1 || payload->count != 1 || payload->pull)
        return payload_copy_slow(payload, offset, to, count);
    if (offset > payload->length || to->iov_len > payload->length - offset)
        return false;
    return likely(copy_and_land(to->iov_base, (const uint8_t *)payload->pieces->iov_base + offset, to->iov_len)) ||
           copy_foreign(payload, offset, to);
}

bool payload_can_land(const struct iovec *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!guarded_is_writable(to[i].iov_base, to[i].iov_len) && !foreign_is_there(&to[i]))
            return false;
    return true;
}

bool payload_is_there(const struct payload *payload)
{
    for (uint32_t i = 0; i < payload->count; i++)
        if (!guarded_is_readable(payload->pieces[i].iov_base, payload->pieces[i].iov_len) &&
            !foreign_is_there(&payload->pieces[i]))
            return false;
    return true;
}
