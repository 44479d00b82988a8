#include "ipc/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/container.h"
#include "base/descriptor.h"
#include "base/spare.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "ipc/place/directory.h"
#include "ipc/state.h"
#include "link/fence.h"

static int fail(int error, const char *what, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: %s.", what, strerror(error));
    return error;
}

static int open_socket(struct node *node, char *why, size_t why_size)
{
    struct epoll_event event = {.events = EPOLLIN}, doorbell = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    unlink(node->bell.name);
    int error = control_listen(node->bell.name, &node->socket);
    if (!error)
        error = directory_share_socket(node->directory, node->bell.name);
    node->epoll = descriptor_raise(epoll_create1(EPOLL_CLOEXEC));
    node->waker = descriptor_raise(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    node->retry = descriptor_raise(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (error || node->epoll < 0 || node->waker < 0 || node->retry < 0 ||
        epoll_ctl(node->epoll, EPOLL_CTL_ADD, node->socket, &doorbell) ||
        epoll_ctl(node->epoll, EPOLL_CTL_ADD, node->waker, &event) ||
        epoll_ctl(node->epoll, EPOLL_CTL_ADD, node->retry, &event))
        return fail(error ? error : errno, "The socket for wake-ups can't be made", why, why_size);
    node->bell.socket = node->socket;
    node->bell.waker = node->waker;
    atomic_store(&node->table->waker, node->waker);
    spare_keep(&node->spare, node->waker);
    return 0;
}

static void introduce(struct node *node)
{
    uint32_t self = table_self(node->table);
    node->slot = table_owner_slot(self);
    node->generation = table_owner_generation(self);
    node->entry = &node->table->file->slots[node->slot];
    node->bell = (struct doorbell){.attention = &node->entry->attention, .waker = -1, .socket = -1};
    node->bell.message = (struct control_message){.magic = CONTROL_MAGIC,
                                                  .layout = CONTROL_LAYOUT,
                                                  .slot = node->slot,
                                                  .generation = node->generation,
                                                  .to_generation = node->generation,
                                                  .pid = getpid()};
    table_socket_name(node->directory, node->slot, node->bell.name);
    node->bell.prepared = fence_everywhere_prepare();
}

static int join_node(struct node *node, char *why, size_t why_size)
{
    int error = ESTALE;
    for (int i = 0; i < 8 && error == ESTALE; i++) {
        error = table_open(&node->table, node->directory, true, why, why_size);
        if (error)
            return error;
        error = table_self(node->table) ? fail(EBUSY, "This process has joined the directory already", why, why_size)
                                        : table_join(node->table, why, why_size);
        if (error)
            table_close(node->table);
    }
    return error;
}

/* The operation of struct shm_common. A ring keeps its descriptor only until the receiver has mapped it; then the node
 * gets a spare one again (control_retry). */
static bool lacking(struct shm_common *host, int error)
{
    int before = uncancelled_begin();
    bool made_place = error == EMFILE && spare_give_up(&container_of(host, struct node, host)->spare);
    if (!made_place)
        log_reason(LOG_ERROR, REASON_RING_REFUSED, "%s", strerror(error));
    uncancelled_end(before);
    return made_place;
}

static int set_up(struct node *node, char *why, size_t why_size)
{
    uint64_t proof = 0;
    introduce(node);
    int error = open_socket(node, why, why_size);
    if (error)
        return error;
    if (getrandom(&proof, sizeof proof, GRND_NONBLOCK) != sizeof proof)
        proof = (uint64_t)getpid() << 32 ^ (uintptr_t)node;
    atomic_store(&node->host.proof, proof);
    node->host.postponed = control_postponed;
    node->host.lacking = lacking;
    node->is_open = directory_is_open(node->directory);
    node->host.published = node->is_open || !cma_is_direct() || published_create(&node->published)
                               ? -1 /* in an open directory another user's process could forge control messages */
                               : node->published.descriptor;
    error = record_open_loopback(node);
    if (error)
        return fail(error, "The ring of this process to itself can't be made", why, why_size);
    return atomic_load(&node->table->lost) ? fail(EIO, "The table of processes was truncated", why, why_size) : 0;
}

static void close_descriptors(struct node *node)
{
    atomic_store(&node->table->waker, -1);
    for (unsigned i = 0; i < node->requests.count; i++)
        close(node->requests.descriptors[i]);
    descriptor_close(&node->listened);
    descriptor_close(&node->socket);
    descriptor_close(&node->epoll);
    descriptor_close(&node->ends);
    descriptor_close(&node->waker);
    descriptor_close(&node->retry);
    spare_give_up(&node->spare);
    published_close(&node->published);
}

int node_open(struct node **result, const char *directory, char *why, size_t why_size)
{
    struct node *node = calloc(1, sizeof *node);
    if (!node)
        return fail(ENOMEM, "This process can't join the host's directory", why, why_size);
    lock_set_rank(&node->lock, LOCK_NODE);
    node->spare = node->listened = node->socket = node->epoll = node->ends = node->waker = node->retry = -1;
    node->published.descriptor = -1;
    if (directory ? snprintf(node->directory, sizeof node->directory, "%s", directory) > NODE_DIRECTORY_MAX
                  : !node_directory(node->directory)) {
        free(node);
        return fail(ENAMETOOLONG, "The directory for processes of this host can't be named", why, why_size);
    }
    int error = join_node(node, why, why_size);
    if (error) {
        free(node);
        return error;
    }
    error = set_up(node, why, why_size);
    if (error) {
        table_leave(node->table);
        close_descriptors(node);
        table_close(node->table);
        free(node);
        return error;
    }
    table_announce(node->table);
    *result = node;
    return 0;
}

void node_leave_host(struct node *node)
{
    if (atomic_exchange(&node->left, true))
        return;
    published_open(&node->published, false);
    node_quiesce(node);
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        if (record->peer.slot != node->slot)
            shm_farewell(record->peer.link);
    table_leave(node->table);
    lock_release(&node->lock);
}

void node_withdraw(struct node *node)
{
    if (!atomic_exchange(&node->left, true))
        table_withdraw(node->table);
}

bool node_is_lost(const struct node *node)
{
    return atomic_load(&node->table->lost) && atomic_load(&node->left);
}

void node_close(struct node *node)
{
    node_leave_host(node);
    while (node->records) {
        struct record *record = node->records;
        node->records = record->next;
        atomic_store(&record->references, 1); /* each holder of a reference has been asked to leave the node already */
        record_release(record);
    }
    if (atomic_load(&node->host.permitted))
        cma_withdraw();
    close_descriptors(node);
    table_close(node->table);
    free(node);
}

/* The records stay: objects that were inherited over the fork point to them. */
void node_abandon(struct node *node)
{
    atomic_store(&node->left, true);
    lock_inherit(&node->lock);
    node->heard.count = node->heard.polled = 0;
    for (struct record *record = node->records; record; record = record->next) {
        record_close_writable(record);
        record->reader = NULL;
        shm_abandon(record->peer.link);
        atomic_store(&record->peer.gone, true);
    }
    close_descriptors(node);
    table_abandon(node->table);
}

void node_program(const struct node *node, const struct peer *peer, char *to, size_t size)
{
    const struct table_slot *slot = &node->table->file->slots[peer->slot];
    size_t length = strnlen(slot->program, sizeof slot->program);
    length = length < size ? length : size - 1;
    memcpy(to, slot->program, length);
    to[length] = 0;
}

void node_count_opening(struct node *node)
{
    atomic_fetch_add(&node->table->file->head.opened, 1);
}

const char *node_path(const struct node *node)
{
    return node->directory;
}

unsigned node_slot(const struct node *node)
{
    return node->slot;
}

int node_claim_numbers(struct node *node, uint32_t below, uint32_t *first)
{
    uint32_t block;
    int error = table_claim_block(node->table, below / NODE_BLOCK, &block);
    if (!error)
        *first = block * NODE_BLOCK;
    return error;
}

void node_return_numbers(struct node *node, uint32_t first)
{
    table_return_block(node->table, first / NODE_BLOCK);
}
