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

/* The thread that has begun copies which may not have ended, and owns all of the state below; or NULL. */
static void *_Atomic mover;
static _Thread_local char self __attribute__((tls_model("initial-exec")));

enum { AHEAD_PIECES = FOREIGN_AHEAD / FOREIGN_LANES };

/* A lane of landings: bytes of one message in one half of the lane's part of the device's landings. Their copy begins
 * at the latest when the half is full. */
struct landing {
    const struct foreign *foreign; /* NULL: the lane is free */
    bool *lost;                    /* the message's; NULL: the message ends */
    uint8_t *to;                   /* the place of the bytes that wait */
    size_t begun, filled;          /* the bytes of the half between these two wait */
    unsigned half;
    bool flies;  /* a copy was begun and not waited for */
    bool failed; /* a copy has failed since the lane was free */
};
static struct landing landings[FOREIGN_LANES];
static unsigned next_landing; /* the lane that is settled for another message if no lane is free */
static bool *gathering;       /* of the message that foreign_gather has named; or NULL */
static bool gathering_ends;   /* that message ends with the bytes that land now */

/* A lane of bytes read ahead: pieces of an element. The newest piece may not have arrived. Older pieces stay for bytes
 * that are sent again. */
struct ahead {
    const struct foreign *foreign; /* NULL: the lane is free */
    const void *sender;
    const uint8_t *start, *end, *next; /* the element, and the byte of it that is sent next */
    struct {
        const uint8_t *from;
        size_t length;
    } pieces[AHEAD_PIECES];
    unsigned newest, held;
    bool flies; /* the newest has not arrived */
    bool fresh; /* the lane was begun for the packet that is sent next */
};
static struct ahead aheads[FOREIGN_LANES];
static unsigned next_ahead; /* as next_landing */

/* The element that foreign_send has named. */
static struct {
    const void *sender;
    const uint8_t *start, *end; /* NULL: no element */
} sent;

static bool note_landing(struct landing *landing, bool fine)
{
    landing->failed = landing->failed || !fine;
    if (!fine && landing->lost)
        *landing->lost = true;
    return fine;
}

/* Odd while a thread is within a call of the driver, which may wait for a lock of the driver or for the end of
 * copies. */
static _Atomic uint32_t calls;

uint32_t foreign_waiting(void)
{
    uint32_t now = atomic_load_explicit(&calls, memory_order_relaxed);
    return now % 2 ? now : 0;
}

static bool begin_out(const struct foreign *foreign, void *stage, const void *from, size_t length)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    bool begun = foreign->operations->copy_out(foreign->device, stage, from, length);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return begun;
}

static bool begin_in(const struct foreign *foreign, void *to, const void *stage, size_t length)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    bool begun = foreign->operations->copy_in(foreign->device, to, stage, length);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return begun;
}

static bool end_copies(const struct foreign *foreign)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    bool fine = foreign->operations->fence(foreign->device);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return fine;
}

/* Waits for all copies. A driver reports a failure once, but not which copy failed: so it counts for all that had
 * begun. */
static bool fence(const struct foreign *foreign)
{
    bool fine = end_copies(foreign);
    for (struct landing *each = landings; each < landings + FOREIGN_LANES; each++) {
        if (each->foreign != foreign || !each->flies)
            continue;
        each->flies = false;
        note_landing(each, fine);
    }
    for (struct ahead *each = aheads; each < aheads + FOREIGN_LANES; each++) {
        if (each->foreign != foreign || !each->flies)
            continue;
        each->flies = false;
        if (!fine)
            each->foreign = NULL;
    }
    return fine;
}

static void begin_move(void)
{
    atomic_store_explicit(&mover, &self, memory_order_relaxed);
}

/* --- landings */

static uint8_t *landing_half(const struct landing *landing)
{
    return landing->foreign->landings + (size_t)((landing - landings) * 2 + landing->half) * FOREIGN_PIECE;
}

/* Begins the copy of the bytes that wait. */
static bool begin_landing(struct landing *landing)
{
    size_t length = landing->filled - landing->begun;
    if (!length)
        return true;
    const struct foreign *foreign = landing->foreign;
    bool begun = begin_in(foreign, landing->to, landing_half(landing) + landing->begun, length);
    landing->to += length;
    landing->begun = landing->filled;
    landing->flies = true;
    return note_landing(landing, begun);
}

/* Waits for the other half's copies, begins this full half's copies, and turns to the other one. */
static bool turn_landing(struct landing *landing)
{
    if (landing->flies)
        fence(landing->foreign);
    bool begun = begin_landing(landing);
    landing->half ^= 1;
    landing->begun = landing->filled = 0;
    return begun && !landing->failed;
}

