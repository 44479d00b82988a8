/* Event counters, timers, epoll, and waiting for descriptors. */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "schedule.h"
#include "seam.h"
#include "trace.h"

#define HERE __builtin_return_address(0)

int model_eventfd(unsigned count, int flags)
{
    for (unsigned i = 0; i < HOST_EVENTFDS; i++)
        if (!host.eventfds[i].references) {
            host_change()->eventfds[i] = (struct host_counter){1, count};
            return host_open_fd(FD_EVENTFD, i);
        }
    host_unknown("eventfd: too many");
}

int model_eventfd_read(int descriptor, eventfd_t *value)
{
    struct host_fd *fd = host_fd(descriptor, FD_EVENTFD);
    if (schedule_process_now()->threads > 1)
        schedule_step();
    if (!fd || !host.eventfds[fd->number].count)
        return host_error(fd ? EAGAIN : EBADF);
    *value = host.eventfds[fd->number].count;
    host_change()->eventfds[fd->number].count = 0;
    trace_line(HERE, "eventfd_read: %llu", (unsigned long long)*value);
    schedule_saw(*value);
    return 0;
}

int model_eventfd_write(int descriptor, eventfd_t value)
{
    struct host_fd *fd = host_fd(descriptor, FD_EVENTFD);
    if (schedule_process_now()->threads > 1)
        schedule_step();
    schedule_flush();
    if (!fd)
        return -1;
    host_change()->eventfds[fd->number].count += value;
    trace_line(HERE, "eventfd_write");
    return 0;
}

int model_epoll_create1(int flags)
{
    for (unsigned i = 0; i < HOST_EPOLLS; i++)
        if (!host.epolls[i].references) {
            host_change()->epolls[i].references = 1;
            return host_open_fd(FD_EPOLL, i);
        }
    host_unknown("epoll_create1: too many");
}

static struct host_interest *find_interest(struct host_epoll *epoll, unsigned owner, unsigned fd)
{
    for (unsigned i = 0; i < HOST_INTERESTS; i++)
        if (epoll->interests[i].kind != FD_NONE && epoll->interests[i].owner == owner && epoll->interests[i].fd == fd)
            return &epoll->interests[i];
    return NULL;
}

static struct host_interest *free_interest(struct host_epoll *epoll)
{
    for (unsigned i = 0; i < HOST_INTERESTS; i++)
        if (epoll->interests[i].kind == FD_NONE)
            return &epoll->interests[i];
    host_unknown("epoll_ctl: too many");
}

int model_epoll_ctl(int descriptor, int operation, int watched, struct epoll_event *event)
{
    struct host_fd *fd = host_fd(descriptor, FD_EPOLL), *what = host_fd(watched, FD_NONE);
    if (!fd || !what)
        return host_error(EBADF);
    struct host_epoll *epoll = &host_change()->epolls[fd->number];
    unsigned number = (unsigned)(watched - HOST_FIRST_FD), owner = host_process();
    struct host_interest *interest = find_interest(epoll, owner, number);
    if (!interest && operation == EPOLL_CTL_ADD)
        interest = free_interest(epoll);
    else if (!interest || operation == EPOLL_CTL_ADD)
        return host_error(interest ? EEXIST : ENOENT);
    if (operation == EPOLL_CTL_DEL)
        *interest = (struct host_interest){0};
    else
        *interest = (struct host_interest){.fd = (uint8_t)number,
                                           .kind = what->kind,
                                           .number = what->number,
                                           .owner = (uint8_t)owner,
                                           .order = ++host.last_order,
                                           .events = event->events,
                                           .data = event->data.u64};
    return 0;
}

void host_forget_interest(unsigned process, unsigned fd)
{
    for (unsigned i = 0; i < HOST_EPOLLS; i++) {
        struct host_interest *interest = find_interest(&host.epolls[i], process, fd);
        if (interest)
            *interest = (struct host_interest){0};
    }
}

/* unix_dgram_poll of the kernel: a socket is writable while its own send buffer has room and, when it is connected, the
 * other's queue. */
static bool is_writable(const struct host_socket *socket)
{
    if (socket->unread >= host_send_limit)
        return false;
    const struct host_socket *peer = socket->peer ? &host.sockets[socket->peer - 1] : NULL;
    return !peer || peer->queued < host_queue_limit;
}

