#include "mlx5/queues/receive_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/container.h"
#include "mlx5/queues/form.h"
#include "mlx5/queues/obey.h"
#include "wire/bytes.h"

enum { LINK = 16, LINK_AT = 2, ELEMENTS_MOST = 32 };

struct receive_ring {
    struct receive_source source;
    struct receive_ring_form form;
    uint16_t taken; /* how many were entered */
    uint16_t next;  /* linked: the index of the next one */
};

static struct receive_ring *ring_of(struct receive_source *source)
{
    return container_of(source, struct receive_ring, source);
}

/* Enters the next receive. An SRQ's link is read now, as programs change it once they know that the receive ended. */
static bool enter_next(struct receive_queue *queue, struct receive_ring *ring)
{
    const struct receive_ring_form *form = &ring->form;
    struct ibv_sge sge[ELEMENTS_MOST];
    uint32_t index = (form->linked ? ring->next : ring->taken) & (form->count - 1);
    const uint8_t *begin = form->memory + (size_t)index * form->stride, *end = begin + form->stride;
    struct ibv_recv_wr wr = {.wr_id = form->linked ? index : ring->taken, .sg_list = sge};
    int most = queue->sge_max < ELEMENTS_MOST ? (int)queue->sge_max : ELEMENTS_MOST;
    wr.num_sge = form_read_elements(begin + (form->linked ? LINK : 0), end, sge, most);
    obey_receive(queue, &wr, sge);
    if (!receive_queue_enter(queue, &wr))
        return false;
    ring->next = bytes_get16(begin + LINK_AT);
    ring->taken++;
    return true;
}

static void pull(struct receive_queue *queue)
{
    struct receive_ring *ring = ring_of(queue->source);
    uint16_t posted = (uint16_t)__builtin_bswap32(atomic_load_explicit(ring->form.record, memory_order_acquire));
    while (ring->taken != posted && enter_next(queue, ring))
        ;
}

/* The record, too: a report may pull before the queue pair's own part forgets its records (mlx5/part.c). */
static void clear_ring(struct receive_source *source)
{
    struct receive_ring *ring = ring_of(source);
    atomic_store(ring->form.record, 0);
    ring->taken = ring->next = 0;
}

static void release_ring(struct receive_source *source)
{
    struct receive_ring *ring = ring_of(source);
    if (ring->form.owned)
        munmap(ring->form.memory, ring->form.size);
    free(ring->form.tags);
    free(ring);
}

int receive_ring_feed(struct receive_queue *queue, const struct receive_ring_form *form)
{
    struct receive_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return ENOMEM;
    ring->source = (struct receive_source){pull, clear_ring, release_ring};
    ring->form = *form;
    int error = queue->capacity < form->count ? receive_queue_resize(queue, form->count) : 0;
    if (!error && !receive_queue_feed(queue, &ring->source))
        error = EBUSY;
    if (error)
        free(ring);
    return error;
}

const struct receive_ring_form *receive_ring_of(struct receive_queue *queue)
{
    struct receive_source *source = queue->source;
    return source && source->pull == pull ? &ring_of(source)->form : NULL;
}
