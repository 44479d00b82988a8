#include "abi/ucma/event_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/assembly.h"
#include "base/container.h"
#include "base/lock.h"
#include "base/uncancelled.h"
#include "gsi/cm.h"
#include "gsi/cm_reason.h"
#include "process/wakeups.h"
#include "runtime/clock.h"

enum { BUCKETS = 256 };

static struct lock lock = LOCK_INITIAL(LOCK_INNERMOST); /* the channels */
static struct event_channel *channels[BUCKETS];
static atomic_uint count;
static int drain[2] = {-1, -1}; /* where bytes go that no event stands for any more */

/* --- bytes and events */

static struct event_channel *channel_of(struct event_queue *queue)
{
    return container_of(queue, struct event_channel, queue);
}

/* A pipe that is full has less bytes than there are events: who takes one sees to it (event_channel_take). */
static void put_byte(struct event_channel *channel)
{
    int error = errno;
    wakeups_flush(channel->cm->process);
    if (write(channel->write_end, "", 1) == 1)
        channel->bytes++;
    errno = error;
}

static void added(struct event_queue *queue)
{
    struct event_channel *channel = channel_of(queue);
    channel->added_at = clock_now();
    put_byte(channel);
}

/* Without ever waiting, which a read would if another thread was faster: splice may be told not to. */
static void removed(struct event_queue *queue)
{
    struct event_channel *channel = channel_of(queue);
    int error = errno;
    char byte;
    while (channel->bytes > queue->count && splice(channel->fd, NULL, drain[1], NULL, 1, SPLICE_F_NONBLOCK) == 1 &&
           read(drain[0], &byte, 1) == 1)
        channel->bytes--;
    errno = error;
}

static const struct event_queue_operations operations = {.added = added, .removed = removed};

/* A byte was read: takes the event that it stands for. False: it was purged. */
static bool event_channel_take(struct event_channel *channel, struct cm_event *to)
{
    int before = uncancelled_begin();
    cm_begin(channel->cm);
    struct cm_event *event = event_fetch(&channel->queue);
    channel->bytes--;
    if (channel->bytes < channel->queue.count)
        put_byte(channel);
    if (event) {
        *to = *event;
        channel->cm->manager.operations->release(&channel->cm->manager, event);
        channel->fetcher = pthread_self();
        channel->fetched_at = clock_now();
    }
    cm_end(channel->cm);
    if (event)
        cm_reason_log(to);
    uncancelled_end(before);
    return event;
}

static void no_longer_waits(void *channel)
{
    atomic_fetch_sub(&((struct event_channel *)channel)->waiting, 1);
}

/* A cancellation point. */
static ssize_t read_byte(struct event_channel *channel, int fd)
{
    char byte;
    ssize_t done;
    atomic_fetch_add(&channel->waiting, 1);
    pthread_cleanup_push(no_longer_waits, channel);
    done = read(fd, &byte, 1);
    pthread_cleanup_pop(true);
    return done;
}

int event_channel_wait(struct event_channel *channel, int fd, struct cm_event *event)
{
    do {
        ssize_t done = read_byte(channel, fd);
        if (done <= 0)
            return done ? errno : EINVAL;
    } while (!event_channel_take(channel, event));
    return 0;
}

/* --- opening and closing */

static struct event_channel **bucket_of(ino_t inode)
{
    return &channels[inode % BUCKETS];
}

static void event_channel_enter(struct event_channel *channel)
{
    struct event_channel **bucket = bucket_of(channel->inode);
    lock_take(&lock);
    channel->next = *bucket;
    *bucket = channel;
    atomic_fetch_add(&count, 1);
    lock_release(&lock);
}

static bool leave(struct event_channel *channel)
{
    lock_take(&lock);
    struct event_channel **at = bucket_of(channel->inode);
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

static int open_drain(void)
{
    int made[2], error = 0;
    if (drain[0] >= 0)
        return 0;
    if (pipe2(made, O_CLOEXEC | O_NONBLOCK))
        return errno;
    lock_take(&lock);
    if (drain[0] < 0) {
        drain[0] = made[0];
        drain[1] = made[1];
        made[0] = made[1] = -1;
    }
    lock_release(&lock);
    if (made[0] >= 0) {
        close(made[0]);
        close(made[1]);
    }
    return error;
}

static int open_pipe(struct event_channel *channel, int flags)
{
    struct stat status;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    if (flags & O_NONBLOCK)
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    if (!(flags & O_CLOEXEC))
        fcntl(ends[0], F_SETFD, 0);
    fstat(ends[0], &status);
    channel->fd = ends[0];
    channel->write_end = ends[1];
    channel->device = status.st_dev;
    channel->inode = status.st_ino;
    return 0;
}

int event_channel_open(int flags)
{
    struct event_channel *channel = calloc(1, sizeof *channel);
    int error = channel ? open_drain() : ENOMEM;
    if (!error)
        error = cm_join(&channel->cm, &assembly_parts);
    if (!error) {
        error = open_pipe(channel, flags);
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
    return channel->fd;
}

struct event_channel *event_channel_find(int fd)
{
    struct stat status;
    if (!atomic_load_explicit(&count, memory_order_relaxed) || fstat(fd, &status) || !S_ISFIFO(status.st_mode))
        return NULL;
    lock_take(&lock);
    struct event_channel *channel = *bucket_of(status.st_ino);
    while (channel && !(channel->inode == status.st_ino && channel->device == status.st_dev))
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
    close(channel->write_end);
    free(channel);
    uncancelled_end(before);
}

/* Has a thread that is not this one fetched an event of this channel? Then it most likely fetches the next one, too. */
static bool has_fetcher(const struct event_channel *channel)
{
    return channel->fetched_at != NANOS_NEVER && !pthread_equal(channel->fetcher, pthread_self());
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Programs close the channel as soon as their thread for events has acknowledged the last one, and mean that thread to
 * wait for the next one by then, for ever: EBADF would be an error to it (rping ends with it). The network, and the
 * kernel's way, take longer than it needs to get there. Here everything goes faster, so it is given a moment. */
static void let_return(struct event_channel *channel)
{
    static const nanos moment = 2 * NANOS_MILLISECOND;
    cm_begin(channel->cm);
    nanos until = has_fetcher(channel) ? channel->fetched_at + moment : 0;
    cm_end(channel->cm);
    while (!atomic_load(&channel->waiting) && clock_now() < until)
        nap();
}

/* Has the identifier an event here that a thread may be about to fetch? */
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
    if (fd != channel->fd)
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