/* Ends the lane's copies, and makes the lane free. False: some of the copies have failed. */
static bool settle_landing(struct landing *landing)
{
    begin_landing(landing);
    if (landing->flies)
        fence(landing->foreign);
    bool failed = landing->failed;
    *landing = (struct landing){0};
    return !failed;
}

/* Settles all lanes; their copies run together. */
static bool settle_landings(void)
{
    bool settled = true;
    for (struct landing *each = landings; each < landings + FOREIGN_LANES; each++)
        if (each->foreign)
            begin_landing(each);
    for (struct landing *each = landings; each < landings + FOREIGN_LANES; each++)
        if (each->foreign)
            settled = settle_landing(each) && settled;
    return settled;
}

static bool moves_here(void)
{
    return atomic_load_explicit(&mover, memory_order_relaxed) == &self;
}

bool foreign_settle(void)
{
    if (!moves_here())
        return true;
    bool settled = settle_landings();
    for (struct ahead *each = aheads; each < aheads + FOREIGN_LANES; each++) {
        each->fresh = false;
        if (each->foreign && each->flies)
            fence(each->foreign);
    }
    sent.start = NULL;
    atomic_store_explicit(&mover, NULL, memory_order_relaxed);
    return settled;
}

static struct landing *landing_of(const bool *lost)
{
    for (struct landing *each = landings; each < landings + FOREIGN_LANES; each++)
        if (each->foreign && each->lost == lost)
            return each;
    return NULL;
}

void foreign_settle_message(const bool *lost)
{
    struct landing *landing = moves_here() ? landing_of(lost) : NULL;
    if (landing)
        settle_landing(landing);
}

bool foreign_waits(void)
{
    for (unsigned i = 0; i < FOREIGN_LANES && moves_here(); i++)
        if (landings[i].foreign)
            return true;
    return false;
}

void foreign_gather(bool *lost, bool ends)
{
    if (!atomic_load_explicit(&finds, memory_order_relaxed))
        return;
    gathering = lost;
    gathering_ends = ends;
}

/* --- reading ahead */

void foreign_send(const void *sender, const void *start, size_t length)
{
    size_t here;
    if (!atomic_load_explicit(&finds, memory_order_relaxed) || !find_foreign(start, &here))
        return;
    sent.sender = sender;
    sent.start = start;
    sent.end = sent.start + length;
}

static void drop_ahead(struct ahead *ahead)
{
    if (ahead->foreign && ahead->flies)
        fence(ahead->foreign);
    ahead->foreign = NULL;
}

static uint8_t *ahead_piece(const struct ahead *ahead, unsigned piece)
{
    return ahead->foreign->ahead + ((size_t)(ahead - aheads) * AHEAD_PIECES + piece) * FOREIGN_PIECE;
}

/* Begins to read a piece in the place of the oldest. The first piece is short, as nothing can be sent before it has
 * arrived, and each is twice as long as the one before, up to FOREIGN_PIECE: where many packets are lost, reading often begins anew. */
static bool begin_ahead(struct ahead *ahead, const uint8_t *from)
{
    enum { FIRST = 64 << 10 };
    const struct foreign *foreign = ahead->foreign;
    unsigned piece = (ahead->newest + 1) % AHEAD_PIECES;
    size_t most = ahead->held ? 2 * ahead->pieces[ahead->newest].length : FIRST;
    size_t length = lesser(lesser(most, FOREIGN_PIECE), (size_t)(ahead->end - from));
    begin_move();
    if (!begin_out(foreign, ahead_piece(ahead, piece), from, length))
        return false;
    ahead->pieces[piece].from = from;
    ahead->pieces[piece].length = length;
    ahead->newest = piece;
    ahead->held += ahead->held < AHEAD_PIECES;
    ahead->flies = true;
    return true;
}

/* The piece with this byte that has arrived; or AHEAD_PIECES. */
static unsigned find_piece(const struct ahead *ahead, const uint8_t *from)
{
    for (unsigned age = ahead->flies; age < ahead->held; age++) {
        unsigned piece = (ahead->newest + AHEAD_PIECES - age) % AHEAD_PIECES;
        if ((uintptr_t)from - (uintptr_t)ahead->pieces[piece].from < ahead->pieces[piece].length)
            return piece;
    }
    return AHEAD_PIECES;
}

/* The piece with the byte that is sent next, waited for if necessary; or AHEAD_PIECES. If it is the newest, the piece
 * after it is begun; if the driver refuses that, it matters only when those bytes are needed. */
