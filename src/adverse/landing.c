#include "adverse/landing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/uncancelled.h"
#include "wire/guarded.h"

enum {
    BYTES_MOST = 64 << 20,
    CUTS_MOST = 7, /* the most cuts of a piece of memory */
    PAUSE_MOST = 300,
    SLEEPS = 8, /* one in so many pauses is a sleep */
};

static const nanos sleep_time = 50 * NANOS_MICROSECOND; /* unless times are scaled */

struct landing {
    TAILQ_ENTRY(landing) next;
    nanos due;
    uint8_t *to;
    size_t length;
    uint8_t bytes[];
};

void landings_begin(struct landings *landings)
{
    TAILQ_INIT(&landings->list);
    landings->bytes = 0;
}

static bool overlap(const struct landing *one, const struct landing *other)
{
    return one->to < other->to + other->length && other->to < one->to + one->length;
}

/* The last kept bytes that the new ones must not overtake; NULL: they may overtake all. */
static const struct landing *find_before(const struct landings *landings, const struct landing *landing)
{
    const struct landing *each;
    TAILQ_FOREACH_REVERSE (each, &landings->list, landing_list, next)
        if (!adverse_shows(ADVERSE_WRITE_ORDER) || overlap(each, landing))
            break;
    return each;
}

static void landing_insert(struct landings *landings, struct landing *landing)
{
    const struct landing *before = find_before(landings, landing);
    struct landing *each;
    if (before && before->due > landing->due)
        landing->due = before->due;
    TAILQ_FOREACH_REVERSE (each, &landings->list, landing_list, next)
        if (each->due <= landing->due)
            break;
    if (each)
        TAILQ_INSERT_AFTER(&landings->list, each, landing, next);
    else
        TAILQ_INSERT_HEAD(&landings->list, landing, next);
    landings->bytes += landing->length;
}

bool landings_keep(struct landings *landings, const struct payload *payload, uint32_t offset, const struct iovec *to,
                   nanos due)
{
    if (landings->bytes + to->iov_len > BYTES_MOST || !payload_can_land(to, 1))
        return false;
    struct landing *landing = malloc(sizeof *landing + to->iov_len);
    if (!landing)
        return false;
    *landing = (struct landing){.due = due, .to = to->iov_base, .length = to->iov_len};
    if (!payload_copy(payload, offset, &(struct iovec){landing->bytes, landing->length}, 1)) {
        free(landing);
        return false;
    }
    landing_insert(landings, landing);
    return true;
}

nanos landings_due(const struct landings *landings)
{
    return TAILQ_EMPTY(&landings->list) ? NANOS_NEVER : TAILQ_FIRST(&landings->list)->due;
}

static void take_out(struct landings *landings, struct landing *landing)
{
    TAILQ_REMOVE(&landings->list, landing, next);
    landings->bytes -= landing->length;
}

/* Sleeps without being cancelled, as the caller holds locks. */
static void sleep_between(void)
{
    int before = uncancelled_begin(), kept = errno;
    nanosleep(&(struct timespec){.tv_nsec = (long)adverse_scaled(sleep_time)}, NULL);
    errno = kept;
    uncancelled_end(before);
}

/* Gives other threads time to read the memory, and now and then the processor, which they may not have meanwhile. */
static void pause_between(struct adverse_source *source)
{
    if (!adverse_draw(source, SLEEPS - 1))
        return sleep_between();
    for (volatile uint64_t left = adverse_draw(source, PAUSE_MOST); left; left--) {
    }
}

static bool copy_part(uint8_t *to, const uint8_t *bytes, size_t start, size_t end)
{
    struct iovec from = {(void *)(uintptr_t)(bytes + start), end - start};
    const struct payload part = {.length = (uint32_t)(end - start), .count = 1, .pieces = &from};
    return start == end || payload_copy(&part, 0, &(struct iovec){to + start, end - start}, 1);
}

static void shuffle(struct adverse_source *source, unsigned *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        order[i] = i;
    for (unsigned i = count - 1; i; i--) {
        unsigned other = (unsigned)adverse_draw(source, i), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* Lands pieces that are cut at multiples of eight bytes, so that words stay whole. */
static bool land_in_pieces(uint8_t *to, const uint8_t *bytes, size_t length, struct adverse_source *source)
{
    size_t words = length / 8, cuts = words < CUTS_MOST ? words : CUTS_MOST;
    unsigned order[CUTS_MOST + 1], count = (unsigned)cuts + 1;
    bool landed = true;
    shuffle(source, order, count);
    for (unsigned i = 0; i < count && landed; i++) {
        size_t start = order[i] * words / count * 8;
        size_t end = order[i] + 1 == count ? length : (order[i] + 1) * words / count * 8;
        landed = copy_part(to, bytes, start, end);
        pause_between(source);
    }
    return landed;
}

bool landing_tear(const struct payload *payload, uint32_t offset, const struct iovec *to, struct adverse_source *source)
{
    enum { WORD = 8, HALF = WORD / 2 };
    if (!adverse_shows(ADVERSE_TORN) || to->iov_len < WORD || !adverse_draw(source, 1))
        return payload_copy(payload, offset, to, 1);
    size_t first = to->iov_len - HALF;
    if (!payload_copy(payload, offset, &(struct iovec){to->iov_base, first}, 1))
        return false;
    pause_between(source);
    adverse_note(ADVERSE_TORN);
    return payload_copy(payload, offset + (uint32_t)first, &(struct iovec){(char *)to->iov_base + first, HALF}, 1);
}

static void land(struct landing *landing, struct adverse_source *source)
{
    struct iovec from = {landing->bytes, landing->length}, to = {landing->to, landing->length};
    const struct payload payload = {.length = (uint32_t)landing->length, .count = 1, .pieces = &from};
    if (adverse_shows(ADVERSE_WRITE_ORDER)) {
        land_in_pieces(landing->to, landing->bytes, landing->length, source);
        adverse_note(ADVERSE_WRITE_ORDER);
    } else
        landing_tear(&payload, 0, &to, source);
}

/* Lands the bytes in the order of the list, in which landing_insert has put what must not be overtaken first. */
void landings_land(struct landings *landings, struct adverse_source *source, nanos until)
{
    struct landing *first;
    while ((first = TAILQ_FIRST(&landings->list)) && first->due <= until) {
        take_out(landings, first);
        land(first, source);
        free(first);
    }
}

void landings_drop(struct landings *landings)
{
    struct landing *first;
    while ((first = TAILQ_FIRST(&landings->list))) {
        take_out(landings, first);
        free(first);
    }
}

static size_t length_of(const struct iovec *to, uint32_t count)
{
    size_t length = 0;
    for (uint32_t i = 0; i < count; i++)
        length += to[i].iov_len;
    return length;
}

static bool scatter(uint8_t *bytes, const struct iovec *to, uint32_t count, struct adverse_source *source)
{
    bool landed = true;
    for (uint32_t i = 0; i < count && landed; i++) {
        landed = land_in_pieces(to[i].iov_base, bytes, to[i].iov_len, source);
        bytes += to[i].iov_len;
    }
    return landed;
}

bool landing_scatter(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count,
                     struct adverse_source *source)
{
    size_t length = length_of(to, count);
    uint8_t *bytes = malloc(length + 1);
    if (!bytes)
        return payload_copy(payload, offset, to, count);
    bool landed = payload_copy(payload, offset, &(struct iovec){bytes, length}, 1) && scatter(bytes, to, count, source);
    free(bytes);
    return landed;
}
