#include "link/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/likely.h"
#include "base/lock.h"
#include "link/direct.h"

enum {
    LARGE_RINGS = 8, /* the number of a process's rings that are large: 64 processes, all to all, must be affordable */
    LARGE_RING_SIZE = 256 << 10,
    SMALL_RING_SIZE = RING_SIZE_MIN,
    COPY_MAX = LINK_SEGMENT, /* the longest payload of which two copies through the ring beat one system call */
};
static const nanos insist_each = 50 * NANOS_MILLISECOND; /* a receiver that took nothing for this long is woken again */

struct shm {
    struct link link;
    struct shm_common *host;
    struct doorbell doorbell;
    struct control_inbox *inbox;
    atomic_bool bell_refused; /* doorbell_ring has to be called again */
    atomic_bool look_refused; /* doorbell_insist has to be called again */

    struct lock sending;
    bool sent;                  /* since begin */
    bool severed, consumed_all; /* consumed_all: the receiver had taken all when shm_sever was called */
    int memory;                 /* descriptor of our ring, until the receiver has mapped it; then -1 */
    int refused;                /* why the last message with `memory` could not be sent; 0: it was sent */
    uint32_t handed;            /* control_inbox_before of that message */
    struct {
        uint64_t head;    /* where the receiver was when we last looked, */
        nanos since;      /* and when we first saw it there */
        nanos insisted;   /* when insist last had its turn */
        uint32_t message; /* control_inbox_before of the message that insists */
        bool hopeless;    /* as long as the receiver stays there */
    } stall;
    atomic_bool wants_room;
    atomic_bool writing; /* the writer's ring is mapped, and stays so until close */
    struct ring_writer writer;

    struct direct_desk desk;
    atomic_bool untold;                       /* shm_learn has not been called */
    struct published published;               /* by the other process; unmapped with the link */
    _Atomic(const struct published *) learnt; /* &published while it is mapped and may be used; else NULL */

    struct cma_proof proof; /* of the other process */
    bool loopback;          /* the ring leads to this process itself, and is both rings */
    struct lock pulling; /* loopback: a pull copies under it, so after revoke no thread touches the memory any more */
    bool reading, unreadable; /* unreadable: this process may not read the other's memory any more */
    struct ring_reader reader;
};

static void hand_ring(struct shm *shm)
{
    lock_assert_held(&shm->sending);
    struct control_message message = shm->doorbell.message;
    message.kind = CONTROL_ATTACH;
    message.proof_address = (uintptr_t)&shm->host->proof;
    message.proof_value = atomic_load_explicit(&shm->host->proof, memory_order_relaxed);
    shm->handed = control_inbox_before(shm->inbox);
    shm->refused =
        control_send_both(shm->doorbell.socket, shm->doorbell.name, &message, shm->memory, shm->host->published);
    if (!shm->refused)
        atomic_fetch_add(&shm->inbox->sent, 1);
}

/* Continues to hand over the ring; false: it is mapped. The inbox is looked at before the ring, as a receiver maps
 * the ring before it ends its look. */
static bool is_unattached(struct shm *shm)
{
    lock_assert_held(&shm->sending);
    bool again = shm->refused || control_inbox_reached(shm->inbox, shm->handed);
    if (shm->memory < 0)
        return false;
    if (shm->severed || ring_attached(&shm->writer)) {
        descriptor_close(&shm->memory);
        return false;
    }
    if (again)
        hand_ring(shm);
    return true;
}

static void bell_refused(struct shm *shm)
{
    if (!atomic_exchange(&shm->bell_refused, true))
        shm->host->postponed(shm->host);
}

static bool is_writing(struct shm *shm)
{
    return atomic_load_explicit(&shm->writing, memory_order_acquire);
}

/* A separate function, so that a sender that is not asked for a mark and finds its receiver awake saves no registers.
 */
cold static int call_attention(struct shm *shm, unsigned seen)
{
    if (seen & ATTENTION_MARKS && is_writing(shm) && ring_wants_mark(&shm->writer))
        marks_set(&shm->doorbell.attention->marks, shm->doorbell.message.slot);
    return seen & ATTENTION_SLEEPING ? doorbell_wake(&shm->doorbell, seen) : 0;
}

/* Wakes the receiver after frames were written. The mark is set first: a receiver that is rung looks for it. 0 or
 * the doorbell's errno. */