static unsigned next_piece(struct ahead *ahead)
{
    unsigned piece = find_piece(ahead, ahead->next);
    if (piece == AHEAD_PIECES && (ahead->flies ? fence(ahead->foreign) : begin_ahead(ahead, ahead->next)))
        piece = find_piece(ahead, ahead->next);
    if (piece == AHEAD_PIECES && ahead->foreign && ahead->flies && fence(ahead->foreign))
        piece = find_piece(ahead, ahead->next);
    if (piece == AHEAD_PIECES || piece != ahead->newest || ahead->flies)
        return piece;
    const uint8_t *behind = ahead->pieces[piece].from + ahead->pieces[piece].length;
    if (behind < ahead->end)
        begin_ahead(ahead, behind);
    return piece;
}

static bool take_ahead(struct ahead *ahead, uint8_t *stage, size_t length)
{
    ahead->fresh = false;
    while (length) {
        unsigned piece = next_piece(ahead);
        if (piece == AHEAD_PIECES)
            return false;
        size_t used = (size_t)(ahead->next - ahead->pieces[piece].from);
        size_t part = lesser(length, ahead->pieces[piece].length - used);
        memcpy(stage, ahead_piece(ahead, piece) + used, part);
        ahead->next += part;
        stage += part;
        length -= part;
    }
    return true;
}

static bool start_ahead(struct ahead *ahead, const struct foreign *foreign, const uint8_t *from)
{
    drop_ahead(ahead);
    *ahead =
        (struct ahead){.foreign = foreign, .sender = sent.sender, .start = sent.start, .end = sent.end, .next = from};
    if (!begin_ahead(ahead, from))
        ahead->foreign = NULL;
    return ahead->foreign;
}

static struct ahead *free_ahead(void)
{
    for (struct ahead *each = aheads; each < aheads + FOREIGN_LANES; each++)
        if (!each->foreign)
            return each;
    return &aheads[next_ahead++ % FOREIGN_LANES];
}

/* The lane of the element that was named; or NULL. */
static struct ahead *named_ahead(const struct foreign *foreign)
{
    for (struct ahead *each = aheads; each < aheads + FOREIGN_LANES; each++)
        if (each->foreign == foreign && each->sender == sent.sender && each->start == sent.start &&
            each->end == sent.end)
            return each;
    return NULL;
}

/* Returns true if these bytes are the lane's next, or it still has them, as they are sent again. False at the start
 * of an element: another work may begin there. */
static bool find_in_ahead(struct ahead *ahead, const uint8_t *from)
{
    bool starts = from == ahead->start && !ahead->fresh;
    if (starts || (from != ahead->next && find_piece(ahead, from) == AHEAD_PIECES))
        return false;
    ahead->next = from;
    return true;
}

static bool flies_any(const struct foreign *foreign)
{
    bool any = false;
    for (unsigned i = 0; i < FOREIGN_LANES; i++)
        any |=
            (landings[i].foreign == foreign && landings[i].flies) || (aheads[i].foreign == foreign && aheads[i].flies);
    return any;
}

/* Fetches bytes after all other copies have ended, so that a failure of those is not taken for this copy's. */
static bool fetch_alone(const struct foreign *foreign, uint8_t *stage, const uint8_t *from, size_t length)
{
    if (flies_any(foreign))
        fence(foreign);
    return begin_out(foreign, stage, from, length) && fence(foreign);
}

/* Forgets what was read ahead of an element that is now read without a name: it may be another work's, for which those
 * bytes are too old. */
static void forget_unnamed(const uint8_t *from)
{
    for (struct ahead *each = aheads; each < aheads + FOREIGN_LANES; each++)
        if (each->foreign && from >= each->start && from < each->end)
            drop_ahead(each);
}

/* Bytes that were read ahead are sent by the same sender, as bytes of the same element. Each work begins at the start
 * of an element, where the lane is read anew: so what is sent was read while the work was there. */
static bool fetch_from_device(const struct foreign *foreign, uint8_t *stage, const uint8_t *from, size_t length)
{
    bool named = sent.start && from >= sent.start && length <= (size_t)(sent.end - from);
    struct ahead *ahead = named ? named_ahead(foreign) : NULL;
    bool goes_on = ahead && find_in_ahead(ahead, from);
    bool starts = !goes_on && named && length < (size_t)(sent.end - from);
    if (!named)
        forget_unnamed(from);
    else if (ahead && !goes_on)
        drop_ahead(ahead);
    if (starts)
        ahead = ahead ? ahead : free_ahead();
    bool is_ahead = goes_on || (starts && start_ahead(ahead, foreign, from));
    sent.start = NULL;
    if (!is_ahead)
        return fetch_alone(foreign, stage, from, length);
    if (take_ahead(ahead, stage, length))
        return true;
    drop_ahead(ahead);
    return false;
}

/* --- copies */

/* Copies memory of either kind into a stage. `length` is at most the stage's. */
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

/* Copies bytes of the payload into the stage. */
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

