#include "runtime/qpns.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/likely.h"
#include "base/random.h"
#include "events/refusal.h"

enum { BLOCKS = NODE_NUMBERS / NODE_BLOCK };

/* A block of numbers that belongs to this process. */
struct number_block {
    uint32_t first;
    unsigned used;
    unsigned cursor; /* where the search for a free number begins: at random, then after the last one given */
    TAILQ_ENTRY(number_block) next;
    _Atomic(void *) objects[NODE_BLOCK];
    atomic_bool known[NODE_BLOCK]; /* an object had the number, or qpns_is_strange was called for it */
    bool reserved[NODE_BLOCK];     /* qpns_reserve */
};

typedef _Atomic(struct number_block *) block_slot;

struct qpn_table {
    TAILQ_HEAD(, number_block) free, full; /* blocks with and without a free number, the latest to come there last */
    block_slot *_Atomic blocks;            /* BLOCKS slots, made with the first block; they stay until the end */
    uint32_t below;                        /* all numbers are */
    bool closed;                           /* qpns_close */
};

struct qpn_table *qpns_create(uint32_t below)
{
    struct qpn_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    TAILQ_INIT(&table->free);
    TAILQ_INIT(&table->full);
    table->below = below;
    return table;
}

void qpns_destroy(struct qpn_table *table)
{
    block_slot *blocks = table ? atomic_load_explicit(&table->blocks, memory_order_relaxed) : NULL;
    for (uint32_t i = 0; blocks && i < BLOCKS; i++)
        free(atomic_load_explicit(&blocks[i], memory_order_relaxed));
    free(blocks);
    free(table);
}

/* Made at the first need: a process without XRC needs one of its two tables. The slots are half a megabyte of zero
 * pages until they are touched, and all of it is there at once where a program locks its memory (mlockall). */
static block_slot *find_blocks(struct qpn_table *table)
{
    block_slot *blocks = atomic_load_explicit(&table->blocks, memory_order_relaxed);
    if (!blocks) {
        blocks = calloc(BLOCKS, sizeof *blocks);
        atomic_store_explicit(&table->blocks, blocks, memory_order_release);
    }
    return blocks;
}

static int claim(struct node *node, struct qpn_table *table)
{
    block_slot *blocks = find_blocks(table);
    struct number_block *block = blocks ? calloc(1, sizeof *block) : NULL;
    if (!block)
        return ENOMEM;
    int error = node ? node_claim_numbers(node, table->below, &block->first) : ENODEV;
    if (error) {
        free(block);
        return error;
    }
    block->cursor = random_draw("queue pair number", 0) % NODE_BLOCK;
    TAILQ_INSERT_TAIL(&table->free, block, next);
    atomic_store(&blocks[block->first / NODE_BLOCK], block);
    return 0;
}

void qpns_close(struct qpn_table *table)
{
    table->closed = true;
}

/* Takes a free number of the first block that has one. */
static int take_number(struct node *node, struct qpn_table *table, struct number_block **of, uint32_t *number)
{
    if (table->closed)
        return refuse(ENODEV, REASON_FORKED, "a queue pair, work queue or XRC shared receive queue");
    int error = TAILQ_EMPTY(&table->free) ? claim(node, table) : 0;
    if (error)
        return error;
    struct number_block *block = TAILQ_FIRST(&table->free);
    while (atomic_load(&block->objects[block->cursor % NODE_BLOCK]) || block->reserved[block->cursor % NODE_BLOCK])
        block->cursor++;
    *of = block;
    *number = block->first + block->cursor++ % NODE_BLOCK;
    if (++block->used == NODE_BLOCK) {
        TAILQ_REMOVE(&table->free, block, next);
        TAILQ_INSERT_TAIL(&table->full, block, next);
    }
    return 0;
}

int qpns_enter(struct node *node, struct qpn_table *table, void *object, uint32_t *number)
{
    struct number_block *block;
    int error = take_number(node, table, &block, number);
    if (error)
        return error;
    atomic_store(&block->known[*number % NODE_BLOCK], true);
    atomic_store(&block->objects[*number % NODE_BLOCK], object);
    return 0;
}

int qpns_reserve(struct node *node, struct qpn_table *table, uint32_t *number)
{
    struct number_block *block;
    int error = take_number(node, table, &block, number);
    if (!error)
        block->reserved[*number % NODE_BLOCK] = true;
    return error;
}

static void give_back(struct qpn_table *table, struct number_block *block)
{
    if (block->used-- == NODE_BLOCK) {
        TAILQ_REMOVE(&table->full, block, next);
        TAILQ_INSERT_TAIL(&table->free, block, next);
    }
}

bool qpns_unreserve(struct qpn_table *table, uint32_t number)
{
    block_slot *blocks = atomic_load(&table->blocks);
    struct number_block *block = blocks ? atomic_load(&blocks[(number & 0xffffff) / NODE_BLOCK]) : NULL;
    if (!block || number > 0xffffff || !block->reserved[number % NODE_BLOCK])
        return false;
    block->reserved[number % NODE_BLOCK] = false;
    give_back(table, block);
    return true;
}

void qpns_remove(struct qpn_table *table, uint32_t number)
{
    struct number_block *block = atomic_load(&atomic_load(&table->blocks)[number / NODE_BLOCK]);
    atomic_store(&block->objects[number % NODE_BLOCK], NULL);
    give_back(table, block);
}

void *qpns_find(const struct qpn_table *table, uint32_t number)
{
    block_slot *blocks = atomic_load_explicit(&table->blocks, memory_order_acquire);
    if (unlikely(!blocks))
        return NULL;
    struct number_block *block = atomic_load_explicit(&blocks[(number & 0xffffff) / NODE_BLOCK], memory_order_acquire);
    return block ? atomic_load_explicit(&block->objects[number % NODE_BLOCK], memory_order_acquire) : NULL;
}

bool qpns_is_strange(struct qpn_table *table, uint32_t number)
{
    block_slot *blocks = atomic_load_explicit(&table->blocks, memory_order_acquire);
    struct number_block *block = blocks ? atomic_load(&blocks[(number & 0xffffff) / NODE_BLOCK]) : NULL;
    return block && !atomic_exchange(&block->known[number % NODE_BLOCK], true);
}

static void visit_block(struct number_block *block, void (*visit)(void *, void *), void *context)
{
    for (unsigned i = 0; i < NODE_BLOCK; i++) {
        void *object = atomic_load(&block->objects[i]);
        if (object)
            visit(object, context);
    }
}

void qpns_each(const struct qpn_table *table, void (*visit)(void *, void *), void *context)
{
    block_slot *blocks = atomic_load_explicit(&table->blocks, memory_order_acquire);
    for (uint32_t i = 0; blocks && i < BLOCKS; i++) {
        struct number_block *block = atomic_load_explicit(&blocks[i], memory_order_acquire);
        if (block)
            visit_block(block, visit, context);
    }
}