static uint32_t ready_events(enum fd_kind kind, unsigned number)
{
    if (kind == FD_SOCKET)
        return (host.sockets[number].queued ? EPOLLIN : 0u) | (is_writable(&host.sockets[number]) ? EPOLLOUT : 0u);
    if (kind == FD_EVENTFD)
        return EPOLLOUT | (host.eventfds[number].count ? EPOLLIN : 0u);
    if (kind == FD_TIMER)
        return host.timers[number].deadline <= schedule_clock() ? EPOLLIN : 0u;
    if (kind != FD_EPOLL)
        return EPOLLIN | EPOLLOUT;
    for (unsigned i = 0; i < HOST_INTERESTS; i++) {
        const struct host_interest *interest = &host.epolls[number].interests[i];
        if (interest->kind != FD_NONE && ready_events(interest->kind, interest->number) & interest->events)
            return EPOLLIN;
    }
    return 0;
}

/* --- which thread a message wakes
 *
 * A message wakes the first instance with EPOLLEXCLUSIVE in which a thread waits, and no later one. An instance that is
 * waited for from outside, by poll, does not end that (epoll_ctl(2)). */

static bool is_of(const struct host_interest *interest, unsigned socket)
{
    return interest->kind == FD_SOCKET && interest->number == socket && interest->events & EPOLLEXCLUSIVE;
}

static void pass_all(unsigned socket, unsigned order, bool passed)
{
    for (unsigned i = 0; i < HOST_EPOLLS * HOST_INTERESTS; i++) {
        struct host_interest *interest = &host.epolls[i / HOST_INTERESTS].interests[i % HOST_INTERESTS];
        if (is_of(interest, socket) && interest->order > order)
            interest->passed = passed;
    }
}

void host_arrived(unsigned socket)
{
    struct host_epoll *first = NULL;
    unsigned order = UINT8_MAX;
    pass_all(socket, 0, false);
    for (unsigned i = 0; i < HOST_EPOLLS * HOST_INTERESTS; i++) {
        struct host_epoll *epoll = &host.epolls[i / HOST_INTERESTS];
        const struct host_interest *interest = &epoll->interests[i % HOST_INTERESTS];
        if (!epoll->waiting || !is_of(interest, socket) || interest->order >= order)
            continue;
        first = epoll;
        order = interest->order;
    }
    if (!first)
        return;
    first->waiting--;
    pass_all(socket, order, true);
}

/* A thread that begins its wait sees what is there. */
static void forget_passed(const struct host_fd *fd)
{
    for (unsigned i = 0; fd->kind == FD_EPOLL && i < HOST_INTERESTS; i++)
        if (host.epolls[fd->number].interests[i].passed)
            host_change()->epolls[fd->number].interests[i].passed = false;
}

/* As ready_events, for a thread that waits already. */
static bool is_woken(struct host_fd fd, uint32_t events)
{
    if (fd.kind != FD_EPOLL)
        return ready_events(fd.kind, fd.number) & events;
    for (unsigned i = 0; i < HOST_INTERESTS; i++) {
        const struct host_interest *interest = &host.epolls[fd.number].interests[i];
        if (interest->kind != FD_NONE && !interest->passed &&
            ready_events(interest->kind, interest->number) & interest->events)
            return true;
    }
    return false;
}

/* --- timers */

int model_timerfd_create(int clock, int flags)
{
    for (unsigned i = 0; i < HOST_TIMERS; i++)
        if (!host.timers[i].references) {
            host_change()->timers[i] = (struct host_timer){1, (uint8_t)host_process(), NANOS_NEVER};
            return host_open_fd(FD_TIMER, i);
        }
    host_unknown("timerfd_create: too many");
}

int model_timerfd_settime(int descriptor, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    struct host_fd *fd = host_fd(descriptor, FD_TIMER);
    nanos span = (nanos)when->it_value.tv_sec * NANOS_SECOND + (nanos)when->it_value.tv_nsec;
    if (schedule_process_now()->threads > 1)
        schedule_step();
    if (!fd || flags || when->it_interval.tv_sec || when->it_interval.tv_nsec)
        host_unknown("timerfd_settime");
    host_change()->timers[fd->number].deadline = span ? schedule_clock() + span : NANOS_NEVER;
    trace_line(HERE, "timerfd_settime: in %llu us", (unsigned long long)(span / NANOS_MICROSECOND));
    return 0;
}

