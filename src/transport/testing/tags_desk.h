/* A tag machine with two ports on a desk, for tests, and the steps of a script: requests of programs, arrivals, and
 * the reports that they must cause. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/tm/tags.h"
#include "wire/bytes.h"
#include "wire/op.h"

enum { CAPACITY = 16, SGES = 2, ROOM = 1000, ORDINARY = 999 /* id of the ordinary receives */ };
#define EXACT UINT64_MAX

struct desk {
    struct tags tags;
    struct tags_port a, b;
    void *memory;
    struct tags_event event; /* of the last step */
    bool has_event;
    uint32_t handle; /* of the last ADD */
    _Alignas(8) char place[sizeof(struct send_wqe) + 256];
};

struct message {
    uint8_t bytes[128];
    uint32_t length;
    enum operation operation;
};

int desk_set_up(void **state);
int desk_tear_down(void **state);
enum reason operate(struct desk *desk, struct ibv_ops_wr wr);
uint32_t add_room(struct desk *desk, uint64_t tag, uint64_t mask, uint64_t id, uint32_t room);
enum ibv_wc_status deletes(struct desk *desk, uint32_t handle, int flags);
uint32_t add(struct desk *desk, uint64_t tag, uint64_t mask, uint64_t id);
void synchronise(struct desk *desk, uint32_t count);
struct message eager(uint64_t tag, uint32_t length);
struct message rendezvous(uint64_t tag, uint32_t length);
enum tags_kind arrives(struct desk *desk, struct tags_port *port, const struct message *message);
void ends(struct desk *desk, struct tags_port *port, enum ibv_wc_status status, uint32_t length);
enum tags_kind gets(struct desk *desk, struct message message);
struct send_wqe *works(struct desk *desk, struct tags_port *port);
void has_sent(struct desk *desk, struct tags_port *port, const struct send_wqe *work, enum ibv_wc_status status);

/* Checks the event of the last step. */
#define tells(desk, id_, opcode_, flags_)                                                                              \
    do {                                                                                                               \
        assert_true((desk)->has_event);                                                                                \
        assert_int_equal((desk)->event.status, IBV_WC_SUCCESS);                                                        \
        assert_int_equal((desk)->event.id, id_);                                                                       \
        assert_int_equal((desk)->event.opcode, opcode_);                                                               \
        assert_int_equal((desk)->event.flags, flags_);                                                                 \
    } while (0)

#define script(test) cmocka_unit_test_setup_teardown(test, desk_set_up, desk_tear_down)