static int announce(struct shm *shm)
{
    unsigned seen = doorbell_look(&shm->doorbell);
    return unlikely(seen & (ATTENTION_SLEEPING | ATTENTION_MARKS)) ? call_attention(shm, seen) : 0;
}

static int create_ring(struct shm *shm, struct ring *ring)
{
    bool large = atomic_fetch_add(&shm->host->rings, 1) < LARGE_RINGS;
    int error;
    do
        error = ring_create(ring, large ? LARGE_RING_SIZE : SMALL_RING_SIZE, &shm->memory);
    while (error && shm->host->lacking(shm->host, error));
    if (!error)
        return 0;
    shm->memory = -1;
    atomic_fetch_sub(&shm->host->rings, 1);
    return error;
}

/* False: memory or a descriptor for a ring is missing now; the next frame tries again. */
cold static bool make_ring(struct shm *shm)
{
    if (!atomic_exchange(&shm->host->asked, true)) /* the receiver tries to read as soon as it is handed the ring */
        atomic_store(&shm->host->permitted, cma_permit());
    struct ring ring;
    if (create_ring(shm, &ring))
        return false;
    ring_write_start(&shm->writer, &ring);
    atomic_store_explicit(&shm->writing, true, memory_order_release);
    hand_ring(shm);
    shm->host->postponed(shm->host);
    return true;
}

static bool shm_begin(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    lock_take(&shm->sending);
    shm->sent = false;
    return is_writing(shm) && ring_is_known_ready(&shm->writer);
}

static void shm_end(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    bool sent = shm->sent;
    lock_release(&shm->sending);
    if (sent && announce(shm))
        bell_refused(shm);
}

/* A separate function, as make_ring is, so that a caller that knows of room saves no registers for it. */
cold static bool is_hopeless(struct shm *shm)
{
    if (unlikely(shm->stall.hopeless))
        shm->stall.hopeless = ring_taken(&shm->writer) == shm->stall.head;
    return shm->stall.hopeless;
}

/* wants_room is set before asking: a thread that falls asleep and doesn't see it yet (shm_got_room) said so before
 * we look at the reader's position last, so either we see the room or the reader sees the sleeper. */
static bool shm_ready(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (!is_writing(shm) || shm->severed || ring_ready(&shm->writer))
        return true;
    atomic_store(&shm->wants_room, true);
    return ring_ask(&shm->writer) || is_hopeless(shm);
}

/* Flattened: a short frame is written without a call. */
__attribute__((flatten)) static enum frame_sent shm_send(struct link *link, const struct frame *frame)
{
    struct shm *shm = (struct shm *)link;
    const struct payload *payload = &frame->payload;
    if (shm->severed || (!is_writing(shm) && !make_ring(shm)))
        return FRAME_SENT;
    bool by_reference = payload->by_reference && !payload->pull && payload->length > COPY_MAX;
    enum frame_sent sent = ring_write(&shm->writer, frame, by_reference);
    if (unlikely(sent == FRAME_TOO_LONG))
        return link_drop_too_long(link);
    shm->sent = shm->sent || sent == FRAME_SENT;
    return sent == FRAME_NO_ROOM && is_hopeless(shm) ? FRAME_SENT : sent;
}

/* If the destination exists and the reference is valid, the kernel can't copy the source: the program unmapped it, or
 * only its own processor reaches it (memfd_secret(2), a device's memory). The owner finds out which. */
static bool is_uncopyable(struct shm *shm, const struct iovec *to, uint32_t count)
{
    return payload_can_land(to, count) && ring_reference_holds(&shm->reader);
}

/* Reads the sender's memory.
 *
 * This process may have lost the right to read the other: it has another user, or a filter of system calls. Or the
 * kernel can't copy the memory. The ring says so before the refusal leaves, so the sender knows it by then. That is for
 * good, although another thread may have the right, and the right may return: the refused payload is sent again in
 * packets, with numbers that older references had. */
static bool pull_rest(struct shm *shm, const struct payload *payload, uint32_t offset, const struct iovec *to,
                      uint32_t count)
{
    int kept = errno;
    errno = 0;
    bool read = cma_remote(&shm->proof, payload, offset, to, count);
    shm->unreadable = !read && (errno == EPERM || errno == ENOSYS || errno == EACCES ||
                                (errno == EFAULT && is_uncopyable(shm, to, count)));
    errno = kept;
    if (shm->unreadable)
        ring_set_cma(&shm->reader, false);
    return read;
}