/* Only timers are read. */
ssize_t model_read(int descriptor, void *to, size_t size)
{
    struct host_fd *fd = host_fd(descriptor, FD_TIMER);
    const uint64_t one = 1;
    if (schedule_process_now()->threads > 1)
        schedule_step();
    if (!fd || size != sizeof one)
        host_unknown("read");
    bool due = host.timers[fd->number].deadline <= schedule_clock();
    trace_line(HERE, "read of the timer: %s", due ? "it has run out" : "not yet");
    if (!due)
        return host_error(EAGAIN);
    host_change()->timers[fd->number].deadline = NANOS_NEVER;
    memcpy(to, &one, sizeof one);
    schedule_saw(1);
    return sizeof one;
}

nanos host_next_timer(void)
{
    nanos next = NANOS_NEVER;
    for (unsigned i = 0; i < HOST_TIMERS; i++) {
        const struct host_timer *timer = &host.timers[i];
        const struct model_process *owner = schedule_process_at(timer->owner);
        bool counts = timer->references && !owner->dead && !owner->stopped && timer->deadline > schedule_clock();
        if (counts && timer->deadline < next)
            next = timer->deadline;
    }
    return next;
}

/* --- waiting */

struct polled {
    struct pollfd *fds;
    nfds_t count;
    struct host_fd *table;
};

static bool is_polled_ready(const void *argument)
{
    const struct polled *polled = argument;
    for (nfds_t i = 0; i < polled->count; i++) {
        struct host_fd fd = polled->table[polled->fds[i].fd - HOST_FIRST_FD];
        if (is_woken(fd, (uint32_t)polled->fds[i].events))
            return true;
    }
    return false;
}

static int report_ready(struct polled *polled)
{
    int count = 0;
    for (nfds_t i = 0; i < polled->count; i++) {
        struct host_fd fd = polled->table[polled->fds[i].fd - HOST_FIRST_FD];
        polled->fds[i].revents = (short)(ready_events(fd.kind, fd.number) & (uint32_t)polled->fds[i].events);
        count += polled->fds[i].revents != 0;
    }
    schedule_saw((unsigned)count);
    return count;
}

static int wait_for(struct pollfd *fds, nfds_t count, nanos deadline, const void *at)
{
    struct polled polled = {fds, count, host.fds[host_process()]};
    for (nfds_t i = 0; i < count; i++)
        forget_passed(&polled.table[fds[i].fd - HOST_FIRST_FD]);
    if (deadline == 0)
        schedule_step();
    else {
        if (!is_polled_ready(&polled))
            trace_line(at, "sleeps%s", deadline == NANOS_NEVER ? "" : " with a deadline");
        schedule_wait(is_polled_ready, &polled, deadline);
    }
    int ready = report_ready(&polled);
    trace_line(at, "poll: %s", ready ? "ready" : "nothing");
    return ready;
}

int model_poll(struct pollfd *fds, nfds_t count, int milliseconds)
{
    nanos deadline = milliseconds < 0 ? NANOS_NEVER : schedule_clock() + (unsigned)milliseconds * NANOS_MILLISECOND;
    return wait_for(fds, count, milliseconds ? deadline : 0, HERE);
}

static bool is_epoll_woken(const void *fd)
{
    return is_woken(*(const struct host_fd *)fd, EPOLLIN);
}

static void wait_in(struct host_fd *fd)
{
    struct host_epoll *epoll = &host_change()->epolls[fd->number];
    forget_passed(fd);
    if (is_epoll_woken(fd))
        return;
    trace_line(HERE, "sleeps in epoll_wait");
    epoll->waiting = 1;
    schedule_wait(is_epoll_woken, fd, NANOS_NEVER);
    host_change()->epolls[fd->number].waiting = 0;
}

/* One thread at a time waits in an instance. */
int model_epoll_wait(int descriptor, struct epoll_event *events, int most, int milliseconds)
{
    struct host_fd *fd = host_fd(descriptor, FD_EPOLL);
    int count = 0;
    schedule_step();
    if (!fd || milliseconds > 0)
        host_unknown("epoll_wait");
    if (milliseconds)
        wait_in(fd);
    for (unsigned i = 0; i < HOST_INTERESTS && count < most; i++) {
        struct host_interest *interest = &host.epolls[fd->number].interests[i];
        uint32_t ready =
            interest->kind == FD_NONE ? 0 : ready_events(interest->kind, interest->number) & interest->events;
        if (!ready)
            continue;
        events[count++] = (struct epoll_event){.events = ready, .data.u64 = interest->data};
        schedule_saw(ready + interest->fd);
        if (interest->events & EPOLLONESHOT)
            host_change(), interest->events = 0;
    }
    trace_line(HERE, "epoll_wait: %d", count);
    schedule_saw((unsigned)count);
    return count;
}
