#include "abi/ucma/event_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/assembly.h"
#include "base/container.h"
#include "base/static_lock.h"
#include "base/uncancelled.h"
#include "cm/identifier.h"
#include "gsi/cm/cm.h"
#include "gsi/cm/cm_reason.h"
#include "process/wakeups.h"
#include "runtime/clock.h"

enum { BUCKETS = 256 };

LOCK_STATIC(lock, LOCK_INNERMOST); /* the channels */
static struct event_channel *channels[BUCKETS];
static atomic_uint count;

/* --- bytes and events */

static struct event_channel *channel_of(struct event_queue *queue)
{
    return container_of(queue, struct event_channel, queue);
}

static void added(struct event_queue *queue)
{
    struct event_channel *channel = channel_of(queue);
    wakeups_flush(channel->cm->process);
    channel->added_at = clock_now();
    event_pipe_add(&channel->pipe, 1);
}

static void removed(struct event_queue *queue)
{
    event_pipe_take_back(&channel_of(queue)->pipe);
}

static const struct event_queue_operations operations = {.added = added, .removed = removed};

/* Takes an event from the queue after a byte was read. False: the event of this byte was purged. */
static bool event_channel_take(struct event_channel *channel, struct cm_event *to)
{
    int before = uncancelled_begin();
    cm_begin(channel->cm);
    struct cm_event *event = event_fetch(&channel->queue);
    if (event) {
        identifier_fetched(event);
        *to = *event;
        channel->cm->manager.operations->release(&channel->cm->manager, event);
        channel->fetcher = pthread_self();
        channel->fetched_at = clock_now();
    }
    cm_end(channel->cm);
    if (event)
        cm_reason_log(channel->cm->process, to);
    uncancelled_end(before);
    return event;
}

static void no_longer_waits(void *channel)
{
    atomic_fetch_sub(&((struct event_channel *)channel)->waiting, 1);
}

/* A cancellation point. */
static int take_byte(struct event_channel *channel, int fd)
{
    int error;
    atomic_fetch_add(&channel->waiting, 1);
    pthread_cleanup_push(no_longer_waits, channel);
    error = event_pipe_take(&channel->pipe, fd) ? errno : 0;
    pthread_cleanup_pop(true);
    return error;
}

int event_channel_wait(struct event_channel *channel, int fd, struct cm_event *event)
{
    int error;
    do {
        error = take_byte(channel, fd);
    } while (!error && !event_channel_take(channel, event));
    return error;
}

/* --- opening and closing */

static struct event_channel **bucket_of(ino_t inode)
{
    return &channels[inode % BUCKETS];
}

static void event_channel_enter(struct event_channel *channel)
{
    struct event_channel **bucket = bucket_of(channel->pipe.inode);
    lock_take(&lock);
    channel->next = *bucket;
    *bucket = channel;
    atomic_fetch_add(&count, 1);
    lock_release(&lock);
}

static bool leave(struct event_channel *channel)
{
    lock_take(&lock);
    struct event_channel **at = bucket_of(channel->pipe.inode);
    while (*at && *at != channel)
        at = &(*at)->next;
    bool found = *at;
    if (found) {
        *at = channel->next;
        atomic_fetch_sub(&count, 1);
    }
    lock_release(&lock);
    return found;
}

int event_channel_open(int flags)
{
    struct event_channel *channel = calloc(1, sizeof *channel);
    int error = channel ? cm_join(&channel->cm, &assembly_parts) : ENOMEM;
    if (!error) {
        error = event_pipe_open(&channel->pipe, flags);
        if (error)
            cm_leave(channel->cm);
    }
    if (error) {
        free(channel);
        errno = error;
        return -1;
    }
    event_queue_initialize(&channel->queue, &operations);
    channel->fetched_at = NANOS_NEVER;
    atomic_store(&channel->uses, 1);
    event_channel_enter(channel);
    return channel->pipe.fd;
}

struct event_channel *event_channel_find(int fd)
{
    struct stat status;
    if (!atomic_load_explicit(&count, memory_order_relaxed) || fstat(fd, &status) || !S_ISFIFO(status.st_mode))
        return NULL;
    lock_take(&lock);
    struct event_channel *channel = *bucket_of(status.st_ino);
    while (channel && !(channel->pipe.inode == status.st_ino && channel->pipe.device == status.st_dev))
        channel = channel->next;
    if (channel)
        atomic_fetch_add(&channel->uses, 1);
    lock_release(&lock);
    return channel;
}

void event_channel_put(struct event_channel *channel)
{
    if (atomic_fetch_sub(&channel->uses, 1) != 1)
        return;
    int before = uncancelled_begin();
    cm_leave(channel->cm);
    event_pipe_close(&channel->pipe);
    free(channel);
    uncancelled_end(before);
}

/* Returns true if another thread than this one fetched the last event of this channel. That thread most likely fetches
 * the next one, too. */
static bool has_fetcher(const struct event_channel *channel)
{
    return channel->fetched_at != NANOS_NEVER && !pthread_equal(channel->fetcher, pthread_self());
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Programs close the channel as soon as their event thread has acknowledged the last event, and expect that this thread
 * then waits for the next one, for ever: EBADF would be an error to it (rping ends with it). A network and the kernel
 * need longer than the thread does. This library is faster, so the thread has 2 ms from its last fetch. */
static void let_return(struct event_channel *channel)
{
    static const nanos moment = 2 * NANOS_MILLISECOND;
    cm_begin(channel->cm);
    nanos until = has_fetcher(channel) ? channel->fetched_at + moment : 0;
    cm_end(channel->cm);
    while (!atomic_load(&channel->waiting) && clock_now() < until)
        nap();
}

/* Returns true if the identifier has an event here that a thread may be about to fetch. */
static bool is_about_to_fetch(struct event_channel *channel, uint32_t number, nanos *added_at)
{
    cm_begin(channel->cm);
    const struct identifier *identifier = identifier_find(&channel->cm->manager, number);
    bool waits = identifier && identifier->account.queue == &channel->queue && identifier->account.queued;
    bool found = waits && has_fetcher(channel);
    *added_at = channel->added_at;
    cm_end(channel->cm);
    return found;
}

void event_channel_let_fetch(struct event_channel *channel, uint32_t number)
{
    static const nanos moment = 10 * NANOS_MILLISECOND;
    nanos added_at, until = NANOS_NEVER;
    while (is_about_to_fetch(channel, number, &added_at)) {
        if (until == NANOS_NEVER)
            until = added_at + moment;
        if (clock_now() >= until)
            return;
        nap();
    }
}

void event_channel_close(struct event_channel *channel, int fd)
{
    if (fd != channel->pipe.fd)
        return;
    if (!cm_is_inherited(channel->cm))
        let_return(channel);
    if (!leave(channel))
        return;
    if (!cm_is_inherited(channel->cm)) {
        cm_begin(channel->cm);
        identifiers_destroy(&channel->cm->manager, &channel->queue, clock_now());
        cm_end(channel->cm);
    }
    event_channel_put(channel);
}