static bool shm_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct shm *shm = payload->source;
    if (shm->unreadable)
        return false;
    bool pulled = ring_prefix_covers(&shm->reader, offset, to, count) || pull_rest(shm, payload, offset, to, count);
    return pulled && ring_store_prefix(&shm->reader, offset, to, count) && ring_reference_holds(&shm->reader);
}

static bool loopback_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct shm *shm = payload->source;
    lock_take(&shm->pulling);
    bool pulled = ring_reference_holds(&shm->reader) && cma_local(payload, offset, to, count) &&
                  ring_store_prefix(&shm->reader, offset, to, count);
    lock_release(&shm->pulling);
    return pulled;
}

bool shm_receive(struct link *link, struct frame *frame)
{
    struct shm *shm = (struct shm *)link;
    if (!shm->reading || !ring_read(&shm->reader, frame))
        return false;
    if (shm->reader.reference) {
        frame->payload.pull = shm->loopback ? loopback_pull : shm_pull;
        frame->payload.source = shm;
    }
    return true;
}

/* Out of line, so that the many releases without it save no registers. */
cold static void publish(struct shm *shm)
{
    if (ring_publish(&shm->reader) && doorbell_ring(&shm->doorbell))
        bell_refused(shm);
}

/* Publishes the place within a long batch, too, so that the writer need not wait for the batch's end. */
void shm_release(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    ring_release(&shm->reader);
    uint64_t head = atomic_load_explicit(&shm->reader.head, memory_order_relaxed);
    if (unlikely(head - shm->reader.published >= shm->reader.ring.size / 4))
        publish(shm);
}

void shm_drained(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (shm->reading)
        publish(shm);
}

static void shm_revoke(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (!is_writing(shm))
        return;
    if (shm->loopback)
        lock_take(&shm->pulling);
    ring_revoke(&shm->writer);
    if (shm->loopback)
        lock_release(&shm->pulling);
}

static bool shm_can_reference(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    return is_writing(shm) && ring_has_cma(&shm->writer);
}

/* Returns true until shm_learn was called: a queue pair's later work waits for the answer to its first packet, and
 * shm_learn comes before that. A peer that can't read us counts as one that we can't read: nearly always both hold. */
bool shm_can_direct(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    return atomic_load_explicit(&shm->untold, memory_order_relaxed) ||
           (atomic_load_explicit(&shm->learnt, memory_order_relaxed) && shm_can_reference(link));
}

/* Only a peer that has mapped the ring sees our seats, and it reports that in the ring (ring_attached). Flattened,
 * as a system call clears the processor's predictions of returns: each return after it is mispredicted. */
__attribute__((flatten)) bool shm_direct(struct link *link, const struct direct_access *access)
{
    struct shm *shm = (struct shm *)link;
    const struct published *published = atomic_load_explicit(&shm->learnt, memory_order_acquire);
    if (!published || !is_writing(shm) || !ring_attached(&shm->writer))
        return false;
    enum direct_outcome outcome =
        direct_do(&shm->desk, ring_seats(&shm->writer.ring), published, shm->proof.pid, access);
    if (unlikely(outcome == DIRECT_REFUSED)) {
        atomic_store(&link->directs, false);
        atomic_store(&shm->learnt, NULL);
    }
    return outcome == DIRECT_DONE;
}

unsigned shm_attention(const struct link *link)
{
    const struct shm *shm = (const struct shm *)link;
    return atomic_load_explicit(&shm->doorbell.attention->state, memory_order_relaxed) & ~(unsigned)ATTENTION_MARKS;
}

_Static_assert(ATTENTION_SLEEPING == 1, "odd while it sleeps");

/* After shm_sever, which discards the ring, the answer is whether the receiver had taken all by then. */
static bool shm_consumed(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    lock_take(&shm->sending);
    bool consumed = shm->severed ? shm->consumed_all : !is_writing(shm) || ring_consumed(&shm->writer);
    lock_release(&shm->sending);
    return consumed;
}

static void shm_close(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    shm_detach(link);
    ring_unmap(&shm->writer.ring);
    published_close(&shm->published);
    descriptor_close(&shm->memory);
    free(shm);
}

static const struct link_operations operations = {
    .begin = shm_begin,
    .end = shm_end,
    .ready = shm_ready,
    .send = shm_send,
    .revoke = shm_revoke,
    .can_reference = shm_can_reference,
    .consumed = shm_consumed,
    .close = shm_close,
};

