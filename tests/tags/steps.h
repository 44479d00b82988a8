/* Steps of tests of the public API: a room with two senders, and the steps that they take in it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "room.h"

#define EXACT UINT64_MAX
#define MATCHED (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)
enum { SIGNALED = IBV_OPS_SIGNALED, SYNC = IBV_OPS_TM_SYNC, TAGS = 64, OPERATIONS = 32, PLACE = 1 << 20 };

int steps_set_up(void **state);
int steps_tear_down(void **state);

/* The next completion of the SRQ; there must be one. */
struct room_event next(struct room *room);
/* The next completion of a sender is this one. */
void sender_sees(struct room *room, uint64_t id, enum ibv_wc_status status, enum ibv_wc_opcode opcode);

/* An exact tag. */
void add(struct room *room, uint64_t tag, uint64_t id, uint32_t offset, uint32_t length);
/* A message of `length` bytes after its header, each `fill`. */
void send_eager(struct room *room, int sender, uint64_t id, uint64_t tag, uint32_t length, uint8_t fill);
/* The same, to be read from PLACE; id + 1 receives the FIN. */
void send_rendezvous(struct room *room, int sender, uint64_t id, uint64_t tag, uint32_t length, uint8_t fill);
bool is_filled(const uint8_t *at, uint32_t length, uint8_t fill);

#define sees(event, id_, opcode_, flags_)                                                                              \
    do {                                                                                                               \
        struct room_event seen = event;                                                                                \
        assert_int_equal(seen.status, IBV_WC_SUCCESS);                                                                 \
        assert_int_equal(seen.id, id_);                                                                                \
        assert_int_equal(seen.opcode, opcode_);                                                                        \
        assert_int_equal(seen.flags, flags_);                                                                          \
    } while (0)

#define fails(event, id_, status_)                                                                                     \
    do {                                                                                                               \
        struct room_event seen = event;                                                                                \
        assert_int_equal(seen.status, status_);                                                                        \
        assert_int_equal(seen.id, id_);                                                                                \
    } while (0)

#define script(test) cmocka_unit_test_setup_teardown(test, steps_set_up, steps_tear_down)