/* The device of the first piece that is a device's; or NULL. */
static const struct foreign *find_any(const struct iovec *pieces, uint32_t count)
{
    const struct foreign *foreign = NULL;
    size_t ignored;
    for (uint32_t i = 0; i < count && !foreign; i++)
        foreign = pieces[i].iov_len ? find_foreign(pieces[i].iov_base, &ignored) : NULL;
    return foreign;
}

/* The lane of the message, or a free one, if necessary after another message's is settled. */
static struct landing *find_landing(void)
{
    struct landing *landing = gathering ? landing_of(gathering) : NULL;
    for (unsigned i = 0; i < FOREIGN_LANES && !landing; i++)
        if (!landings[i].foreign)
            landing = &landings[i];
    if (landing)
        return landing;
    landing = &landings[next_landing++ % FOREIGN_LANES];
    settle_landing(landing);
    return landing;
}

/* Prepares the lane for bytes that land at `to`: if these do not follow the bytes that wait, the copy of the latter
 * begins. NULL: bytes of the message have been lost. */
static struct landing *aim_landing(const struct foreign *foreign, uint8_t *to)
{
    struct landing *landing = find_landing();
    if (landing->foreign && landing->foreign != foreign && !settle_landing(landing))
        return NULL;
    if (landing->foreign && landing->to + (landing->filled - landing->begun) != to && !begin_landing(landing))
        return NULL;
    begin_move();
    landing->foreign = foreign;
    landing->lost = gathering;
    if (landing->filled == landing->begun)
        landing->to = to;
    return landing;
}

static bool gather_bytes(struct landing *landing, const struct payload *payload, uint32_t offset, size_t length)
{
    while (length) {
        if (landing->filled == FOREIGN_PIECE && !turn_landing(landing))
            return false;
        size_t part = lesser(length, FOREIGN_PIECE - landing->filled);
        if (!take(payload, offset, landing_half(landing) + landing->filled, part))
            return false;
        landing->filled += part;
        offset += (uint32_t)part;
        length -= part;
    }
    return true;
}

/* Lands the last word by itself, after the rest, unless more of the message follows. */
static bool land_in_device(const struct foreign *foreign, const struct payload *payload, uint32_t offset, uint8_t *to,
                           size_t length, unsigned last)
{
    bool more = gathering && !gathering_ends;
    size_t rest = more ? length : length - last;
    struct landing *landing = aim_landing(foreign, to);
    bool landed = landing && gather_bytes(landing, payload, offset, rest);
    if (more)
        return landed;
    landed = landed && begin_landing(landing) && gather_bytes(landing, payload, offset + (uint32_t)rest, length - rest);
    return landing && settle_landing(landing) && landed;
}

static bool copy_to_host(const struct foreign *foreign, const struct payload *payload, uint32_t offset, uint8_t *to,
                         size_t length, unsigned last)
{
    return take(payload, offset, foreign->stage, length) && land_in_host(to, foreign->stage, length, last);
}

/* Copies a piece. Its last word is of one kind of memory, as words are aligned. */
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

/* It matters little whose stage is used: any device's driver copies from any stage. */
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

/* Returns true if the bytes are read ahead now, as the next that are sent. */
static bool read_to_send(const uint8_t *from, size_t length)
{
    size_t here;
    const struct foreign *foreign = find_foreign(from, &here); /* NULL, too, in a thread that must not copy */
    if (!foreign || !sent.start || from < sent.start || length >= (size_t)(sent.end - from))
        return false;
    struct ahead *ahead = named_ahead(foreign);
    if (!ahead || from == sent.start || !find_in_ahead(ahead, from)) {
        ahead = ahead ? ahead : free_ahead();
        if (!start_ahead(ahead, foreign, from))
            return false;
        ahead->fresh = true;
    }
    if (next_piece(ahead) == AHEAD_PIECES)
        return false;
    const uint8_t *last = from + length - 1;
    return find_piece(ahead, last) < AHEAD_PIECES ||
           (ahead->flies && fence(foreign) && find_piece(ahead, last) < AHEAD_PIECES);
}

bool foreign_is_there(const struct iovec *piece)
{
    const uint8_t *at = piece->iov_base;
    if (piece->iov_len && read_to_send(at, piece->iov_len))
        return true;
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

static bool copy_word(void *from, void *to)
{
    enum { WORD = sizeof(uint64_t) };
    const struct iovec piece = {from, WORD}, place = {to, WORD};
    return foreign_payload_copy(&(struct payload){.length = WORD, .count = 1, .pieces = &piece}, 0, &place, 1, WORD);
}

bool foreign_compare_and_swap(void *at, uint64_t compare, uint64_t swap, uint64_t *found)
{
    return copy_word(at, found) && (*found != compare || copy_word(&swap, at));
}

bool foreign_fetch_and_add(void *at, uint64_t add, uint64_t *found)
{
    return copy_word(at, found) && copy_word(&(uint64_t){*found + add}, at);
}
