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

/* The thread that has begun copies which may not have ended; NULL: none. All of the state below is its own. */
static void *_Atomic mover;
static _Thread_local char self __attribute__((tls_model("initial-exec")));

/* What lands: bytes of one message in one half of the device's landings, whose copy begins when the half is full. */
static struct {
    const struct foreign *foreign; /* NULL: nothing */
    bool *lost;                    /* of the message, which goes on; NULL: of one that ends */
    uint8_t *to;                   /* the place of the bytes that wait */
    size_t begun, filled;          /* those between them wait */
    unsigned half;
    bool flies;  /* a copy has not been waited for */
    bool failed; /* one has, since the last that settled */
} landing;
static bool *gathering;

/* What is read ahead: one half is there, and the other is being copied. */
static struct {
    const struct foreign *foreign;     /* NULL: nothing */
    const uint8_t *start, *end, *next; /* the element, and the byte of it that is sent next */
    size_t ready, used, coming;        /* bytes of this half, those of them sent, and bytes of the other half */
    unsigned half;
    bool flies;
} ahead;
static const uint8_t *sent_start, *sent_end; /* the element that foreign_send has named; NULL: none */

static bool fence(const struct foreign *foreign)
{
    return foreign->operations->fence(foreign->device);
}

static bool note_landing(bool fine)
{
    landing.failed = landing.failed || !fine;
    if (!fine && landing.lost)
        *landing.lost = true;
    return fine;
}

/* A driver reports a failure once, and not of which copy: so it is one of all that had begun. */
static bool fence_all(void)
{
    bool joint = landing.flies && landing.foreign == ahead.foreign;
    bool landed = !landing.flies || fence(landing.foreign);
    bool read = !ahead.flies || (joint ? landed : fence(ahead.foreign));
    landing.flies = ahead.flies = false;
    if (!read)
        ahead.foreign = NULL;
    return note_landing(landed);
}

static void forget_ahead(void)
{
    if (ahead.flies)
        fence_all();
    ahead.foreign = NULL;
}

static uint8_t *landing_half(void)
{
    return landing.foreign->landings + landing.half * FOREIGN_PIECE;
}

/* Begins the copy of what waits. */
static bool begin_landing(void)
{
    size_t length = landing.filled - landing.begun;
    if (!length)
        return true;
    bool begun = landing.foreign->operations->copy_in(landing.foreign->device, landing.to,
                                                      landing_half() + landing.begun, length);
    landing.to += length;
    landing.begun = landing.filled;
    landing.flies = true;
    return note_landing(begun);
}

/* The half is full: the other one is used when its copies have ended, while those of this one go on. */
static bool turn_landing(void)
{
    bool ended = fence_all(), begun = begin_landing();
    landing.half ^= 1;
    landing.begun = landing.filled = 0;
    return ended && begun;
}

static bool settle_landing(void)
{
    bool begun = !landing.foreign || begin_landing(), ended = fence_all(), failed = landing.failed;
    landing.foreign = NULL;
    landing.lost = NULL;
    landing.failed = false;
    landing.begun = landing.filled = 0;
    return begun && ended && !failed;
}

bool foreign_settle(void)
{
    if (atomic_load_explicit(&mover, memory_order_relaxed) != &self)
        return true;
    bool settled = settle_landing();
    sent_start = NULL;
    atomic_store_explicit(&mover, NULL, memory_order_relaxed);
    return settled;
}

bool foreign_waits(void)
{
    return atomic_load_explicit(&mover, memory_order_relaxed) == &self && landing.foreign;
}

void foreign_gather(bool *lost)
{
    if (atomic_load_explicit(&finds, memory_order_relaxed))
        gathering = lost;
}

void foreign_send(const void *start, size_t length)
{
    size_t here;
    if (!atomic_load_explicit(&finds, memory_order_relaxed) || !find_foreign(start, &here))
        return;
    sent_start = start;
    sent_end = sent_start + length;
}

static void begin_move(void)
{
    atomic_store_explicit(&mover, &self, memory_order_relaxed);
}

static uint8_t *ahead_half(unsigned half)
{
    return ahead.foreign->ahead + half * FOREIGN_PIECE;
}

/* Begins to read what follows into the half that is not sent from. */
static bool begin_ahead(const uint8_t *from, size_t most)
{
    size_t left = (size_t)(ahead.end - from), length = lesser(left, most);
    ahead.coming = length;
    if (!length)
        return true;
    begin_move();
    ahead.flies = true;
    return ahead.foreign->operations->copy_out(ahead.foreign->device, ahead_half(ahead.half ^ 1), from, length);
}

/* The half is sent: the other one has come, and what follows it is begun. */
static bool turn_ahead(void)
{
    if (!fence_all() || !ahead.foreign)
        return false;
    ahead.half ^= 1;
    ahead.ready = ahead.coming;
    ahead.used = 0;
    return begin_ahead(ahead.next + ahead.ready, FOREIGN_PIECE);
}

