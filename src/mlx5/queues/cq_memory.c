#include "mlx5/queues/cq_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/container.h"
#include "base/mapping.h"
#include "mlx5/queues/entry.h"
#include "mlx5/queues/registers.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/cq_push.h"

enum { COUNT_BITS = 0xffffff, LINE = 64 };

#define NEVER_ARMED (1u << 31) /* no arming stores it */

static struct cq_memory *memory_of(struct cq *cq)
{
    return container_of(cq->part, struct cq_memory, part);
}

static uint32_t read_word(const _Atomic uint32_t *word)
{
    return __builtin_bswap32(atomic_load_explicit(word, memory_order_acquire));
}

/* Returns true if the program has not consumed the entry that the next one would overwrite. */
static bool is_full(const struct cq_memory *memory)
{
    uint32_t consumed = read_word(&memory->record[RECORD_CONSUMED]);
    return !(memory->cq->create_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) &&
           ((memory->produced - consumed) & COUNT_BITS) >= memory->count;
}

/* The owner's bit says in which round through the memory the entry was written. It is stored last. */
static void put_entry(struct cq_memory *memory, const struct completion *entry)
{
    uint32_t at = memory->produced & (memory->count - 1);
    uint8_t *to = memory->entries + (size_t)at * memory->size + (memory->size - ENTRY_BYTES);
    uint8_t owner = (uint8_t)((memory->produced / memory->count) & 1);
    uint8_t last = entry_write(to, entry, memory->cq->vendor[CQ_VENDOR_TAGS]);
    atomic_store_explicit((_Atomic uint8_t *)(to + ENTRY_OWNER_AT), last | owner, memory_order_release);
    memory->produced++;
}

static void put_entries(struct cq *cq, bool notable)
{
    struct cq_memory *memory = memory_of(cq);
    lock_assert_held(&cq->lock);
    uint32_t head = cq_ring_head(&cq->ring), tail = cq_ring_tail(&cq->ring);
    for (; head != tail; head++) {
        struct completion *entry = cq_ring_at(&cq->ring, head);
        if (is_full(memory))
            cq_overrun(cq);
        else
            put_entry(memory, entry);
        cq_retire(entry);
    }
    cq_ring_taken(&cq->ring, head);
    if (notable)
        memory->notable = memory->produced;
}

static void retire_memory(struct cq *cq)
{
    LIST_REMOVE(memory_of(cq), siblings);
}

static void release_memory(struct cq_part *part)
{
    struct cq_memory *memory = container_of(part, struct cq_memory, part);
    munmap(memory->entries, memory->length);
    free(memory);
}

static bool map_entries(struct cq_memory *memory)
{
    size_t entries = (size_t)memory->count * memory->size;
    memory->length = entries + LINE;
    memory->entries = mapping_make(memory->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory->entries == MAP_FAILED)
        return false;
    memory->record = (_Atomic uint32_t *)(void *)(memory->entries + entries);
    memory->armed = NEVER_ARMED;
    atomic_store(&memory->record[RECORD_ARM], __builtin_bswap32(NEVER_ARMED));
    for (uint32_t i = 0; i < memory->count; i++)
        memory->entries[(size_t)i * memory->size + (memory->size - ENTRY_BYTES) + ENTRY_OWNER_AT] = ENTRY_INVALID;
    return true;
}

/* Entries that are there already move into memory. */
static bool give_part(struct cq *cq, struct cq_memory *memory)
{
    cq_stop(cq);
    bool first = !cq->part;
    if (first) {
        cq->part = &memory->part;
        cq->slow.takes = true;
        cq_judge_push(cq);
        put_entries(cq, false);
    }
    cq_resume(cq);
    return first;
}

/* A power of two above the number that the program has: the adapter's library makes so many, and programs fill them. */
static uint32_t entries_in_memory(const struct cq *cq)
{
    uint32_t count = cq->ring.capacity;
    return count > (uint32_t)cq->ibv.cqe ? count : 2 * count;
}

struct cq_memory *cq_memory_make(struct cq *cq, uint32_t entry_size)
{
    struct cq_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->part = (struct cq_part){put_entries, retire_memory, release_memory};
    memory->cq = cq;
    memory->count = entries_in_memory(cq);
    memory->size = entry_size;
    if (!map_entries(memory)) {
        free(memory);
        return NULL;
    }
    if (give_part(cq, memory))
        return memory;
    release_memory(&memory->part);
    errno = EBUSY;
    return NULL;
}

struct cq_memory *cq_memory_of(struct cq *cq)
{
    return cq->part && cq->part->put == put_entries ? memory_of(cq) : NULL;
}

void cq_memory_describe(const struct cq_memory *memory, struct mlx5dv_cq *to)
{
    struct cq *cq = memory->cq;
    *to = (struct mlx5dv_cq){.buf = memory->entries,
                             .dbrec = (__be32 *)(void *)memory->record,
                             .cqe_cnt = memory->count,
                             .cqe_size = memory->size,
                             .cq_uar = registers_of_completions(cq->ibv.handle),
                             .cqn = cq->ibv.handle & COUNT_BITS};
}

/* The program has armed the queue for the entry that follows those it has consumed. If that is there, the event is
 * raised at once. Of two armings between two looks the first is not seen: in a queue that was ever armed for all
 * entries one for solicited entries may hide one for all, and counts as that. An event too many harms less than one too
 * few. */
static void obey(struct cq_memory *memory, uint32_t word)
{
    enum { SOLICITED = 1u << 24 };
    struct cq *cq = memory->cq;
    uint32_t consumed = word & COUNT_BITS, waiting = (memory->produced - consumed) & COUNT_BITS;
    bool only_notable = word & SOLICITED && !memory->was_for_all;
    bool notable = ((memory->notable - consumed - 1) & COUNT_BITS) < waiting;
    memory->was_for_all |= !(word & SOLICITED);
    cq_event_arm(cq, only_notable ? CQ_ARMED_SOLICITED : CQ_ARMED);
    if (waiting && waiting <= memory->count && (!only_notable || notable))
        cq_event_notify(cq, notable);
}

/* Each arming stores another word than the one before, and than the first word of all. */
bool cq_memory_look(struct cq_memory *memory)
{
    struct cq *cq = memory->cq;
    uint32_t word = read_word(&memory->record[RECORD_ARM]);
    bool armed = cq->channel && word != memory->armed;
    if (!armed)
        return false;
    memory->armed = word;
    lock_take(&cq->lock);
    obey(memory, word);
    lock_release(&cq->lock);
    return true;
}
