#include "verbs/queue/cq_ring.h"

uint32_t cq_ring_capacity(uint32_t entries)
{
    uint32_t capacity = 1;
    while (capacity < entries)
        capacity *= 2;
    return capacity;
}

void cq_ring_drop_oldest(struct cq_ring *ring)
{
    uint32_t head = cq_ring_head(ring);
    cq_retire(cq_ring_at(ring, head));
    cq_ring_taken(ring, head + 1);
}

bool cq_ring_holds(const struct cq_ring *ring, uint32_t qp_number)
{
    uint32_t tail = cq_ring_tail(ring), at = cq_ring_head(ring);
    while (at != tail && cq_ring_at(ring, at)->qp_number != qp_number)
        at++;
    return at != tail;
}

unsigned cq_ring_users(const struct cq_ring *ring, uint32_t *numbers, unsigned most)
{
    unsigned count = 0;
    uint32_t tail = cq_ring_tail(ring);
    for (uint32_t at = cq_ring_head(ring); at != tail && count < most; at++) {
        unsigned i = 0;
        numbers[count] = cq_ring_at(ring, at)->qp_number;
        while (numbers[i] != numbers[count])
            i++;
        count += i == count;
    }
    return count;
}

void cq_ring_withdraw(struct cq_ring *ring, uint32_t qp_number)
{
    uint32_t tail = cq_ring_tail(ring), kept = cq_ring_head(ring);
    for (uint32_t at = kept; at != tail; at++) {
        const struct completion *entry = cq_ring_at(ring, at);
        if (entry->qp_number == qp_number && !entry->lasting) {
            cq_retire_shared(entry);
            continue;
        }
        if (at != kept)
            *cq_ring_at(ring, kept) = *entry;
        kept++;
    }
    atomic_store(&ring->tail, kept);
}

void cq_ring_forget(struct cq_ring *ring, const _Atomic uint32_t *retired)
{
    uint32_t tail = cq_ring_tail(ring);
    for (uint32_t at = cq_ring_head(ring); at != tail; at++)
        if (cq_ring_at(ring, at)->retired == retired)
            cq_ring_at(ring, at)->retired = NULL, cq_ring_at(ring, at)->retires = 0;
}

void cq_ring_move(struct cq_ring *ring, struct completion *entries, uint32_t capacity)
{
    uint32_t count = 0, tail = cq_ring_tail(ring);
    for (uint32_t at = cq_ring_head(ring); at != tail; at++)
        entries[count++] = *cq_ring_at(ring, at);
    atomic_store(&ring->head, 0);
    atomic_store(&ring->tail, count);
    ring->entries = entries;
    ring->capacity = capacity;
}
