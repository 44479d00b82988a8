/* Receiving, sleeping and waking. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/likely.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "ipc/state.h"

static unsigned hear(struct record *record, node_take *take, void *context, unsigned budget)
{
    struct link *link = record->peer.link;
    struct frame frame;
    unsigned done = 0;
    while (done < budget && shm_receive(link, &frame)) {
        take(context, &record->peer, &frame);
        shm_release(link);
        done++;
    }
    shm_drained(link);
    return done;
}

static void refuse(struct node *node, struct record *record)
{
    lock_take(&node->lock);
    if (!record->peer.gone)
        shm_refuse(record->peer.link);
    lock_release(&node->lock);
    log_reason(LOG_WARN, REASON_RING_BROKEN, "process %d", (int)record->peer.pid);
}

/* The peer of a ring that ended is gone. A broken ring is mended, if the peer lives. */
static void check_end(struct node *node, struct record *record)
{
    bool ended = atomic_load_explicit(&record->reader->ended, memory_order_relaxed);
    if (!ended && !atomic_load_explicit(&record->reader->broken, memory_order_relaxed))
        return;
    int before = uncancelled_begin();
    if (ended) {
        lock_take(&node->lock);
        record_depart(record);
        lock_release(&node->lock);
    } else {
        refuse(node, record);
    }
    uncancelled_end(before);
}

static bool has_messages(const struct node *node)
{
    return atomic_load_explicit(&node->entry->inbox.sent, memory_order_relaxed) !=
           atomic_load_explicit(&node->inbox_seen, memory_order_relaxed);
}

/* A thread that polls may read a doorbell before the sleeper has seen it: the sleeper's poll would find the socket
 * empty and go on, with doorbells off. So it is rung anew. */
static void read_messages(struct node *node)
{
    int error = errno, before = uncancelled_begin();
    if (control_receive(node))
        node_wake(node);
    uncancelled_end(before);
    errno = error;
}

bool node_is_quiet(const struct node *node)
{
    for (unsigned i = 0; i < node->heard.polled; i++)
        if (unlikely(ring_has_frame(node->heard.at[i]->reader)))
            return false;
    return !has_messages(node) && !marks_raised(&node->entry->attention.marks);
}

unsigned node_receive(struct node *node, node_take *take, void *context, unsigned budget)
{
    unsigned done = 0;
    if (unlikely(has_messages(node)))
        read_messages(node);
    if (unlikely(marks_raised(&node->entry->attention.marks)))
        records_attend(node);
    for (unsigned i = 0; i < node->heard.polled; i++) {
        struct record *record = node->heard.at[i];
        if (!ring_has_frame(record->reader))
            continue;
        unsigned some = hear(record, take, context, budget);
        done += some;
        if (some < budget)
            check_end(node, record);
    }
    return done;
}

/* The requester has closed its end and counts the request as unanswered, so it must not be carried out later. */
static bool is_given_up(int asker)
{
    struct pollfd wait = {.fd = asker};
    return poll(&wait, 1, 0) > 0 && wait.revents & POLLHUP;
}

/* Writes the report to memory of ours, which can't block, and hands that over: no write to a pipe whose reader has died
 * can hurt the program that we live in. */
static void give_report(struct node *node, int to, node_report *report, void *context)
{
    char request[NODE_REQUEST_MAX + 1] = "";
    recv(to, request, NODE_REQUEST_MAX, MSG_DONTWAIT); /* written before `to` was sent; nothing: the request is empty */
    int memory = report && !is_given_up(to) ? memfd_create("softverbs-report", MFD_CLOEXEC) : -1;
    if (memory >= 0) {
        report(context, request, memory);
        control_send_descriptor(to, memory);
        close(memory);
    }
    close(to);
}

/* Wakes the other processes, so that they look, too. The table no longer says which of them sleep, so all are rung. */
static void leave_lost_host(struct node *node)
{
    if (!atomic_load(&node->table->lost) || atomic_load(&node->left))
        return;
    log_reason(LOG_ERROR, REASON_TABLE_TRUNCATED, "%s/table", node->directory);
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        atomic_store(&node->table->file->slots[i].attention.state, ATTENTION_SLEEPING);
    node_leave_host(node);
}

/* Peers that found nonsense in a ring of ours ring the doorbell, and so do those that have mended theirs. */
static void mend_rings(struct node *node)
{
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        shm_mend(record->peer.link);
    lock_release(&node->lock);
}

