#include "ipc/ends.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/read_clock.h"
#include "ipc/state.h"

enum { WORDS = TABLE_END_WORDS - 1, SUM = WORDS, MTU_LEAST = 1, MTU_MOST = 5, NUMBER_MOST = 0xffffff };

/* An end as the table has it. */
union image {
    struct end end;
    uint64_t words[WORDS];
};
_Static_assert(sizeof(struct end) <= sizeof(uint64_t[WORDS]), "an end has a place in the table");
_Static_assert(sizeof(struct end) == offsetof(struct end, zeros) + sizeof((struct end){0}.zeros), "no padding");

/* The sum of zeros, which a truncated table has, is not 0. */
static uint64_t sum_of(const union image *image)
{
    uint64_t sum = 1;
    for (unsigned i = 0; i < WORDS; i++) {
        sum = (sum ^ image->words[i]) * 0x9e3779b97f4a7c15;
        sum ^= sum >> 29;
    }
    return sum;
}

static struct table_end *place_of(const struct node *node, uint32_t number)
{
    return &node->table->file->ends[number % TABLE_ENDS];
}

static bool is_possible(const struct end *end)
{
    return end->number <= NUMBER_MOST && end->mtu >= MTU_LEAST && end->mtu <= MTU_MOST &&
           (!end->family || end->family == 4 || end->family == 6);
}

/* The fence is between this write and the look for the other end. */
void ends_enter(struct node *node, const struct end *end)
{
    struct table_end *place = place_of(node, end->number);
    union image image;
    memset(&image, 0, sizeof image);
    image.end = *end;
    image.end.reached = read_clock(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < WORDS; i++)
        atomic_store_explicit(&place->words[i], image.words[i], memory_order_relaxed);
    atomic_store_explicit(&place->words[SUM], sum_of(&image), memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

bool ends_find(const struct node *node, uint32_t number, struct end *end)
{
    const struct table_end *place = place_of(node, number);
    uint64_t sum = atomic_load_explicit(&place->words[SUM], memory_order_acquire);
    union image image;
    for (unsigned i = 0; i < WORDS; i++)
        image.words[i] = atomic_load_explicit(&place->words[i], memory_order_relaxed);
    if (sum != sum_of(&image) || image.end.number != number || !is_possible(&image.end))
        return false;
    *end = image.end;
    return true;
}

void ends_remove(struct node *node, uint32_t number)
{
    struct end end;
    if (ends_find(node, number, &end))
        atomic_store_explicit(&place_of(node, number)->words[SUM], 0, memory_order_relaxed);
}

bool ends_meet(const struct node *node, const struct end *own, nanos since, struct end *other)
{
    return own->peer != own->number && ends_find(node, own->peer, other) && other->peer == own->number &&
           other->reached >= since;
}
