#include "link/self.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lock.h"
#include "link/pull.h"

enum { SELF_RING_SIZE = 256 << 10, SELF_COPY_MAX = LINK_SEGMENT };

struct self {
    struct link link;
    struct lock sending;
    bool sent;      /* since begin */
    bool abandoned; /* in a fork's child: the ring is unmapped */
    atomic_bool wants_room;
    struct lock pulling; /* a pull copies under it, so after revoke nobody touches the memory any more */
    struct ring_writer writer;
    struct ring_reader reader;
    const struct doorbell *doorbell; /* with a waker, which refuses nothing */
};

static void self_begin(struct link *link)
{
    struct self *self = (struct self *)link;
    lock_take(&self->sending);
    self->sent = false;
}

static void self_end(struct link *link)
{
    struct self *self = (struct self *)link;
    bool sent = self->sent;
    lock_release(&self->sending);
    if (sent)
        doorbell_ring(self->doorbell);
}

/* wants_room is set before asking: a thread that goes to sleep and doesn't see it yet (self_got_room) has said so
 * before we look at the reader's position for the last time, so either we see the room or the reader sees the sleeper.
 */
static bool self_ready(struct link *link)
{
    struct self *self = (struct self *)link;
    if (self->abandoned || ring_ready(&self->writer))
        return true;
    atomic_store(&self->wants_room, true);
    return ring_ask(&self->writer);
}

static enum frame_sent self_send(struct link *link, const struct frame *frame)
{
    struct self *self = (struct self *)link;
    const struct payload *payload = &frame->payload;
    bool by_reference = payload->by_reference && !payload->pull && payload->length > SELF_COPY_MAX;
    if (self->abandoned)
        return FRAME_SENT;
    enum frame_sent sent = ring_write(&self->writer, frame, by_reference);
    self->sent = self->sent || sent == FRAME_SENT;
    return sent;
}

static bool self_pull(const struct payload *payload, uint32_t offset, const struct iovec *to, uint32_t count)
{
    struct self *self = payload->source;
    lock_take(&self->pulling);
    bool pulled = ring_reference_holds(&self->reader) && pull_local(payload, offset, to, count);
    lock_release(&self->pulling);
    return pulled;
}

static bool self_receive(struct link *link, struct frame *frame)
{
    struct self *self = (struct self *)link;
    if (self->abandoned || !ring_read(&self->reader, frame))
        return false;
    if (self->reader.reference) {
        frame->payload.pull = self_pull;
        frame->payload.source = self;
    }
    return true;
}

static void self_release(struct link *link)
{
    ring_release(&((struct self *)link)->reader);
}

static void self_drained(struct link *link)
{
    struct self *self = (struct self *)link;
    if (ring_publish(&self->reader))
        doorbell_ring(self->doorbell);
}

static void self_revoke(struct link *link)
{
    struct self *self = (struct self *)link;
    if (self->abandoned)
        return;
    lock_take(&self->pulling);
    ring_revoke(&self->writer);
    lock_release(&self->pulling);
}

static bool self_can_reference(struct link *link)
{
    return true;
}

static bool self_consumed(struct link *link)
{
    struct self *self = (struct self *)link;
    return self->abandoned || ring_consumed(&self->writer);
}

static void self_close(struct link *link)
{
    struct self *self = (struct self *)link;
    ring_unmap(&self->writer.ring);
    free(self);
}

static const struct link_operations operations = {
    .begin = self_begin,
    .end = self_end,
    .ready = self_ready,
    .send = self_send,
    .receive = self_receive,
    .release = self_release,
    .drained = self_drained,
    .revoke = self_revoke,
    .can_reference = self_can_reference,
    .consumed = self_consumed,
    .close = self_close,
};

int self_open(struct link **link, const struct doorbell *doorbell)
{
    struct ring ring;
    int memory;
    struct self *self = calloc(1, sizeof *self);
    if (!self)
        return ENOMEM;
    int error = ring_create(&ring, SELF_RING_SIZE, &memory);
    if (error) {
        free(self);
        return error;
    }
    close(memory);
    ring_write_start(&self->writer, &ring);
    ring_read_start(&self->reader, &ring);
    self->link.operations = &operations;
    lock_set_rank(&self->sending, LOCK_SENDING);
    lock_set_rank(&self->pulling, LOCK_INNERMOST);
    self->doorbell = doorbell;
    *link = &self->link;
    return 0;
}

struct ring_reader *self_reader(struct link *link)
{
    return &((struct self *)link)->reader;
}

bool self_got_room(struct link *link)
{
    struct self *self = (struct self *)link;
    return atomic_load_explicit(&self->wants_room, memory_order_relaxed) && ring_got_room(&self->writer) &&
           atomic_exchange(&self->wants_room, false);
}

void self_abandon(struct link *link)
{
    struct self *self = (struct self *)link;
    atomic_store(&self->sending.taken, 0);
    atomic_store(&self->pulling.taken, 0);
    atomic_store(&self->wants_room, false);
    self->abandoned = true;
    ring_unmap(&self->writer.ring);
    self->reader.ring = (struct ring){0};
}
