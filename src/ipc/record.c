#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "ipc/state.h"

static void fill_doorbell(struct node *node, unsigned slot, uint32_t generation, struct doorbell *doorbell)
{
    *doorbell = node->bell;
    doorbell->waker = -1;
    doorbell->attention = &node->table->file->slots[slot].attention;
    doorbell->message.to_generation = generation;
    table_socket_name(node->directory, slot, doorbell->name);
}

static struct record *record_make(struct node *node, unsigned slot, uint32_t generation, pid_t pid)
{
    struct record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->peer.slot = slot;
    record->peer.pid = pid;
    record->node = node;
    record->generation = generation;
    record->writable = record->end = -1;
    atomic_init(&record->references, 1);
    return record;
}

static void record_add(struct node *node, struct record *record)
{
    record->next = node->records;
    node->records = record;
}

static struct record *make_remote(struct node *node, unsigned slot, uint32_t generation, pid_t pid)
{
    struct doorbell doorbell;
    struct record *record = record_make(node, slot, generation, pid);
    if (!record)
        return NULL;
    fill_doorbell(node, slot, generation, &doorbell);
    record->peer.link = shm_open_link(&node->host, &doorbell, &node->table->file->slots[slot].letters);
    if (!record->peer.link) {
        free(record);
        return NULL;
    }
    record_add(node, record);
    return record;
}

struct record *record_get(struct node *node, unsigned slot, uint32_t generation, pid_t pid)
{
    lock_assert_held(&node->lock);
    struct record *record = node->by_slot[slot];
    if (record && record->generation == generation)
        return record;
    if (record)
        record_depart(record); /* the slot has a new owner */
    record = make_remote(node, slot, generation, pid);
    node->by_slot[slot] = record;
    return record;
}

struct record *record_orphan(struct node *node, unsigned slot, uint32_t generation, pid_t pid)
{
    lock_assert_held(&node->lock);
    struct record *record = make_remote(node, slot, generation, pid);
    if (record)
        record_depart(record);
    return record;
}

int record_open_loopback(struct node *node)
{
    struct record *record = record_make(node, node->slot, node->generation, getpid());
    if (!record)
        return ENOMEM;
    int error = shm_open_loopback(&record->peer.link, &node->host, &node->bell, &node->entry->letters);
    if (error) {
        free(record);
        return error;
    }
    record->reader = shm_reader(record->peer.link);
    record_add(node, record);
    node->by_slot[node->slot] = record;
    node->heard[node->heard_count++] = record;
    return 0;
}

void record_depart(struct record *record)
{
    lock_assert_held(&record->node->lock);
    struct node *node = record->node;
    if (atomic_exchange(&record->peer.gone, true))
        return;
    if (node->by_slot[record->peer.slot] == record)
        node->by_slot[record->peer.slot] = NULL;
    shm_sever(record->peer.link);
    atomic_fetch_add(&node->departures, 1);
    atomic_store(&node->litter, true);
}

bool record_may_hear(const struct record *record)
{
    lock_assert_held(&record->node->lock);
    const struct node *node = record->node;
    return node->heard_count < sizeof node->heard / sizeof *node->heard;
}

void record_hear(struct record *record)
{
    lock_assert_held(&record->node->lock);
    struct node *node = record->node;
    record->reader = shm_reader(record->peer.link);
    node->heard[node->heard_count++] = record;
}

static void stop_hearing(struct record *record)
{
    lock_assert_held(&record->node->lock);
    struct node *node = record->node;
    unsigned i = 0;
    if (!record->reader)
        return;
    while (node->heard[i] != record)
        i++;
    node->heard[i] = node->heard[--node->heard_count];
    one_sided_add(&node->one_sided, record);
    record->reader = NULL;
    shm_detach(record->peer.link);
}

static bool is_drained(const struct record *record)
{
    const struct ring_reader *reader = record->reader;
    return !reader || atomic_load(&reader->broken) || atomic_load(&reader->ended) || !ring_waiting(reader);
}

void records_collect(struct node *node)
{
    int before = uncancelled_begin();
    lock_take(&node->lock);
    atomic_store(&node->litter, false);
    for (struct record **at = &node->records, *record; (record = *at);) {
        if (!record->peer.gone || !is_drained(record)) {
            if (record->peer.gone)
                atomic_store(&node->litter, true);
            at = &record->next;
            continue;
        }
        stop_hearing(record);
        *at = record->next;
        record_release(record);
    }
    lock_release(&node->lock);
    uncancelled_end(before);
}

void records_check(struct node *node)
{
    lock_take(&node->lock);
    for (struct record *record = node->records; record; record = record->next)
        if (!record->peer.gone && !table_is(node->table, record->peer.slot, record->generation))
            record_depart(record);
    lock_release(&node->lock);
}

void records_fence(struct node *node)
{
    lock_assert_held(&node->lock);
    if (node->bell.prepared)
        attention_fence(&node->entry->attention);
}

static void close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

void record_close_writable(struct record *record)
{
    close_descriptor(&record->writable);
}

void record_release(struct record *record)
{
    if (atomic_fetch_sub_explicit(&record->references, 1, memory_order_acq_rel) != 1)
        return;
    int before = uncancelled_begin(); /* descriptors are closed, and the caller may hold any lock */
    record->peer.link->operations->close(record->peer.link);
    close_descriptor(&record->writable);
    close_descriptor(&record->end);
    free(record);
    uncancelled_end(before);
}
