/* Finding the processes that we send to, and patience with them. */

#include "base/uncancelled.h"
#include "ipc/peer_threads.h"
#include "ipc/state.h"

static struct peer *hold(struct record *record)
{
    if (!record)
        return NULL;
    atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
    return &record->peer;
}

/* The record of a living owner. A cached peer is returned without asking whether its process is alive; call node_alive
 * for that. Under node->lock. */
static struct record *connect_to(struct node *node, uint32_t owner)
{
    lock_assert_held(&node->lock);
    unsigned slot = table_owner_slot(owner);
    uint32_t generation = table_owner_generation(owner);
    struct record *record = node->by_slot[slot];
    if (record && record->generation == generation)
        return record;
    if (!table_is(node->table, slot, generation))
        return NULL;
    int before = uncancelled_begin();
    record = record_get(node, slot, generation, table_pid(node->table, slot));
    uncancelled_end(before);
    return record;
}

struct peer *node_find_owner(struct node *node, uint32_t owner)
{
    if (!owner || atomic_load_explicit(&node->left, memory_order_relaxed))
        return NULL;
    lock_take(&node->lock);
    struct peer *peer = hold(connect_to(node, owner));
    if (peer)
        records_fence(node);
    lock_release(&node->lock);
    return peer;
}

uint32_t node_owner(const struct node *node, uint32_t number)
{
    uint32_t block = number / NODE_BLOCK;
    if (block >= TABLE_BLOCKS || atomic_load_explicit(&node->left, memory_order_relaxed))
        return 0;
    return atomic_load_explicit(&node->table->file->blocks[block], memory_order_acquire);
}

struct peer *node_find(struct node *node, uint32_t number)
{
    return node_find_owner(node, node_owner(node, number));
}

bool node_is_claimed(const struct node *node, uint32_t number)
{
    return node_owner(node, number) != 0;
}

bool node_has_lost_peers(struct node *node)
{
    bool lost = node_departures(node);
    lock_take(&node->lock);
    for (const struct record *record = node->records; record && !lost; record = record->next)
        lost = !table_is(node->table, record->peer.slot, record->generation);
    lock_release(&node->lock);
    return lost;
}

void node_hold(struct peer *peer)
{
    hold((struct record *)peer);
}

void node_put(struct node *node, struct peer *peer)
{
    record_release((struct record *)peer);
}

bool node_alive(struct node *node, struct peer *peer)
{
    struct record *record = (struct record *)peer;
    if (peer->gone || atomic_load(&node->left))
        return false;
    if (table_is(node->table, peer->slot, record->generation))
        return true;
    lock_take(&node->lock);
    record_depart(record);
    lock_release(&node->lock);
    return false;
}

static const nanos ask_each = NANOS_SECOND; /* between questions whether a peer is stopped; < NODE_STALLED_AFTER */

static enum node_presence insist(struct record *record, nanos now)
{
    struct link *link = record->peer.link;
    nanos stalled = shm_insist(link, now);
    if (stalled < ask_each)
        return NODE_SLOW;
    if (nanos_since(record->asked_at, now) >= ask_each) {
        record->asked_at = now;
        record->stopped = peer_threads_is_stopped(record->peer.pid);
    }
    if (record->stopped)
        shm_excuse(link, now);
    if (record->stopped || stalled < NODE_STALLED_AFTER)
        return NODE_SLOW;
    shm_give_up(link);
    return NODE_STALLED;
}

enum node_presence node_insist(struct node *node, struct peer *peer, nanos now)
{
    if (!node_alive(node, peer))
        return NODE_GONE;
    return peer->slot == node->slot ? NODE_SLOW : insist((struct record *)peer, now);
}

void node_check_peers(struct node *node, nanos now)
{
    records_check(node);
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        if (record->peer.slot != node->slot && !record->peer.gone &&
            !record->peer.link->operations->consumed(record->peer.link))
            insist(record, now);
    lock_release(&node->lock);
}

unsigned node_departures(const struct node *node)
{
    return atomic_load_explicit(&node->departures, memory_order_relaxed);
}

int node_join(struct node *node, const uint8_t group[16])
{
    return table_join_group(node->table, group);
}

int node_leave(struct node *node, const uint8_t group[16])
{
    return table_leave_group(node->table, group);
}

void node_members(struct node *node, const uint8_t group[16], void (*visit)(struct peer *, void *), void *context)
{
    uint32_t owners[TABLE_SLOTS];
    unsigned count = table_members(node->table, group, owners);
    for (unsigned i = 0; i < count; i++) {
        struct peer *peer = node_find_owner(node, owners[i]);
        if (!peer)
            continue;
        visit(peer, context);
        node_put(node, peer);
    }
}
