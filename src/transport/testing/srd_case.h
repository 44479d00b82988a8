/* Steps of the cases that say what an SRD engine does, and what they say about it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "transport/testing/srd_desk.h"

#define ends(desk, node, work, expected, why)                                                                          \
    do {                                                                                                               \
        assert_int_equal((desk)->nodes[node].ends[work], DESK_ENDED | (expected));                                     \
        assert_int_equal((desk)->nodes[node].reasons[work], why);                                                      \
    } while (0)
#define succeeds(desk, node, work) ends(desk, node, work, IBV_WC_SUCCESS, REASON_NONE)
#define waits(desk, node, work) assert_int_equal((desk)->nodes[node].ends[work], 0)

/* A copy of a packet of the network, which is put into an engine later, perhaps changed. */
struct desk_copy {
    struct packet packet;
    uint8_t bytes[DESK_MESSAGE];
    struct iovec piece;
};

/* Set-up and teardown: a desk, on which nothing went wrong. */
int desk_open(void **state);
int desk_close(void **state);

struct srd *desk_engine(struct desk *, unsigned node);
/* The flow to the receiver that the node knows; or NULL. */
struct srd_flow *desk_flow(struct desk *, unsigned from, unsigned to);

/* Lets the packets fly that are there, without waiting. */
void desk_run(struct desk *);
/* Lets this much time pass. */
void desk_pass(struct desk *, nanos time);
/* Writes one byte, so that the flow to the other node is open. */
void desk_meet(struct desk *, unsigned from, unsigned to);
/* Sends one packet of the node. False: it has none, or its work ended instead. */
bool desk_send_one(struct desk *, unsigned node, struct packet *out);

/* Copies a packet that flies with this operation; `lost`: it does not arrive. */
struct desk_copy *desk_copy(struct desk *, enum operation, bool lost);
void desk_put(struct desk *, unsigned node, struct desk_copy *);
/* Answers a request, as its receiver would. */
void desk_answer(struct desk *, unsigned node, const struct desk_copy *request, enum srd_status);

#define WITH_DESK(function) cmocka_unit_test_setup_teardown(function, desk_open, desk_close)
