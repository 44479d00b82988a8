#include "steps.h"

#include <stdlib.h>
#include <string.h>

int steps_set_up(void **state)
{
    struct room *room = malloc(sizeof *room);
    *state = room;
    return room_open(room, TAGS, OPERATIONS) && room_connect(room, 0) && room_connect(room, 1) ? 0 : -1;
}

int steps_tear_down(void **state)
{
    room_close(*state);
    free(*state);
    return 0;
}

struct room_event next(struct room *room)
{
    struct room_event event;
    assert_true(room_wait(room, &event));
    return event;
}

void sender_sees(struct room *room, uint64_t id, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    assert_true(room_sender_wait(room, &wc));
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.status, status);
    if (!status)
        assert_int_equal(wc.opcode, opcode);
}

void add(struct room *room, uint64_t tag, uint64_t id, uint32_t offset, uint32_t length)
{
    assert_int_equal(room_add(room, tag, EXACT, id, offset, length, 0, 0, NULL), 0);
}

/* A message of `length` bytes after its header, each `fill`. */
void send_eager(struct room *room, int sender, uint64_t id, uint64_t tag, uint32_t length, uint8_t fill)
{
    room_head(room_upper(room, 0), IBV_TMH_EAGER, 0x1234, tag);
    memset(room_upper(room, TMH), fill, length);
    assert_int_equal(room_send(room, sender, id, 0, TMH + length), 0);
}

void send_rendezvous(struct room *room, int sender, uint64_t id, uint64_t tag, uint32_t length, uint8_t fill)
{
    room_rendezvous_head(room, room_upper(room, 0), 0x1234, tag, PLACE, length);
    memset(room_upper(room, PLACE), fill, length);
    assert_int_equal(room_post_finish(room, sender, id + 1, 4096), 0);
    assert_int_equal(room_send(room, sender, id, 0, HEAD), 0);
}

bool is_filled(const uint8_t *at, uint32_t length, uint8_t fill)
{
    for (uint32_t i = 0; i < length; i++)
        if (at[i] != fill)
            return false;
    return true;
}
