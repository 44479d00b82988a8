/* The effect of forgers and repeats on a connection: every message of its life, as it was and with any byte of it
 * changed, at every later step of that life. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "cm/connect.h"
#include "cm/testing/rig.h"

enum { KEPT = 8 };

/* The messages that have passed until now, as they arrived. */
struct life {
    struct rig *rig;
    struct connected all;
    struct dispatch_datagram kept[KEPT];
    struct host *to[KEPT];
    unsigned count;
};

static uint64_t dropped(const struct host *host)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sizeof host->dropped / sizeof *host->dropped; i++)
        sum += host->dropped[i];
    return sum;
}

static void pass(struct life *life, enum cm_attribute attribute)
{
    const struct dispatch_datagram *sent = rig_next(life->rig, attribute);
    struct host *to = life->rig->to[0], *from = to == &life->rig->a ? &life->rig->b : &life->rig->a;
    assert_true(life->count < KEPT);
    life->kept[life->count] = host_arrival(to, from, sent);
    life->to[life->count++] = to;
    rig_pass(life->rig, attribute);
}

/* --- what is tried at each step */

struct standing {
    enum connection_state active, passive;
    uint32_t sessions_a, sessions_b;
    unsigned events_a, events_b;
};

static enum connection_state state_of(const struct identifier *identifier)
{
    return identifier && identifier->session ? connect_of(identifier->session)->state : CONNECTION_IDLE;
}

static struct standing standing_of(const struct life *life)
{
    return (struct standing){state_of(life->all.active),    state_of(life->all.passive), life->rig->a.manager.sessions,
                             life->rig->b.manager.sessions, life->rig->a.queue.count,    life->rig->b.queue.count};
}

/* A message is answered at most once, to its sender, or counted. Nothing else has changed. */
static void try_one(struct life *life, struct host *host, const struct dispatch_datagram *datagram)
{
    struct dispatch_datagram reply, sent;
    struct standing before = standing_of(life), after;
    uint64_t counted = dropped(host);
    unsigned answers = dispatch_receive(&host->manager, datagram, &reply, life->rig->now);
    if (answers)
        assert_memory_equal(reply.route.gid, datagram->route.gid, sizeof reply.route.gid);
    while (dispatch_transmit(&host->manager, &sent)) {
        assert_memory_equal(sent.route.gid, datagram->route.gid, sizeof sent.route.gid);
        answers++;
    }
    after = standing_of(life);
    assert_memory_equal(&before, &after, sizeof before);
    assert_true(answers <= 1);
    assert_true(answers || dropped(host) == counted + 1);
}

/* Bytes that are no message are for the codec's tests. */
static void try_changed(struct life *life, unsigned which, unsigned byte, const uint8_t stranger[16])
{
    uint8_t bytes[MAD_BYTES];
    struct dispatch_datagram datagram = life->kept[which];
    cm_encode(&life->kept[which].message, bytes);
    bytes[byte] ^= 0xff;
    if (cm_decode(bytes, sizeof bytes, &datagram.message) != CM_FINE)
        return;
    memcpy(datagram.route.gid, stranger, 16);
    try_one(life, life->to[which], &datagram);
}

static void try_all(struct life *life)
{
    static const uint8_t stranger[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 99};
    uint32_t backlog = life->all.listener->backlog;
    life->all.listener->backlog = 0; /* requests of others would be new ones */
    for (unsigned which = 0; which < life->count; which++) {
        struct dispatch_datagram again = life->kept[which];
        try_one(life, life->to[which], &again);
        memcpy(again.route.gid, stranger, sizeof stranger);
        try_one(life, life->to[which], &again);
        for (unsigned byte = 0; byte < MAD_BYTES; byte++)
            try_changed(life, which, byte, stranger);
    }
    life->all.listener->backlog = backlog;
}

/* The message that is about to be sent, from the peer's address, with the communication ID of another connection. */
static void try_of_other_connection(struct life *life, enum cm_attribute attribute)
{
    const struct dispatch_datagram *sent = rig_next(life->rig, attribute);
    struct host *to = life->rig->to[0], *from = to == &life->rig->a ? &life->rig->b : &life->rig->a;
    struct dispatch_datagram other = host_arrival(to, from, sent);
    other.message.local_id ^= 0xff;
    try_one(life, to, &other);
}

static void no_message_of_a_stranger_and_no_repeat_changes_a_connection(void **state)
{
    struct rig *rig = *state;
    struct life life = {.rig = rig, .all = rig_start(rig)};
    pass(&life, CM_REQ);
    life.all.passive = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
    try_all(&life);
    rig_accept(rig, &life.all);
    pass(&life, CM_REP);
    rig_event(&rig->a, CM_CONNECT_RESPONSE);
    try_all(&life);
    assert_int_equal(service_confirm(life.all.active, rig->now), 0);
    pass(&life, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    try_all(&life);
    service_disconnect(life.all.active, rig->now);
    try_of_other_connection(&life, CM_DREQ);
    pass(&life, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    try_all(&life);
    service_disconnect(life.all.passive, rig->now);
    try_of_other_connection(&life, CM_DREP);
    pass(&life, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    try_all(&life);
    rig_end(rig, &life.all);
}

/* The connection has ended, and nothing of it is left. */
static void no_message_finds_a_connection_that_has_ended(void **state)
{
    struct rig *rig = *state;
    struct life life = {.rig = rig, .all = rig_start(rig)};
    pass(&life, CM_REQ);
    life.all.passive = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
    service_reject(life.all.passive, 0, NULL, 0, rig->now);
    pass(&life, CM_REJ);
    rig_event(&rig->a, CM_REJECTED);
    identifier_destroy(life.all.passive, rig->now);
    identifier_destroy(life.all.active, rig->now);
    life.all.passive = life.all.active = NULL;
    rig_settle(rig);
    rig_wait(rig, 120 * NANOS_SECOND);
    try_all(&life);
    rig_end(rig, &life.all);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
TESTS_OF(TEST, no_message_of_a_stranger_and_no_repeat_changes_a_connection,
               no_message_finds_a_connection_that_has_ended)