static bool take_ahead(uint8_t *stage, size_t length)
{
    while (length) {
        if (ahead.used == ahead.ready && !turn_ahead())
            return false;
        size_t part = lesser(length, ahead.ready - ahead.used);
        memcpy(stage, ahead_half(ahead.half) + ahead.used, part);
        ahead.used += part;
        ahead.next += part;
        stage += part;
        length -= part;
    }
    return true;
}

/* The first piece is short, as nothing can be sent before it is there. */
static bool start_ahead(const struct foreign *foreign, const uint8_t *from)
{
    enum { FIRST = 64 << 10 };
    ahead.foreign = foreign;
    ahead.start = sent_start;
    ahead.end = sent_end;
    ahead.next = from;
    ahead.ready = ahead.used = 0;
    return begin_ahead(from, FIRST);
}

static bool fetch_alone(const struct foreign *foreign, uint8_t *stage, const uint8_t *from, size_t length)
{
    return fence_all() && foreign->operations->copy_out(foreign->device, stage, from, length) && fence(foreign);
}

/* Bytes that were read ahead are sent only as the next of the same element, in the order of its bytes. Each work begins
 * at the start of an element, where nothing was read ahead: so what is sent was read while the work was there. */
static bool fetch_from_device(const struct foreign *foreign, uint8_t *stage, const uint8_t *from, size_t length)
{
    bool named = sent_start && from >= sent_start && length <= (size_t)(sent_end - from);
    bool goes_on =
        named && ahead.foreign == foreign && ahead.start == sent_start && ahead.end == sent_end && ahead.next == from;
    if (!goes_on)
        forget_ahead();
    bool is_ahead = goes_on || (named && length < (size_t)(sent_end - from) && start_ahead(foreign, from));
    sent_start = NULL;
    if (!is_ahead)
        return fetch_alone(foreign, stage, from, length);
    if (take_ahead(stage, length))
        return true;
    forget_ahead();
    return false;
}

/* One piece of memory of either kind into a stage, and back. `length` is at most the stage's. */
static bool fetch(uint8_t *stage, const uint8_t *from, size_t length)
{
    while (length) {
        size_t here = length;
        const struct foreign *foreign = find_foreign(from, &here);
        size_t part = foreign ? lesser(here, length) : length;
        if (foreign ? !fetch_from_device(foreign, stage, from, part) : !guarded_copy(stage, from, part))
            return false;
        stage += part;
        from += part;
        length -= part;
    }
    return true;
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

/* The bytes at this place may join those that wait, or the latter begin. */
static bool aim_landing(const struct foreign *foreign, uint8_t *to)
{
    bool joins = landing.foreign == foreign && (!gathering || !landing.lost || landing.lost == gathering);
    if (landing.foreign && !joins && !settle_landing())
        return false;
    if (landing.foreign && landing.to + (landing.filled - landing.begun) != to && !begin_landing())
        return false;
    begin_move();
    landing.foreign = foreign;
    if (gathering)
        landing.lost = gathering;
    if (landing.filled == landing.begun)
        landing.to = to;
    return true;
}

static bool gather_bytes(const struct payload *payload, uint32_t offset, size_t length)
{
    while (length) {
        if (landing.filled == FOREIGN_PIECE && !turn_landing())
            return false;
        size_t part = lesser(length, FOREIGN_PIECE - landing.filled);
        if (!take(payload, offset, landing_half() + landing.filled, part))
            return false;
        landing.filled += part;
        offset += (uint32_t)part;
        length -= part;
    }
    return true;
}

/* The last word lands by itself, behind the rest, unless more of the message follows. */
static bool land_in_device(const struct foreign *foreign, const struct payload *payload, uint32_t offset, uint8_t *to,
                           size_t length, unsigned last)
{
    size_t rest = gathering ? length : length - last;
    bool landed = aim_landing(foreign, to) && gather_bytes(payload, offset, rest);
    if (gathering)
        return landed;
    landed = landed && begin_landing() && gather_bytes(payload, offset + (uint32_t)rest, length - rest);
    return settle_landing() && landed;
}

static bool copy_to_host(const struct foreign *foreign, const struct payload *payload, uint32_t offset, uint8_t *to,
                         size_t length, unsigned last)
{
    return take(payload, offset, foreign->stage, length) && land_in_host(to, foreign->stage, length, last);
}

/* The last word is of one kind of memory, as words are aligned. */
static bool copy_piece(const struct foreign *stage, const struct payload *payload, uint32_t offset,
                       const struct iovec *piece, unsigned last)
{
    for (size_t done = 0; done < piece->iov_len;) {
        uint8_t *to = (uint8_t *)piece->iov_base + done;
        size_t left = piece->iov_len - done, here = left;
        const struct foreign *foreign = find_foreign(to, &here);
        size_t part = lesser(lesser(here, left), foreign ? left : stage->stage_length);
        unsigned alone = part == left && last <= part ? last : 0;
        if (!(foreign ? land_in_device(foreign, payload, offset + (uint32_t)done, to, part, alone)
                      : copy_to_host(stage, payload, offset + (uint32_t)done, to, part, alone)))
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
    foreign_settle();
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
