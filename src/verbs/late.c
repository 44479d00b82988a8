#include "verbs/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "verbs/taps.h"

enum { BYTES_MOST = 64 << 20 };                    /* that are held back; a network's queues are finite, too */
static const nanos again = 50 * NANOS_MICROSECOND; /* what found no room is tried so much later */

struct late {
    TAILQ_ENTRY(late) next;
    struct late_way way; /* the peer is held */
    nanos due;
    uint64_t behind;
    bool stuck; /* its link had no room */
    size_t size;
    struct frame frame;
    struct iovec piece;
    uint8_t bytes[]; /* headers, payload */
};

static struct late *copy(const struct late_way *way, const struct frame *frame)
{
    size_t size = sizeof(struct late) + frame->headers_length + frame->payload.length;
    struct late *late = malloc(size);
    if (!late)
        return NULL;
    uint8_t *payload = late->bytes + frame->headers_length;
    memset(late, 0, sizeof *late);
    memcpy(late->bytes, frame->headers, frame->headers_length);
    late->way = *way;
    late->size = size;
    late->piece = (struct iovec){payload, frame->payload.length};
    late->frame = *frame;
    late->frame.headers = late->bytes;
    late->frame.payload = (struct payload){.length = frame->payload.length};
    if (frame->payload.length) {
        late->frame.payload.count = 1;
        late->frame.payload.pieces = &late->piece;
    }
    if (payload_copy(&frame->payload, 0, &late->piece, 1))
        return late;
    free(late);
    return NULL;
}

/* In the order of their times; what is due at the same time, in the order of coming. Under taps->lock. */
static void insert(struct taps *taps, struct late *late)
{
    lock_assert_held(&taps->lock);
    struct late *before = TAILQ_LAST(&taps->late, late_list);
    while (before && before->due > late->due)
        before = TAILQ_PREV(before, late_list, next);
    if (before)
        TAILQ_INSERT_AFTER(&taps->late, before, late, next);
    else
        TAILQ_INSERT_HEAD(&taps->late, late, next);
    taps->late_bytes += late->size;
    taps->overtakable += late->behind != 0;
    taps->stuck += late->stuck;
}

static void take_out(struct taps *taps, struct late *late)
{
    TAILQ_REMOVE(&taps->late, late, next);
    taps->late_bytes -= late->size;
    taps->overtakable -= late->behind != 0;
    taps->stuck -= late->stuck;
}

/* Not before those of its link that wait for room, all of them until the same time. Under taps->lock. */
static void queue_up(const struct taps *taps, struct late *late)
{
    lock_assert_held(&taps->lock);
    const struct late *each;
    if (!taps->stuck)
        return;
    TAILQ_FOREACH (each, &taps->late, next)
        if (each->stuck && each->way.link == late->way.link)
            break;
    if (each && each->due > late->due)
        late->due = each->due;
}

bool late_keep(const struct late_way *way, const struct frame *frame, nanos due, uint64_t behind)
{
    struct taps *taps = way->process->taps;
    struct late *late = copy(way, frame);
    if (!late)
        return false;
    late->due = due;
    late->behind = behind;
    lock_take(&taps->lock);
    bool fits = taps->late_bytes + late->size <= BYTES_MOST;
    if (fits) {
        if (way->peer)
            node_hold(way->peer);
        queue_up(taps, late);
        insert(taps, late);
    }
    lock_release(&taps->lock);
    if (fits)
        schedule_by(&way->process->schedule, &taps->timer, due);
    else
        free(late);
    return fits;
}

static void late_release(struct late *late)
{
    if (late->way.peer)
        node_put(late->way.process->node, late->way.peer);
    free(late);
}

static bool send_between(struct late *late)
{
    struct link *link = late->way.link;
    return link->operations->ready(link) && link->operations->send(link, &late->frame) != FRAME_NO_ROOM;
}

static bool send(struct late *late)
{
    struct link *link = late->way.link;
    link->operations->begin(link);
    bool sent = send_between(late);
    link->operations->end(link);
    return sent;
}

