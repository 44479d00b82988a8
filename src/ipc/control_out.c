/* Sending again what could not be sent: after a timer, as a message is refused for many reasons (our own buffer,
 * descriptors in flight, memory) or may be lost by its receiver; sooner if the receiver's queue was full and has room
 * again. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/container.h"
#include "base/descriptor.h"
#include "base/spare.h"
#include "base/uncancelled.h"
#include "ipc/state.h"

static const nanos retry_first = NANOS_MILLISECOND;
static const nanos retry_most = 128 * NANOS_MILLISECOND; /* the wait doubles up to this while all attempts fail */

static void retry_in(struct node *node, nanos span)
{
    struct itimerspec when = {.it_value.tv_nsec = (long)span};
    atomic_store(&node->retry_after, span);
    int before = uncancelled_begin();
    timerfd_settime(node->retry, 0, &when, NULL);
    uncancelled_end(before);
    atomic_store(&node->postponed, true);
}

void control_postponed(struct shm_common *host)
{
    retry_in(container_of(host, struct node, host), retry_first);
}

/* A datagram socket that is connected to another becomes writable when that one's queue has room. Without such a socket
 * (no descriptors left) there is still the timer. */
static void watch(struct node *node, struct record *record)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};
    char name[CONTROL_NAME_MAX];
    if (record->writable >= 0) {
        epoll_ctl(node->epoll, EPOLL_CTL_MOD, record->writable, &event);
        return;
    }
    table_socket_name(node->directory, record->peer.slot, name);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", name);
    record->writable = descriptor_raise(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (record->writable >= 0 && (connect(record->writable, (struct sockaddr *)&to, sizeof to) ||
                                  epoll_ctl(node->epoll, EPOLL_CTL_ADD, record->writable, &event)))
        record_close_writable(record);
}

/* Sends a peer again what was refused, unless the peer has died meanwhile. True: something still waits. Under
 * node->lock. */
static bool retry(struct node *node, struct record *record)
{
    lock_assert_held(&node->lock);
    bool ours = record->peer.slot == node->slot;
    int error = ours || record->peer.gone ? 0 : shm_retry(record->peer.link);
    if (error && !table_is(node->table, record->peer.slot, record->generation)) {
        record_depart(record);
        error = 0;
    }
    if (error == EAGAIN)
        watch(node, record);
    else
        record_close_writable(record);
    return error;
}

/* Returns true if the timer has run out or a queue has room again. `postponed` only spares nodes with nothing postponed
 * this check: it is set after the timer was set, and cleared before the check. */
static bool is_due(struct node *node)
{
    struct epoll_event events[5]; /* four others may be ready, too */
    uint64_t ticks;
    if (!atomic_exchange(&node->postponed, false))
        return false;
    bool due = descriptor_has_no_type(node->retry) && read(node->retry, &ticks, sizeof ticks) == sizeof ticks;
    int count = due ? 0 : epoll_wait(node->epoll, events, 5, 0);
    for (int i = 0; i < count; i++)
        due |= !(events[i].events & EPOLLIN);
    if (!due)
        atomic_store(&node->postponed, true);
    return due;
}

void control_retry(struct node *node)
{
    nanos after = 2 * atomic_load(&node->retry_after);
    bool waits = false;
    if (!is_due(node))
        return;
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        waits |= retry(node, record);
    lock_release(&node->lock);
    spare_keep(&node->spare, node->waker);
    if (waits && !atomic_load(&node->postponed))
        retry_in(node, after < retry_most ? after : retry_most);
}
