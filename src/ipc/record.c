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

/* --- which records are heard, and which of those are polled: the first ones in node->heard */

static void put_at(struct record *record, unsigned place)
{
    record->node->heard.at[place] = record;
    record->place = place;
}

static void swap_with(struct record *record, unsigned place)
{
    unsigned from = record->place;
    put_at(record->node->heard.at[place], from);
    put_at(record, place);
}

static bool is_polled(const struct record *record)
{
    return record->place < record->node->heard.polled;
}

/* Makes each round look at the ring from now on. Under progress and node->lock. */
static void poll_again(struct record *record)
{
    lock_assert_held(&record->node->lock);
    if (is_polled(record))
        return;
    swap_with(record, record->node->heard.polled++);
}

/* Makes rounds leave the ring alone. Under progress and node->lock. */
static void leave_alone(struct record *record)
{
    lock_assert_held(&record->node->lock);
    if (is_polled(record))
        swap_with(record, --record->node->heard.polled);
}

/* Clears the bit that makes senders look for questions when no question is left; not when this process has left, and
 * another may have its slot. Under node->lock. */
static void note_asked(struct node *node)
{
    if (node->heard.polled == node->heard.count && !atomic_load(&node->left))
        attention_want_no_marks(&node->entry->attention);
}

static void hear(struct record *record)
{
    struct node *node = record->node;
    record->reader = shm_reader(record->peer.link);
    record->silence_most = NODE_LOOK_AROUND;
    put_at(record, node->heard.count++);
    swap_with(record, node->heard.polled++);
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
    record->peer.link = shm_open_link(&node->host, &doorbell, &node->table->file->slots[slot].inbox);
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
    int error = shm_open_loopback(&record->peer.link, &node->host, &node->bell, &node->entry->inbox);
    if (error) {
        free(record);
        return error;
    }
    record_add(node, record);
    node->by_slot[node->slot] = record;
    hear(record);
    return 0;
}

/* Makes the next round call records_collect. */
static void note_litter(struct node *node)
{
    atomic_store(&node->litter, true);
    marks_raise(&node->entry->attention.marks);
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
    note_litter(node);
}

bool record_may_hear(const struct record *record)
{
    lock_assert_held(&record->node->lock);
    const struct node *node = record->node;
    return node->heard.count < sizeof node->heard.at / sizeof *node->heard.at;
}

void record_hear(struct record *record)
{
    lock_assert_held(&record->node->lock);
    hear(record);
}

static void stop_hearing(struct record *record)
{
    lock_assert_held(&record->node->lock);
    struct node *node = record->node;
    if (!record->reader)
        return;
    leave_alone(record);
    put_at(node->heard.at[--node->heard.count], record->place);
    note_asked(node);
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
                note_litter(node);
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

/* Takes the question back: the writer need not mark what it writes. Under progress and node->lock. */
static void take_back(struct record *record)
{
    shm_want_mark(record->peer.link, false);
    poll_again(record);
    note_asked(record->node);
}

/* A mark may have come soon after the question, so the next question waits longer. */
static void attend_mark(unsigned slot, void *context)
{
    struct node *node = context;
    struct record *record = slot < TABLE_SLOTS ? node->by_slot[slot] : NULL;
    if (!record || !record->reader || is_polled(record))
        return;
    record->silence_most = record->silence_most < NODE_SILENCE_MOST ? 2 * record->silence_most : NODE_SILENCE_MOST;
    take_back(record);
}

/* Polls again rings with frames, and rings of peers that are gone, which mark nothing any more. The ring that take_back
 * swaps to place i was looked at before. Under progress and node->lock. */
static void look_at_the_others(struct node *node)
{
    lock_assert_held(&node->lock);
    for (unsigned i = node->heard.polled; i < node->heard.count; i++)
        if (node->heard.at[i]->peer.gone || ring_has_frame(node->heard.at[i]->reader))
            take_back(node->heard.at[i]);
}

void records_look_at_all(struct node *node)
{
    atomic_store(&node->heard.all, true);
    marks_raise(&node->entry->attention.marks);
}

void records_attend(struct node *node)
{
    lock_take(&node->lock);
    marks_take(&node->entry->attention.marks, attend_mark, node);
    if (atomic_exchange(&node->heard.all, false) || atomic_load(&node->litter))
        look_at_the_others(node);
    lock_release(&node->lock);
    if (atomic_load(&node->litter))
        records_collect(node);
}

/* Returns true if the peer has been silent for long enough. This process's own ring is always polled, and so are rings
 * of peers that are gone. Under progress and node->lock. */
static bool is_silent(struct record *record, nanos now)
{
    uint64_t head = atomic_load_explicit(&record->reader->head, memory_order_relaxed);
    bool other = record->peer.slot != record->node->slot && !record->peer.gone;
    if (head != record->head || ring_has_frame(record->reader))
        record->moved_at = now;
    record->head = head;
    return other && nanos_since(record->moved_at, now) >= record->silence_most;
}

/* Asks the peers that were just left alone, up to `end`, for marks. link/marks.h argues the order. Under progress and
 * node->lock. */
static void ask_for_marks(struct node *node, unsigned end)
{
    unsigned first = node->heard.polled;
    for (unsigned i = first; i < end; i++)
        shm_want_mark(node->heard.at[i]->peer.link, true);
    attention_want_marks(&node->entry->attention);
    for (unsigned i = first; i < end; i++)
        if (ring_has_frame(node->heard.at[i]->reader))
            take_back(node->heard.at[i]);
}

/* Leaves silent peers alone. The fence in all senders takes microseconds, so a few are not worth it. The loop runs
 * backwards: leave_alone puts a ring in the place that was judged before. Under progress and node->lock. */
static void leave_the_silent_alone(struct node *node, nanos now)
{
    enum { PART = 8 };
    unsigned before = node->heard.polled, silent = 0;
    for (unsigned i = before; i--;)
        silent += is_silent(node->heard.at[i], now);
    if (silent <= NODE_SILENT_FEW || silent < before / PART)
        return;
    for (unsigned i = before; i--;)
        if (is_silent(node->heard.at[i], now))
            leave_alone(node->heard.at[i]);
    ask_for_marks(node, before);
}

void records_ask_the_silent(struct node *node, nanos now)
{
    lock_take(&node->lock);
    if (!atomic_load(&node->left))
        leave_the_silent_alone(node, now);
    lock_release(&node->lock);
}

void node_look_around(struct node *node, nanos now)
{
    lock_take(&node->lock);
    look_at_the_others(node);
    lock_release(&node->lock);
    records_ask_the_silent(node, now);
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

void record_close_writable(struct record *record)
{
    descriptor_close(&record->writable);
}

void record_release(struct record *record)
{
    if (atomic_fetch_sub_explicit(&record->references, 1, memory_order_acq_rel) != 1)
        return;
    int before = uncancelled_begin(); /* descriptors are closed, and the caller may hold any lock */
    record->peer.link->operations->close(record->peer.link);
    descriptor_close(&record->writable);
    descriptor_close(&record->end);
    free(record);
    uncancelled_end(before);
}
