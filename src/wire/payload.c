#include "wire/payload.h"

#include <stddef.h>
#include <string.h>

typedef uint64_t __attribute__((may_alias)) word64;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint16_t __attribute__((may_alias)) word16;

static inline uint64_t load64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store64(uint8_t *to, uint64_t value)
{
    memcpy(to, &value, sizeof(value));
}

static inline uint32_t load32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store32(uint8_t *to, uint32_t value)
{
    memcpy(to, &value, sizeof(value));
}

/* Sixteen bytes in one register, of any alignment. */
typedef uint64_t two_words __attribute__((vector_size(16), aligned(1), may_alias));

/* Bytes that end a destination and land in one store: the largest naturally aligned word that fits. */
static inline unsigned last_word(const uint8_t *end, size_t length)
{
    uintptr_t address = (uintptr_t)end;
    if (length >= 8 && (address & 7) == 0)
        return 8;
    if (length >= 4 && (address & 3) == 0)
        return 4;
    return length >= 2 && (address & 1) == 0 ? 2 : 1;
}

/* `size` bytes of any alignment as the start of a word. */
static inline uint64_t load_word(const uint8_t *from, unsigned size)
{
    switch (size) {
    case 8:
        return load64(from);
    case 4:
        return load32(from);
    case 2: {
        uint16_t value;
        memcpy(&value, from, sizeof(value));
        return value;
    }
    default:
        return *from;
    }
}

/* One store after everything before it. A store with release order and not a fence: ThreadSanitizer knows no fences. */
static inline void land_word(uint8_t *to, uint64_t value, unsigned size)
{
    switch (size) {
    case 8:
        __atomic_store_n((word64 *)to, value, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((word32 *)to, (uint32_t)value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((word16 *)to, (uint16_t)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n(to, (uint8_t)value, __ATOMIC_RELEASE);
    }
}

static inline void copy_up_to_7(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length >= 4) {
        uint32_t head = load32(from), tail = load32(from + length - 4);
        store32(to, head);
        store32(to + length - 4, tail);
    } else if (length) {
        uint8_t head = from[0], middle = from[length / 2], tail = from[length - 1];
        to[0] = head;
        to[length / 2] = middle;
        to[length - 1] = tail;
    }
}

static inline void copy_16_to_64(uint8_t *to, const uint8_t *from, size_t length)
{
    const uint8_t *end = from + length;
    uint8_t *to_end = to + length;
    two_words a = *(const two_words *)from, d = *(const two_words *)(end - 16);
    if (length > 32) {
        two_words b = *(const two_words *)(from + 16), c = *(const two_words *)(end - 32);
        *(two_words *)(to + 16) = b;
        *(two_words *)(to_end - 32) = c;
    }
    *(two_words *)to = a;
    *(two_words *)(to_end - 16) = d;
}

/* Like memmove (a program may write a region onto itself), without a call for what fits into a few registers: from
 * both ends, overlapping in the middle, everything read before anything is written. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 64) {
        memmove(to, from, length);
    } else if (length >= 16) {
        copy_16_to_64(to, from, length);
    } else if (length >= 8) {
        uint64_t head = load64(from), tail = load64(from + length - 8);
        store64(to, head);
        store64(to + length - 8, tail);
    } else {
        copy_up_to_7(to, from, length);
    }
}

/* The last word is read first: where the regions overlap, the copy of the rest may overwrite it. */
static inline void copy_and_land_word(uint8_t *to, const uint8_t *from, size_t length, unsigned last)
{
    uint64_t word = load_word(from + length - last, last);
    copy(to, from, length - last);
    land_word(to + length - last, word, last);
}

/* With the size as a constant in each call, the compiler decides once what last_word says. */
static inline void copy_and_land(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length == 0)
        return;
    switch (last_word(to + length, length)) {
    case 8:
        copy_and_land_word(to, from, length, 8);
        break;
    case 4:
        copy_and_land_word(to, from, length, 4);
        break;
    case 2:
        copy_and_land_word(to, from, length, 2);
        break;
    default:
        copy_and_land_word(to, from, length, 1);
    }
}

/* A place in a list of pieces. */
struct cursor {
    const struct iovec *piece;
    uint32_t left; /* pieces from `piece` on */
    size_t skip;   /* bytes of it that lie behind */
};

/* Moves on; copies what is passed to `to` unless that is NULL. False when the pieces end before. */
static bool take(struct cursor *from, uint8_t *to, size_t length)
{
    while (length) {
        if (from->left == 0)
            return false;
        size_t here = from->piece->iov_len - from->skip;
        size_t part = here < length ? here : length;
        if (to && part) {
            copy(to, (const uint8_t *)from->piece->iov_base + from->skip, part);
            to += part;
        }
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
    unsigned last = last_word(to + length, length);
    uint8_t word[8];
    if (!take(from, to, length - last) || !take(from, word, last))
        return false;
    land_word(to + length - last, load_word(word, last), last);
    return true;
}

/* `count` destination pieces, the last of which is not empty. */
static bool copy_pieces(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct cursor from = {payload->pieces, payload->count, 0};
    if (!take(&from, NULL, offset))
        return false;
    for (uint32_t i = 0; i + 1 < count; i++)
        if (!take(&from, to[i].iov_base, to[i].iov_len))
            return false;
    return take_and_land(&from, to[count - 1].iov_base, to[count - 1].iov_len);
}

/* How a link fetches is its own affair (the kernel's copy may store the bytes in any order), so the last word is
 * fetched aside, as one more piece of the same call, and stored here. */
static bool pull_pieces(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct iovec split[PAYLOAD_PIECES_MAX + 1];
    if (count > PAYLOAD_PIECES_MAX)
        return false;
    struct iovec *end = &split[count - 1];
    memcpy(split, to, count * sizeof(*to));
    uint8_t *stop = (uint8_t *)end->iov_base + end->iov_len;
    unsigned last = last_word(stop, end->iov_len);
    uint8_t word[8];
    end->iov_len -= last;
    uint32_t kept = end->iov_len ? count : count - 1;
    split[kept] = (struct iovec){word, last};
    if (!payload->pull(payload, offset, split, kept + 1))
        return false;
    land_word(stop - last, load_word(word, last), last);
    return true;
}

/* Kept apart, so that the short way does not save registers for it. */
__attribute__((noinline)) static bool copy_any(const struct payload *payload, uint32_t offset, const struct iovec *to,
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
    return payload->pull ? pull_pieces(payload, offset, to, count) : copy_pieces(payload, offset, to, count);
}

bool payload_copy(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    if (count != 1 || payload->count != 1 || payload->pull)
        return copy_any(payload, offset, to, count);
    if (offset > payload->length || to->iov_len > payload->length - offset)
        return false;
    copy_and_land(to->iov_base, (const uint8_t *)payload->pieces->iov_base + offset, to->iov_len);
    return true;
}
