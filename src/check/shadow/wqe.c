#include "check/shadow/wqe.h"

#include <stdlib.h>
#include <string.h>

#include "check/outside/pages.h"
#include "check/outside/sanitizers.h"

enum { FIRST_CAPACITY = 16 };

static bool grow(struct wqe_queue *queue)
{
    struct wqe_queue larger = {.capacity = queue->capacity ? 2 * queue->capacity : FIRST_CAPACITY};
    larger.ring = malloc(larger.capacity * sizeof *larger.ring);
    if (!larger.ring)
        return false;
    for (; larger.count < queue->count; larger.count++)
        wqe_copy(&larger.ring[larger.count], wqe_at(queue, larger.count));
    larger.has_alike = queue->has_alike;
    free(queue->ring);
    *queue = larger;
    return true;
}

struct wqe *wqe_room(struct wqe_queue *queue)
{
    bool room = queue->count < queue->capacity || grow(queue);
    return room ? wqe_at(queue, queue->count) : NULL;
}

void wqe_add(struct wqe_queue *queue)
{
    queue->count++;
}

void wqe_remove(struct wqe_queue *queue, uint32_t at)
{
    for (; at > 0; at--)
        wqe_copy(wqe_at(queue, at), wqe_at(queue, at - 1));
    queue->head++;
    queue->count--;
}

void wqe_show(struct wqe *wqe)
{
    for (unsigned at = 0; wqe->flags & WQE_HIDDEN && at < wqe->count; at++)
        sanitizers_show((const void *)(uintptr_t)wqe->sges[at].addr, wqe->sges[at].length);
    wqe->flags &= (uint16_t)~WQE_HIDDEN;
}

static void open_pages(struct wqe *wqe)
{
    wqe_show(wqe);
    if (wqe->flags & WQE_PROTECTED)
        pages_release(wqe->begun);
}

void wqe_doubt(struct wqe *wqe)
{
    open_pages(wqe);
    wqe->flags = (uint16_t)((wqe->flags | WQE_UNSURE) & ~(WQE_HASHED | WQE_PROTECTED));
}

void wqe_drop(struct wqe_queue *queue, uint32_t at)
{
    open_pages(wqe_at(queue, at));
    wqe_remove(queue, at);
}

void wqe_clear(struct wqe_queue *queue)
{
    for (uint32_t at = 0; at < queue->count; at++)
        open_pages(wqe_at(queue, at));
    free(queue->ring);
    *queue = (struct wqe_queue){0};
}

void wqe_set_list(struct wqe *wqe, const struct ibv_sge *list, int64_t count, uint32_t most)
{
    wqe->count = 0;
    wqe->length = 0;
    if (!list || count <= 0 || count > most)
        return;
    wqe->count = (uint8_t)(count < WQE_SGES ? count : WQE_SGES);
    memcpy(wqe->sges, list, wqe->count * sizeof *list);
    for (int64_t at = 0; at < count; at++)
        wqe->length += list[at].length;
}

const char *wqe_name(const struct wqe *wqe)
{
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "RDMA WRITE",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA WRITE with immediate",
        [IBV_WR_SEND] = "SEND",
        [IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
        [IBV_WR_RDMA_READ] = "RDMA READ",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
        [IBV_WR_LOCAL_INV] = "local invalidate",
        [IBV_WR_BIND_MW] = "bind",
        [IBV_WR_SEND_WITH_INV] = "SEND with invalidate",
        [IBV_WR_TSO] = "segmented SEND",
    };
    if (wqe->flags & WQE_RECEIVE)
        return "receive";
    const char *name = wqe->opcode < sizeof names / sizeof *names ? names[wqe->opcode] : NULL;
    return name ? name : "work request";
}
