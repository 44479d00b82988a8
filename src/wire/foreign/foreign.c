#include "wire/foreign/foreign.h"

#include <stdatomic.h>
#include <string.h>

#include "wire/guarded.h"

static foreign_find *_Atomic finds;

void foreign_find_by(foreign_find *find)
{
    atomic_store(&finds, find);
}

static const struct foreign *find_foreign(const void *at, size_t *length)
{
    foreign_find *ask = atomic_load(&finds);
    return ask ? ask(at, length) : NULL;
}

static size_t lesser(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* One piece of memory of either kind into a stage, and back. `length` is at most the stage's. */
static bool fetch(uint8_t *stage, const uint8_t *from, size_t length)
{
    while (length) {
        size_t here = length;
        const struct foreign *foreign = find_foreign(from, &here);
        size_t part = foreign ? lesser(here, length) : length;
        if (foreign ? !foreign->operations->copy_out(foreign->device, stage, from, part) ||
                          !foreign->operations->fence(foreign->device)
                    : !guarded_copy(stage, from, part))
            return false;
        stage += part;
        from += part;
        length -= part;
    }
    return true;
}

/* The last word lands by itself, behind the rest. */
static bool land_in_device(const struct foreign *foreign, uint8_t *to, const uint8_t *stage, size_t length,
                           unsigned last)
{
    size_t rest = length - last;
    return (!rest || foreign->operations->copy_in(foreign->device, to, stage, rest)) &&
           (!last || foreign->operations->copy_in(foreign->device, to + rest, stage + rest, last)) &&
           foreign->operations->fence(foreign->device);
}

static bool land_in_host(uint8_t *to, const uint8_t *stage, size_t length, unsigned last)
{
    uint64_t word = 0;
    size_t rest = length - last;
    if (rest && !guarded_copy(to, stage, rest))
        return false;
    memcpy(&word, stage + rest, last);
    return !last || guarded_store(to + rest, word, last);
}

/* `last`: so many bytes land by themselves. They are of one kind of memory, as words are aligned. */
static bool land(uint8_t *to, const uint8_t *stage, size_t length, unsigned last)
{
    while (length) {
        size_t here = length;
        const struct foreign *foreign = find_foreign(to, &here);
        size_t part = foreign ? lesser(here, length) : length;
        unsigned alone = part == length ? last : 0;
        if (!(foreign ? land_in_device(foreign, to, stage, part, alone) : land_in_host(to, stage, part, alone)))
            return false;
        to += part;
        stage += part;
        length -= part;
    }
    return true;
}

/* Bytes of the payload into the stage. */
static bool take(const struct payload *payload, uint32_t offset, uint8_t *stage, size_t length)
{
    if (payload->pull)
        return payload->pull(payload, offset, &(struct iovec){stage, length}, 1);
    for (uint32_t i = 0; i < payload->count && length; i++) {
        const struct iovec *piece = &payload->pieces[i];
        if (offset >= piece->iov_len) {
            offset -= (uint32_t)piece->iov_len;
            continue;
        }
        size_t part = lesser(piece->iov_len - offset, length);
        if (!fetch(stage, (const uint8_t *)piece->iov_base + offset, part))
            return false;
        stage += part;
        length -= part;
        offset = 0;
    }
    return !length;
}

/* The first of all pieces that is a device's; NULL: none is. */
static const struct foreign *find_any(const struct iovec *pieces, uint32_t count)
{
    const struct foreign *foreign = NULL;
    size_t ignored;
    for (uint32_t i = 0; i < count && !foreign; i++)
        foreign = pieces[i].iov_len ? find_foreign(pieces[i].iov_base, &ignored) : NULL;
    return foreign;
}

static bool copy_piece(const struct foreign *foreign, const struct payload *payload, uint32_t offset,
                       const struct iovec *to, unsigned last)
{
    for (size_t done = 0; done < to->iov_len;) {
        size_t part = lesser(to->iov_len - done, foreign->stage_length);
        bool ends = done + part == to->iov_len && last <= part;
        if (!take(payload, offset + (uint32_t)done, foreign->stage, part) ||
            !land((uint8_t *)to->iov_base + done, foreign->stage, part, ends ? last : 0))
            return false;
        done += part;
    }
    return true;
}

bool foreign_is_any(const struct iovec *pieces, uint32_t count)
{
    return atomic_load(&finds) && find_any(pieces, count);
}

/* Which stage is used matters little: any device's driver copies from any. */
bool foreign_payload_copy(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count,
                          unsigned last)
{
    if (!atomic_load(&finds))
        return false;
    const struct foreign *foreign = find_any(to, count);
    if (!foreign && !payload->pull)
        foreign = find_any(payload->pieces, payload->count);
    for (uint32_t i = 0; i < count && foreign; i++) {
        if (!copy_piece(foreign, payload, offset, &to[i], i + 1 == count ? last : 0))
            return false;
        offset += (uint32_t)to[i].iov_len;
    }
    return foreign;
}

bool foreign_is_there(const struct iovec *piece)
{
    const uint8_t *at = piece->iov_base;
    for (size_t left = piece->iov_len; left;) {
        size_t here = left;
        const struct foreign *foreign = find_foreign(at, &here);
        size_t part = lesser(here, left);
        if (!foreign || !foreign->operations->is_there(foreign->device, at, part))
            return false;
        at += part;
        left -= part;
    }
    return true;
}

static bool load_word(void *at, uint64_t *word)
{
    const struct iovec piece = {at, sizeof *word}, to = {word, sizeof *word};
    return foreign_payload_copy(&(struct payload){.length = sizeof *word, .count = 1, .pieces = &piece}, 0, &to, 1,
                                sizeof *word);
}

static bool store_word(void *at, uint64_t word)
{
    const struct iovec piece = {&word, sizeof word}, to = {at, sizeof word};
    return foreign_payload_copy(&(struct payload){.length = sizeof word, .count = 1, .pieces = &piece}, 0, &to, 1,
                                sizeof word);
}

bool foreign_compare_and_swap(void *at, uint64_t compare, uint64_t swap, uint64_t *found)
{
    return load_word(at, found) && (*found != compare || store_word(at, swap));
}

bool foreign_fetch_and_add(void *at, uint64_t add, uint64_t *found)
{
    return load_word(at, found) && store_word(at, *found + add);
}