void node_service(struct node *node, node_report *report, void *context)
{
    control_take_wakes(node->waker);
    control_receive(node);
    control_retry(node);
    watch_service(node);
    mend_rings(node);
    if (node->heard.polled < node->heard.count)
        records_look_at_all(node); /* a sender rang, perhaps because its mark was lost */
    while (node->requests.count)
        give_report(node, node->requests.descriptors[--node->requests.count], report, context);
    if (atomic_load(&node->litter))
        records_collect(node);
    leave_lost_host(node);
}

/* The sleep of the doorbell ends here: its sender may mark it as over later, and the next one has another number. */
void node_attend(struct node *node)
{
    node_awake(node);
    control_receive(node);
    if (node->heard.polled < node->heard.count)
        records_look_at_all(node);
    mend_rings(node);
    if (node->requests.count || atomic_load(&node->litter))
        node_wake(node);
}

/* Makes node->epoll the last waiter of the socket, by another descriptor of it: the old one stays until the new one is
 * there, as a helper that hears no doorbell would be lost. */
static bool listen_last(struct node *node, struct epoll_event *doorbell)
{
    int again = descriptor_raise(fcntl(node->socket, F_DUPFD_CLOEXEC, 0));
    if (again < 0 || epoll_ctl(node->epoll, EPOLL_CTL_ADD, again, doorbell)) {
        descriptor_close(&again);
        return false;
    }
    epoll_ctl(node->epoll, EPOLL_CTL_DEL, node->listened < 0 ? node->socket : node->listened, NULL);
    descriptor_close(&node->listened);
    node->listened = again;
    return true;
}

/* The kernel wakes the first waiter of a socket that counts as woken (epoll_ctl(2), EPOLLEXCLUSIVE): an instance in
 * which a thread waits does, and node->epoll, which the helper watches from outside, does not, so it is behind all
 * others. */
int node_open_sleeper(struct node *node)
{
    struct epoll_event doorbell = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    int sleeper = descriptor_raise(epoll_create1(EPOLL_CLOEXEC));
    if (sleeper < 0)
        return -1;
    if (!epoll_ctl(sleeper, EPOLL_CTL_ADD, node->socket, &doorbell) && listen_last(node, &doorbell))
        return sleeper;
    close(sleeper);
    return -1;
}

void node_close_sleeper(struct node *node, int sleeper)
{
    epoll_ctl(sleeper, EPOLL_CTL_DEL, node->socket, NULL);
    node_wake(node); /* a doorbell may have woken its thread just now */
}

void node_leave_sleeper(struct node *node)
{
    node_wake(node);
}

int node_fd(const struct node *node)
{
    return node->epoll;
}

static bool is_waiting(const struct record *record)
{
    if (record->reader && ring_waiting(record->reader) && !atomic_load(&record->reader->broken) &&
        !atomic_load(&record->reader->ended))
        return true;
    return shm_got_room(record->peer.link);
}

/* Looks at all rings: the mark of one that is not polled will arrive, or was lost. */
static bool anything_waits(struct node *node)
{
    bool waits = has_messages(node) || marks_raised(&node->entry->attention.marks);
    lock_take(&node->lock);
    for (struct record *record = node->records; record && !waits; record = record->next) {
        waits = is_waiting(record);
        if (waits && record->reader && record->place >= node->heard.polled)
            records_look_at_all(node);
    }
    lock_release(&node->lock);
    return waits;
}

bool node_sleep(struct node *node)
{
    unsigned sleep = attention_sleep(&node->entry->attention);
    atomic_store_explicit(&node->fenced, sleep, memory_order_release);
    return !anything_waits(node);
}

/* A thread that takes a doorbell for the sleep that it joined looks before it begins another sleep, which has another
 * number. So a mark that arrives late (link/doorbell.h) finds a thread awake, or does not count. */
bool node_rest(struct node *node)
{
    unsigned sleep = atomic_load_explicit(&node->fenced, memory_order_acquire);
    return attention_lasts(&node->entry->attention, sleep) ? !anything_waits(node) : node_sleep(node);
}

void node_awake(struct node *node)
{
    attention_wake(&node->entry->attention);
}

bool node_sleeping(const struct node *node)
{
    return attention_sleeps(&node->entry->attention);
}

void node_wake(struct node *node)
{
    control_wake(node->waker);
}