struct link *shm_open_link(struct shm_common *host, const struct doorbell *doorbell, struct control_inbox *inbox)
{
    struct shm *shm = calloc(1, sizeof *shm);
    if (!shm)
        return NULL;
    shm->link.operations = &operations;
    lock_set_rank(&shm->sending, LOCK_SENDING);
    shm->host = host;
    shm->doorbell = *doorbell;
    shm->inbox = inbox;
    shm->memory = shm->published.descriptor = -1;
    atomic_store(&shm->untold, DIRECT_IN_ORDER);
    atomic_store(&shm->link.directs, DIRECT_IN_ORDER);
    return &shm->link;
}

int shm_open_loopback(struct link **link, struct shm_common *host, const struct doorbell *doorbell,
                      struct control_inbox *inbox)
{
    struct ring ring;
    int memory;
    *link = shm_open_link(host, doorbell, inbox);
    if (!*link)
        return ENOMEM;
    struct shm *shm = (struct shm *)*link;
    int error = ring_create(&ring, LARGE_RING_SIZE, &memory);
    if (error) {
        free(shm);
        return error;
    }
    close(memory);
    lock_set_rank(&shm->pulling, LOCK_INNERMOST);
    ring_write_start(&shm->writer, &ring);
    ring_read_start(&shm->reader, &ring);
    ring_set_cma(&shm->reader, true);
    shm->loopback = shm->reading = true;
    atomic_store(&shm->untold, false);
    atomic_store(&shm->link.directs, false);
    atomic_store(&shm->writing, true);
    return 0;
}

/* Sends a message whatever the attention is, as no process looks for a mended ring before it sleeps. A process that
 * polls reads the message, too, and its helper sees to the link. */
static void ask_to_look(struct shm *shm)
{
    if (!doorbell_insist(&shm->doorbell))
        return;
    atomic_store(&shm->look_refused, true);
    shm->host->postponed(shm->host);
}

void shm_refuse(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    ring_refuse(&shm->reader);
    ask_to_look(shm);
}

static void mend(struct shm *shm)
{
    lock_assert_held(&shm->sending);
    if (shm->severed || !is_writing(shm) || !ring_is_refused(&shm->writer))
        return;
    atomic_store(&shm->link.lossy, true);
    ring_mend(&shm->writer);
    ask_to_look(shm);
}

void shm_mend(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (is_writing(shm) && ring_is_refused(&shm->writer)) {
        lock_take(&shm->sending);
        mend(shm);
        lock_release(&shm->sending);
    }
    if (shm->reading && ring_resume(&shm->reader))
        publish(shm);
}

int shm_retry(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    int error = 0;
    lock_take(&shm->sending);
    if (is_unattached(shm))
        error = shm->refused == EAGAIN ? EAGAIN : EINPROGRESS;
    if (atomic_exchange(&shm->bell_refused, false) && !shm->severed && doorbell_ring(&shm->doorbell)) {
        atomic_store(&shm->bell_refused, true);
        error = EINPROGRESS;
    }
    if (atomic_exchange(&shm->look_refused, false) && !shm->severed && doorbell_insist(&shm->doorbell)) {
        atomic_store(&shm->look_refused, true);
        error = EINPROGRESS;
    }
    lock_release(&shm->sending);
    return error;
}

static nanos stalled_for(struct shm *shm, nanos now)
{
    lock_assert_held(&shm->sending);
    uint64_t head = ring_taken(&shm->writer);
    if (head != shm->stall.head || !shm->stall.since) {
        shm->stall.head = head;
        shm->stall.since = shm->stall.insisted = now;
        shm->stall.hopeless = false;
    }
    return nanos_since(shm->stall.since, now);
}

/* Sends one message at a time: a receiver that is stopped must not be left with thousands. */
static void insist(struct shm *shm, nanos now)
{
    lock_assert_held(&shm->sending);
    if (nanos_since(shm->stall.insisted, now) < insist_each)
        return;
    shm->stall.insisted = now;
    if (is_unattached(shm) || !control_inbox_reached(shm->inbox, shm->stall.message))
        return;
    uint32_t message = control_inbox_before(shm->inbox);
    if (!doorbell_insist(&shm->doorbell))
        shm->stall.message = message;
}

