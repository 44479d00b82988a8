/* Notices at once when a peer's process ends, however it does: a pidfd for each watched peer. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/uncancelled.h"
#include "ipc/state.h"

enum { ENDED_AT_ONCE = 16 };

static int open_ends(struct node *node)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (node->ends >= 0)
        return 0;
    node->ends = descriptor_raise(epoll_create1(EPOLL_CLOEXEC));
    return node->ends < 0 || epoll_ctl(node->epoll, EPOLL_CTL_ADD, node->ends, &event) ? errno : 0;
}

static int watch(struct node *node, struct record *record)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
    pid_t pid = table_pid(node->table, record->peer.slot);
    int error = pid > 0 ? open_ends(node) : ESRCH;
    if (error)
        return error;
    record->end = descriptor_raise((int)syscall(SYS_pidfd_open, pid, 0));
    if (record->end < 0)
        return errno;
    return epoll_ctl(node->ends, EPOLL_CTL_ADD, record->end, &event) ? errno : 0;
}

/* The process may have ended before it was watched: a later look at its number would not show that. */
int node_watch(struct node *node, struct peer *peer)
{
    struct record *record = (struct record *)peer;
    if (peer->slot == node->slot || atomic_load_explicit(&record->watched, memory_order_relaxed))
        return 0;
    int before = uncancelled_begin();
    lock_take(&node->lock);
    int error = atomic_exchange(&record->watched, true) || peer->gone ? 0 : watch(node, record);
    if (!table_is(node->table, peer->slot, record->generation))
        record_depart(record);
    lock_release(&node->lock);
    uncancelled_end(before);
    return error;
}

void watch_service(struct node *node)
{
    struct epoll_event events[ENDED_AT_ONCE];
    if (node->ends >= 0 && epoll_wait(node->ends, events, ENDED_AT_ONCE, 0) > 0)
        records_check(node);
}
