#include "tap/delay.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "tap/taps.h"

enum { BYTES_MOST = 64 << 20 }; /* most bytes that are held back; a network's queues are finite, too */
static const nanos again = 50 * NANOS_MICROSECOND; /* a frame that found no room is tried this much later */

struct delayed {
    TAILQ_ENTRY(delayed) next;
    struct delay_way way; /* the peer is held */
    nanos due;
    uint64_t behind;
    bool stuck; /* its link had no room */
    size_t size;
    struct frame frame;
    struct iovec piece;
    uint8_t bytes[]; /* headers, payload */
};

static struct delayed *copy(const struct delay_way *way, const struct frame *frame)
{
    size_t size = sizeof(struct delayed) + frame->headers_length + frame->payload.length;
    struct delayed *delayed = malloc(size);
    if (!delayed)
        return NULL;
    uint8_t *payload = delayed->bytes + frame->headers_length;
    memset(delayed, 0, sizeof *delayed);
    memcpy(delayed->bytes, frame->headers, frame->headers_length);
    delayed->way = *way;
    delayed->size = size;
    delayed->piece = (struct iovec){payload, frame->payload.length};
    delayed->frame = *frame;
    delayed->frame.headers = delayed->bytes;
    delayed->frame.payload = (struct payload){.length = frame->payload.length};
    if (frame->payload.length) {
        delayed->frame.payload.count = 1;
        delayed->frame.payload.pieces = &delayed->piece;
    }
    if (payload_copy(&frame->payload, 0, &delayed->piece, 1))
        return delayed;
    free(delayed);
    return NULL;
}

/* Inserts a frame by its time; frames that are due at the same time are in the order of their arrival. */
static void insert(struct taps *taps, struct delayed *delayed)
{
    lock_assert_held(&taps->lock);
    struct delayed *before = TAILQ_LAST(&taps->delayed, delayed_list);
    while (before && before->due > delayed->due)
        before = TAILQ_PREV(before, delayed_list, next);
    if (before)
        TAILQ_INSERT_AFTER(&taps->delayed, before, delayed, next);
    else
        TAILQ_INSERT_HEAD(&taps->delayed, delayed, next);
    taps->delayed_bytes += delayed->size;
    taps->overtakable += delayed->behind != 0;
    taps->stuck += delayed->stuck;
}

static void take_out(struct taps *taps, struct delayed *delayed)
{
    TAILQ_REMOVE(&taps->delayed, delayed, next);
    taps->delayed_bytes -= delayed->size;
    taps->overtakable -= delayed->behind != 0;
    taps->stuck -= delayed->stuck;
}

/* Makes the frame due no earlier than its link's frames that wait for room; those are all due at the same time. */
static void queue_up(const struct taps *taps, struct delayed *delayed)
{
    lock_assert_held(&taps->lock);
    const struct delayed *each;
    if (!taps->stuck)
        return;
    TAILQ_FOREACH (each, &taps->delayed, next)
        if (each->stuck && each->way.link == delayed->way.link)
            break;
    if (each && each->due > delayed->due)
        delayed->due = each->due;
}

bool delay_keep(const struct delay_way *way, const struct frame *frame, nanos due, uint64_t behind)
{
    struct taps *taps = way->taps;
    struct delayed *delayed = copy(way, frame);
    if (!delayed)
        return false;
    delayed->due = due;
    delayed->behind = behind;
    lock_take(&taps->lock);
    if (due == DELAY_HELD && way->releases != atomic_load(&taps->releases))
        delayed->due = due = 0;
    bool fits = taps->delayed_bytes + delayed->size <= BYTES_MOST;
    if (fits) {
        if (way->peer)
            node_hold(way->peer);
        queue_up(taps, delayed);
        insert(taps, delayed);
    }
    lock_release(&taps->lock);
    if (fits)
        schedule_by(way->taps->schedule, &taps->timer, due);
    else
        free(delayed);
    return fits;
}

static void delay_release(struct delayed *delayed)
{
    if (delayed->way.peer)
        node_put(delayed->way.taps->node, delayed->way.peer);
    free(delayed);
}

static bool send_between(struct delayed *delayed)
{
    struct link *link = delayed->way.link;
    return link->operations->ready(link) && link->operations->send(link, &delayed->frame) != FRAME_NO_ROOM;
}

static bool send(struct delayed *delayed)
{
    struct link *link = delayed->way.link;
    link->operations->begin(link);
    bool sent = send_between(delayed);
    link->operations->end(link);
    return sent;
}

/* Makes the frames of this link that are due before `until` wait until then, in their order. Under taps->lock. */
static void postpone(struct taps *taps, const struct link *link, nanos until)
{
    lock_assert_held(&taps->lock);
    struct delayed *next;
    for (struct delayed *delayed = TAILQ_FIRST(&taps->delayed); delayed && delayed->due < until; delayed = next) {
        next = TAILQ_NEXT(delayed, next);
        if (delayed->way.link != link)
            continue;
        take_out(taps, delayed);
        delayed->due = until;
        delayed->stuck = true;
        insert(taps, delayed);
    }
}