/* What goes by this link waits, in its order. Under taps->lock. */
static void postpone(struct taps *taps, const struct link *link, nanos until)
{
    lock_assert_held(&taps->lock);
    struct late *next;
    for (struct late *late = TAILQ_FIRST(&taps->late); late && late->due < until; late = next) {
        next = TAILQ_NEXT(late, next);
        if (late->way.link != link)
            continue;
        take_out(taps, late);
        late->due = until;
        late->stuck = true;
        insert(taps, late);
    }
}

/* Sent, it goes; else it waits a little longer, and so do those behind it. */
static void finish(struct late *late, bool sent, nanos now)
{
    struct process *process = late->way.process;
    struct taps *taps = process->taps;
    if (sent) {
        late_release(late);
        return;
    }
    nanos until = late->due = now + again;
    late->stuck = true;
    late->behind = 0;
    lock_take(&taps->lock);
    insert(taps, late);
    postpone(taps, late->way.link, late->due);
    lock_release(&taps->lock);
    schedule_by(&process->schedule, &taps->timer, until); /* the helper may have looked while it was in no list */
}

static struct late *take_overtaken(struct taps *taps, const struct late_way *way, uint64_t number)
{
    struct late *late = NULL;
    lock_take(&taps->lock);
    if (taps->overtakable)
        TAILQ_FOREACH (late, &taps->late, next)
            if (late->behind && late->behind <= number && late->way.stream == way->stream &&
                late->way.link == way->link)
                break;
    if (late)
        take_out(taps, late);
    lock_release(&taps->lock);
    return late;
}

void late_overtaken(const struct late_way *way, uint64_t number)
{
    struct late *late;
    while ((late = take_overtaken(way->process->taps, way, number)))
        finish(late, send_between(late), late->due);
}

/* The first, or the first of this link. Under taps->lock. */
static struct late *find_first(const struct taps *taps, const struct link *link)
{
    lock_assert_held(&taps->lock);
    struct late *late;
    TAILQ_FOREACH (late, &taps->late, next)
        if (!link || late->way.link == link)
            break;
    return late;
}

/* The first that is due, or only that goes by this link; NULL: none. *next: when the first of the others is. */
static struct late *take_due(struct taps *taps, nanos now, const struct link *link, nanos *next)
{
    *next = NANOS_NEVER;
    lock_take(&taps->lock);
    struct late *late = find_first(taps, link);
    if (late && late->due > now) {
        *next = late->due;
        late = NULL;
    }
    if (late)
        take_out(taps, late);
    taps->leaving = late && !link ? late->way.link : taps->leaving;
    lock_release(&taps->lock);
    return late;
}

static void end_leaving(struct taps *taps)
{
    lock_take(&taps->lock);
    taps->leaving = NULL;
    lock_release(&taps->lock);
}

void late_expired(struct timer *timer, nanos now)
{
    struct taps *taps = container_of(timer, struct taps, timer.timer);
    lock_assert_held(&taps->process->progress);
    nanos next;
    struct late *late;
    while ((late = take_due(taps, now, NULL, &next))) {
        finish(late, send(late), now);
        end_leaving(taps);
    }
    schedule_by(&taps->process->schedule, &taps->timer, next);
}

static void send_all(struct process *process, struct link *link)
{
    nanos next;
    struct late *late;
    if (!process->taps || process->forked)
        return;
    while ((late = take_due(process->taps, NANOS_NEVER - 1, link, &next))) {
        send(late);
        late_release(late);
    }
}

static bool is_quiet(struct taps *taps, const struct link *link)
{
    lock_take(&taps->lock);
    bool quiet = taps->leaving != link && !find_first(taps, link);
    lock_release(&taps->lock);
    return quiet;
}

/* The timers may be sending by this link, or put back what it had no room for. They hold no lock meanwhile that the
 * caller may have: the progress comes before its queue pair's, the link's own lock behind it. */
void late_forget(struct process *process, struct link *link)
{
    if (!process->taps || process->forked)
        return;
    for (unsigned round = 0; !is_quiet(process->taps, link); round++, lock_wait(round))
        send_all(process, link);
}

void late_flush(struct process *process)
{
    send_all(process, NULL);
}
