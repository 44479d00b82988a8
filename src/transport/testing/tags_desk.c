#include "transport/testing/tags_desk.h"

#include <stdlib.h>
#include <string.h>

int desk_set_up(void **state)
{
    struct desk *desk = calloc(1, sizeof(*desk));
    size_t size = (tags_size(CAPACITY, SGES) + 63) & ~(size_t)63;
    desk->memory = aligned_alloc(64, size);
    memset(desk->memory, 0, size);
    tags_initialize(&desk->tags, desk->memory, CAPACITY, SGES);
    *state = desk;
    return 0;
}

int desk_tear_down(void **state)
{
    struct desk *desk = *state;
    free(desk->memory);
    free(desk);
    return 0;
}

/* -- steps: operations */

enum reason operate(struct desk *desk, struct ibv_ops_wr wr)
{
    enum reason reason = tags_operate(&desk->tags, &wr, &desk->event, &desk->has_event);
    desk->handle = wr.tm.handle;
    return reason;
}

uint32_t add_room(struct desk *desk, uint64_t tag, uint64_t mask, uint64_t id, uint32_t room)
{
    struct ibv_sge sge = {.addr = 0x1000, .length = room, .lkey = 5};
    struct ibv_ops_wr wr = {.wr_id = 1, .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED};
    wr.tm.add.recv_wr_id = id;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = 1;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = mask;
    assert_int_equal(operate(desk, wr), REASON_NONE);
    return desk->handle;
}

uint32_t add(struct desk *desk, uint64_t tag, uint64_t mask, uint64_t id)
{
    return add_room(desk, tag, mask, id, ROOM);
}

/* A SYNC, or a DEL, that reports `count`. */
void synchronise(struct desk *desk, uint32_t count)
{
    struct ibv_ops_wr wr = {.wr_id = 3, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC};
    wr.tm.unexpected_cnt = count;
    assert_int_equal(operate(desk, wr), REASON_NONE);
}

enum ibv_wc_status deletes(struct desk *desk, uint32_t handle, int flags)
{
    struct ibv_ops_wr wr = {.wr_id = 2, .opcode = IBV_WR_TAG_DEL, .flags = flags};
    wr.tm.handle = handle;
    assert_int_equal(operate(desk, wr), REASON_NONE);
    return desk->has_event ? desk->event.status : IBV_WC_SUCCESS;
}

/* -- steps: messages */

struct message eager(uint64_t tag, uint32_t length)
{
    struct message message = {.bytes = {IBV_TMH_EAGER}, .length = TAGS_TMH + length, .operation = OPERATION_SEND_ONLY};
    bytes_put32(message.bytes + 4, 0xabcd);
    bytes_put64(message.bytes + 8, tag);
    return message;
}

struct message rendezvous(uint64_t tag, uint32_t length)
{
    struct message message = eager(tag, 16);
    message.bytes[0] = IBV_TMH_RNDV;
    bytes_put64(message.bytes + 16, 0x123456789a);
    bytes_put32(message.bytes + 24, 0x77);
    bytes_put32(message.bytes + 28, length);
    return message;
}

enum tags_kind arrives(struct desk *desk, struct tags_port *port, const struct message *message)
{
    struct iovec piece = {(void *)message->bytes, sizeof(message->bytes)};
    struct packet packet = {
        .opcode = op_code(SERVICE_RC, message->operation),
        .payload = {.length = message->length, .count = 1, .pieces = &piece},
    };
    enum tags_kind kind = tags_arrive(&desk->tags, port, &packet);
    if (kind != TAGS_NOTHING && kind < TAGS_EAGER)
        tags_accept(&desk->tags, port, kind);
    desk->has_event = tags_match(&desk->tags, port, &packet, &desk->event);
    return kind;
}

void ends(struct desk *desk, struct tags_port *port, enum ibv_wc_status status, uint32_t length)
{
    struct recv_cqe arrival = {.status = status, .opcode = IBV_WC_RECV, .length = length};
    tags_received(&desk->tags, port, ORDINARY, &arrival, &desk->event);
    desk->has_event = true;
}

/* A whole message: arrives and ends. */
enum tags_kind gets(struct desk *desk, struct message message)
{
    enum tags_kind kind = arrives(desk, &desk->a, &message);
    ends(desk, &desk->a, IBV_WC_SUCCESS, message.length);
    return kind;
}

struct send_wqe *works(struct desk *desk, struct tags_port *port)
{
    struct send_wqe *work = (struct send_wqe *)desk->place;
    assert_true(tags_work(&desk->tags, port, work));
    assert_true(tags_owns(work));
    return work;
}

void has_sent(struct desk *desk, struct tags_port *port, const struct send_wqe *work, enum ibv_wc_status status)
{
    memset(&desk->event, 0xee, sizeof(desk->event));
    desk->has_event =
        tags_sent(&desk->tags, port, work, status, status ? REASON_REMOTE_ACCESS : REASON_NONE, &desk->event);
}