/* Frees a frame that was sent; else it waits a little longer, and so do the frames of its link after it. */
static void finish(struct delayed *delayed, bool sent, nanos now)
{
    struct taps *taps = delayed->way.taps;
    if (sent) {
        delay_release(delayed);
        return;
    }
    nanos until = delayed->due = now + again;
    delayed->stuck = true;
    delayed->behind = 0;
    lock_take(&taps->lock);
    insert(taps, delayed);
    postpone(taps, delayed->way.link, delayed->due);
    lock_release(&taps->lock);
    schedule_by(taps->schedule, &taps->timer, until); /* the helper may have looked while it was in no list */
}

/* Releases the frames in their order, which is the list's. */
void delay_release_held(struct taps *taps)
{
    struct delayed *each, *next;
    if (!taps)
        return;
    lock_take(&taps->lock);
    atomic_fetch_add(&taps->releases, 1);
    for (each = TAILQ_FIRST(&taps->delayed); each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (each->due != DELAY_HELD)
            continue;
        take_out(taps, each);
        each->due = 0;
        insert(taps, each);
    }
    lock_release(&taps->lock);
    schedule_by(taps->schedule, &taps->timer, 0);
}

static struct delayed *take_overtaken(struct taps *taps, const struct delay_way *way, uint64_t number)
{
    struct delayed *delayed = NULL;
    lock_take(&taps->lock);
    if (taps->overtakable)
        TAILQ_FOREACH (delayed, &taps->delayed, next)
            if (delayed->behind && delayed->behind <= number && delayed->way.stream == way->stream &&
                delayed->way.link == way->link)
                break;
    if (delayed)
        take_out(taps, delayed);
    lock_release(&taps->lock);
    return delayed;
}

/* Makes the frame leave right after the frame that overtook it, which waits, too. */
static void follow(struct delayed *delayed, nanos due)
{
    struct taps *taps = delayed->way.taps;
    delayed->due = due;
    delayed->behind = 0;
    lock_take(&taps->lock);
    queue_up(taps, delayed);
    insert(taps, delayed);
    lock_release(&taps->lock);
    schedule_by(taps->schedule, &taps->timer, due);
}

void delay_overtaken(const struct delay_way *way, uint64_t number, nanos due)
{
    struct delayed *delayed;
    while ((delayed = take_overtaken(way->taps, way, number)))
        if (due)
            follow(delayed, due);
        else
            finish(delayed, send_between(delayed), delayed->due);
}

/* The first frame, or with a link the first frame of that link. Under taps->lock. */
static struct delayed *find_first(const struct taps *taps, const struct link *link)
{
    lock_assert_held(&taps->lock);
    struct delayed *delayed;
    TAILQ_FOREACH (delayed, &taps->delayed, next)
        if (!link || delayed->way.link == link)
            break;
    return delayed;
}

/* Takes the first frame, with a link the first of that link, if it is due; else returns NULL. *next: when it is due. */
static struct delayed *take_due(struct taps *taps, nanos now, const struct link *link, nanos *next)
{
    *next = NANOS_NEVER;
    lock_take(&taps->lock);
    struct delayed *delayed = find_first(taps, link);
    if (delayed && delayed->due > now) {
        *next = delayed->due;
        delayed = NULL;
    }
    if (delayed)
        take_out(taps, delayed);
    taps->leaving = delayed && !link ? delayed->way.link : taps->leaving;
    lock_release(&taps->lock);
    return delayed;
}

static void end_leaving(struct taps *taps)
{
    lock_take(&taps->lock);
    taps->leaving = NULL;
    lock_release(&taps->lock);
}

void delay_expired(struct timer *timer, nanos now)
{
    struct taps *taps = container_of(timer, struct taps, timer.timer);
    nanos next;
    struct delayed *delayed;
    while ((delayed = take_due(taps, now, NULL, &next))) {
        finish(delayed, send(delayed), now);
        end_leaving(taps);
    }
    schedule_by(taps->schedule, &taps->timer, next);
}

static void send_all(struct taps *taps, struct link *link)
{
    nanos next;
    struct delayed *delayed;
    if (!taps || *taps->closed)
        return;
    while ((delayed = take_due(taps, NANOS_NEVER - 1, link, &next))) {
        send(delayed);
        delay_release(delayed);
    }
}

bool delay_is_quiet(struct taps *taps, const struct link *link)
{
    lock_take(&taps->lock);
    bool quiet = taps->leaving != link && !find_first(taps, link);
    lock_release(&taps->lock);
    return quiet;
}

/* The timers may be sending by this link, or put back a frame that it had no room for. Meanwhile they hold no lock
 * that the caller may hold: the progress is taken before its queue pair's lock, the link's own lock after it. */
void delay_forget(struct taps *taps, struct link *link)
{
    if (!taps || *taps->closed)
        return;
    for (unsigned round = 0; !delay_is_quiet(taps, link); round++, lock_wait(round))
        send_all(taps, link);
}

void delay_flush(struct taps *taps)
{
    send_all(taps, NULL);
}