nanos shm_insist(struct link *link, nanos now)
{
    struct shm *shm = (struct shm *)link;
    nanos stalled = 0;
    lock_take(&shm->sending);
    if (!shm->severed && is_writing(shm)) {
        stalled = stalled_for(shm, now);
        mend(shm);
        insist(shm, now);
    }
    lock_release(&shm->sending);
    return stalled;
}

void shm_excuse(struct link *link, nanos now)
{
    struct shm *shm = (struct shm *)link;
    lock_take(&shm->sending);
    shm->stall.since = now;
    lock_release(&shm->sending);
}

void shm_give_up(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    lock_take(&shm->sending);
    shm->stall.hopeless = true;
    lock_release(&shm->sending);
}

int shm_attached(struct link *link, int memory, const struct cma_proof *proof)
{
    struct shm *shm = (struct shm *)link;
    struct ring ring;
    if (shm->reading)
        return EALREADY;
    int error = ring_map(&ring, memory);
    if (error)
        return error;
    ring_read_start(&shm->reader, &ring);
    shm->proof = *proof;
    ring_set_cma(&shm->reader, cma_works(proof));
    shm->reading = true;
    return 0;
}

/* A process that can be read can be written, unless a filter of system calls forbids just that. */
void shm_learn(struct link *link, int published)
{
    struct shm *shm = (struct shm *)link;
    bool may = DIRECT_IN_ORDER && published >= 0 && !shm->published.file && cma_works(&shm->proof) &&
               !published_map(&shm->published, published);
    if (may)
        atomic_store_explicit(&shm->learnt, &shm->published, memory_order_release);
    else
        atomic_store(&link->directs, false);
    atomic_store(&shm->untold, false);
}

const struct direct_seats *shm_seats(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    return shm->reading && !shm->loopback ? ring_seats(&shm->reader.ring) : NULL;
}

void shm_forbid_writes(struct link *link, const uint32_t seen[])
{
    struct shm *shm = (struct shm *)link;
    direct_forbid(ring_seats(&shm->reader.ring), seen);
}

struct ring_reader *shm_reader(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    return shm->reading ? &shm->reader : NULL;
}

void shm_want_mark(struct link *link, bool wanted)
{
    ring_want_mark(&((struct shm *)link)->reader, wanted);
}

bool shm_got_room(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    return atomic_load_explicit(&shm->wants_room, memory_order_acquire) && ring_got_room(&shm->writer) &&
           atomic_exchange(&shm->wants_room, false);
}

void shm_farewell(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    struct control_message message = shm->doorbell.message;
    message.kind = CONTROL_LEAVE;
    direct_close(&shm->desk);
    lock_take(&shm->sending);
    if (!shm->severed && is_writing(shm)) {
        ring_write_end(&shm->writer);
        announce(shm); /* if that is refused, a process that waits for us finds out by itself */
    } else if (!shm->severed && !control_send(shm->doorbell.socket, shm->doorbell.name, &message, -1)) {
        atomic_fetch_add(&shm->inbox->sent, 1);
    }
    shm->severed = true;
    lock_release(&shm->sending);
}

void shm_sever(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    atomic_store(&shm->learnt, NULL);
    lock_take(&shm->sending);
    if (!shm->severed)
        shm->consumed_all = is_writing(shm) && ring_consumed(&shm->writer);
    shm->severed = true;
    if (is_writing(shm))
        ring_discard(&shm->writer.ring);
    lock_release(&shm->sending);
}

static void forget_reader(struct shm *shm)
{
    shm->reading = false;
    if (shm->loopback)
        shm->reader.ring = (struct ring){0}; /* it is the writer's, which unmaps it */
    else
        ring_unmap(&shm->reader.ring);
}

/* The writer may live, and not know that it is taken for gone. As we look at its seats no more, they are shut, and it
 * writes no more here by itself. */
void shm_detach(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    if (shm->reading && !shm->loopback)
        direct_shut(ring_seats(&shm->reader.ring));
    forget_reader(shm);
}

void shm_abandon(struct link *link)
{
    struct shm *shm = (struct shm *)link;
    lock_inherit(&shm->sending);
    lock_inherit(&shm->pulling);
    shm->severed = true;
    atomic_store(&shm->writing, false);
    atomic_store(&shm->wants_room, false);
    atomic_store(&shm->learnt, NULL);
    published_close(&shm->published);
    ring_unmap(&shm->writer.ring);
    forget_reader(shm);
    descriptor_close(&shm->memory);
}
