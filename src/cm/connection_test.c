/* Scripts of connections on a network that loses, repeats and delays, each named after what holds. Both ends are this
 * engine. IBA volume 1, 12.9, and the waiting times of Linux's CM. */
#include "cm/connection.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/connect.h"
#include "cm/queue_pair/attributes.h"
#include "cm/testing/steps.h"

static const struct cm_ece no_ece;
#define REQ_WAIT (6144 * NANOS_MILLISECOND)
#define ANSWER_WAIT (4096 * NANOS_MILLISECOND)
#define TIMEWAIT (2048 * NANOS_MILLISECOND)

enum { REPEATS = 15 };

static const struct connection *connection(const struct identifier *identifier)
{
    return connect_of(identifier->session);
}

static uint64_t dropped(const struct host *host, enum reason reason)
{
    return host->dropped[reason - REASON_CM_BACKLOG];
}

/* --- scripts */

/* All repeats of a message get lost, and the host that sends it gets no event meanwhile: 1 + 15 times in 98.3 seconds.
 */
static void lose_all(struct rig *rig, struct host *host, enum cm_attribute message, nanos wait)
{
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, message);
        rig_no_event(host);
        rig_wait(rig, wait);
    }
}

static void lose_all_reqs(struct rig *rig, struct connected *all, int64_t unused)
{
    lose_all(rig, &rig->a, CM_REQ, REQ_WAIT);
}

static void lose_all_answers(struct rig *rig, struct connected *all, int64_t message)
{
    lose_all(rig, &rig->b, (enum cm_attribute)message, ANSWER_WAIT);
}

/* The answers of a route explain it. */
static void has_route(struct rig *rig, struct connected *all, int64_t unused)
{
    assert_memory_equal(rig->last->route.gid, all->active->route.gid, 16);
}

static void active_end_is_as_good_as_dead(struct rig *rig, struct connected *all, int64_t unused)
{
    connect_of(all->active->session)->deadline = NANOS_NEVER;
    session_settle(all->active->session);
}

static void linger(struct rig *rig, struct connected *all, int64_t time)
{
    rig->b.linger = (nanos)time;
}

static void mra_asks_for(struct rig *rig, struct connected *all, int64_t timeout)
{
    assert_int_equal(rig_next(rig, CM_MRA)->message.mra.service_timeout, timeout);
}

/* Requests that were fetched stay when their listener is gone. */
static void destroy_all_identifiers(struct rig *rig, struct connected *all, int64_t unused)
{
    identifiers_destroy(&rig->b.manager, NULL, rig->now);
    all->listener = NULL;
    rig_settle(rig);
}

static void hear_of_a_packet(struct rig *rig, struct connected *all, int64_t unused)
{
    rig_next(rig, CM_REP);
    assert_int_equal(service_notify(all->passive, IBV_EVENT_COMM_EST, rig->now), 0);
}

static void name_another_queue_pair(struct rig *rig, struct connected *all, int64_t unused)
{
    rig_next(rig, CM_DREQ)->message.dreq.remote_qpn ^= 1;
}

static void change_version_of_addressing(struct rig *rig, struct connected *all, int64_t unused)
{
    rig_next(rig, CM_REQ)->message.private_data[0] = 0x10;
}

static void dropped_one_by_b(struct rig *rig, struct connected *all, int64_t reason)
{
    assert_int_equal(dropped(&rig->b, (enum reason)reason), 1);
}

static void unexpected_of_a(struct rig *rig, struct connected *all, int64_t count)
{
    assert_int_equal(dropped(&rig->a, REASON_CM_UNEXPECTED), count);
}

static void unexpected_of_b(struct rig *rig, struct connected *all, int64_t count)
{
    assert_int_equal(dropped(&rig->b, REASON_CM_UNEXPECTED), count);
}

/* clang-format off */
#define ESTABLISHED ARRIVE, ACCEPT, PASS(REP), CONFIRM
static const struct script scripts[] = {
    /* messages that get lost */
    {"a lost REQ is sent again", {START, LOSE(REQ), WAIT(REQ_WAIT - 1), QUIET, WAIT(1), ARRIVE}},
    {"a REQ that nobody answers ends in UNREACHABLE",
     {START, {lose_all_reqs, 0}, A_GETS(UNREACHABLE), STATUS(-ETIMEDOUT), {has_route, 0}, QUIET}},
    {"a lost REP is sent again",
     {START, ARRIVE, ACCEPT, LOSE(REP), WAIT(ANSWER_WAIT), PASS(REP), CONFIRM, PASS(RTU), B_GETS(ESTABLISHED)}},
    {"a lost RTU is sent again for the repeated REP",
     {START, ESTABLISHED, LOSE(RTU), WAIT(ANSWER_WAIT), PASS(REP), PASS(RTU), B_GETS(ESTABLISHED), A_GETS_NOTHING}},
    {"a REP that nobody confirms ends in UNREACHABLE",
     {START, ARRIVE, ACCEPT, {active_end_is_as_good_as_dead, 0}, {lose_all_answers, CM_REP}, B_GETS(UNREACHABLE), STATUS(-ETIMEDOUT)}},
    {"a lost DREQ is sent again", {CONNECT, A_HANGS_UP, LOSE(DREQ), WAIT(REQ_WAIT), PASS(DREQ), B_GETS(DISCONNECTED)}},
    {"a DREQ that nobody answers ends in DISCONNECTED all the same",
     {CONNECT, B_HANGS_UP, {lose_all_answers, CM_DREQ}, B_GETS(DISCONNECTED), STATUS(-ETIMEDOUT), WAIT(TIMEWAIT), B_GETS(TIMEWAIT_EXIT)}},
    {"a timewait lasts as long as its owner wants",
     {CONNECT, {linger, 3 * NANOS_SECOND}, B_HANGS_UP, {lose_all_answers, CM_DREQ}, B_GETS(DISCONNECTED), WAIT(TIMEWAIT), B_GETS_NOTHING,
      WAIT(3 * NANOS_SECOND), B_GETS(TIMEWAIT_EXIT)}},
    /* messages that arrive twice; the MRA for a REQ asks for 65536 + 2048 ms */
    {"a repeated REQ is answered by MRA while the program thinks",
     {START, TWICE(REQ), PASS(REQ), {mra_asks_for, 24}, ABOUT(REQ), PASS(MRA), B_GETS(CONNECT_REQUEST), B_GETS_NOTHING, WAIT(2 * REQ_WAIT),
      WAIT(67584 * NANOS_MILLISECOND - 2 * REQ_WAIT - 1), QUIET, WAIT(1), LOSE(REQ), {destroy_all_identifiers, 0}}},
    {"a repeated REP is answered by MRA while the program thinks",
     {START, ARRIVE, ACCEPT, TWICE(REP), PASS(REP), ABOUT(REP), PASS(MRA), A_GETS(CONNECT_RESPONSE), A_GETS_NOTHING}},
    {"repeated RTU, DREQ and DREP change nothing",
     {START, ESTABLISHED, TWICE(RTU), PASS(RTU), B_GETS(ESTABLISHED), A_HANGS_UP, TWICE(DREQ), PASS(DREQ), B_GETS(DISCONNECTED),
      QUIET /* the program decides */, B_HANGS_UP, TWICE(DREP), PASS(DREP), A_GETS(DISCONNECTED), A_GETS_NOTHING, B_GETS_NOTHING,
      {unexpected_of_a, 1}, {unexpected_of_b, 2}}},
    /* messages that cross */
    {"two DREQs that cross end it for both",
     {CONNECT, A_HANGS_UP, B_HANGS_UP, PASS(DREQ), PASS(DREQ), A_GETS(DISCONNECTED), STATUS(0), B_GETS(DISCONNECTED), STATUS(0), A_IS(DREQ_RCVD),
      A_HANGS_UP, PASS(DREP), B_IS(TIMEWAIT), B_GETS_NOTHING}},
    {"a DREQ that overtakes the RTU ends the connection",
     {START, ESTABLISHED, LOSE(RTU), A_HANGS_UP, PASS(DREQ), B_GETS(DISCONNECTED)}},
    {"a packet stands for the RTU",
     {START, ARRIVE, ACCEPT, {hear_of_a_packet, 0}, B_GETS(ESTABLISHED), PASS(REP), CONFIRM, PASS(RTU), B_GETS_NOTHING}},
    /* messages of other connections, and for none */
    {"a DREQ with another queue pair is ignored",
     {CONNECT, A_HANGS_UP, {name_another_queue_pair, 0}, PASS(DREQ), B_GETS_NOTHING, B_IS(ESTABLISHED), QUIET}},
    {"a DREQ of no connection is answered so that it ends",
     {CONNECT, B_LEAVES, LOSE(DREQ), WAIT(TIMEWAIT), SESSIONS_B(0), A_HANGS_UP, PASS(DREQ), {dropped_one_by_b, REASON_CM_UNKNOWN}, PASS(DREP),
      A_GETS(DISCONNECTED)}},
    {"an addressing header of another version drops the request",
     {START, {change_version_of_addressing, 0}, PASS(REQ), QUIET, B_GETS_NOTHING, {dropped_one_by_b, REASON_CM_ADDRESSING}}},
    {"a new identifier has no events before it is accepted", {START, ARRIVE, A_LEAVES, PASS(REJ), B_GETS_NOTHING}},
};
/* clang-format on */

/* --- what needs more than steps */

static void a_state_has_the_time_when_it_began(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    nanos connected = rig->now;
    rig_wait(rig, NANOS_SECOND);
    assert_int_equal(connect_of(all.active->session)->since, connected);
    assert_int_equal(connect_of(all.passive->session)->since, connected);
    service_disconnect(all.active, rig->now);
    assert_int_equal(connect_of(all.active->session)->since, connected + NANOS_SECOND);
    rig_settle(rig);
    rig_event(&rig->b, CM_DISCONNECTED);
    assert_int_equal(connect_of(all.passive->session)->since, rig->now);
    rig_end(rig, &all);
}

static void a_lost_drep_is_sent_again_from_the_timewait(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    rig_twice(rig, CM_DREQ);
    struct dispatch_datagram dreq = *rig_next(rig, CM_DREQ), reply;
    rig_lose(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    service_disconnect(all.passive, rig->now);
    rig_lose(rig, CM_DREP);
    memcpy(dreq.route.gid, rig->a.port.gid, 16);
    assert_false(dispatch_receive(&rig->b.manager, &dreq, &reply, rig->now));
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

/* IBA 12.9.8: a peer that answers every repeat with an MRA can't make the other end wait for ever. */
static void only_the_first_mra_counts(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_twice(rig, CM_REQ);
    rig_twice(rig, CM_REQ);
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_MRA);
    nanos deadline = connection(all.active)->deadline;
    rig_wait(rig, NANOS_SECOND);
    struct dispatch_datagram mra = {.route = all.active->session->route,
                                    .message = {.attribute = CM_MRA,
                                                .remote_id = connection(all.active)->local.communication_id,
                                                .mra = {.about = CM_ABOUT_REQ, .service_timeout = 31}}};
    struct dispatch_datagram reply;
    dispatch_receive(&rig->a.manager, &mra, &reply, rig->now);
    assert_true(connection(all.active)->deadline == deadline);
    rig_end(rig, &all);
}

/* Two programs that connect to each other at once have two connections. */
static void two_reqs_that_cross_are_two_connections(void **state)
{
    struct rig *rig = *state;
    struct connected first = rig_start(rig), second = {.listener = rig_listen(&rig->a, RIG_PORT + 1)};
    struct cm_parameters parameters = rig_parameters(0x11);
    second.active = rig_resolve(&rig->b, RIG_PORT + 1);
    assert_int_equal(service_connect(second.active, &parameters, &no_ece, rig->now), 0);
    rig_arrive(rig, &first);
    rig_pass(rig, CM_REQ);
    second.passive = identifier_find(&rig->a.manager, rig_event(&rig->a, CM_CONNECT_REQUEST)->number);
    rig_end(rig, &first);
    rig_end(rig, &second);
}

/* --- the backlog */

static void a_full_backlog_is_silent_until_a_request_is_fetched(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0x11);
    struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT)};
    struct identifier *active[3];
    all.listener->backlog = 2;
    for (unsigned i = 0; i < 3; i++) {
        active[i] = rig_resolve(&rig->a, RIG_PORT);
        parameters.qpn = 0x11 + i;
        assert_int_equal(service_connect(active[i], &parameters, &no_ece, rig->now), 0);
        rig_pass(rig, CM_REQ);
    }
    assert_int_equal(rig->b.queue.count, 2);
    assert_int_equal(dropped(&rig->b, REASON_CM_BACKLOG), 1);
    rig_quiet(rig);
    rig_event(&rig->b, CM_CONNECT_REQUEST);
    rig_wait(rig, REQ_WAIT);
    rig_settle(rig);
    assert_int_equal(rig->b.queue.count, 2);
    for (unsigned i = 0; i < 3; i++)
        identifier_destroy(active[i], rig->now);
    identifiers_destroy(&rig->b.manager, NULL, rig->now);
    all.listener = NULL;
    rig_settle(rig);
    rig_end(rig, &all);
}

/* --- stale connections (IBA 12.9.8.3.1) */

static void a_req_of_a_queue_pair_that_is_connected_ends_the_old_connection(void **state)
{
    struct rig *rig = *state;
    struct connected old = rig_connect(rig), again = {.active = rig_resolve(&rig->a, RIG_PORT)};
    struct cm_parameters parameters = rig_parameters(0x11);
    assert_int_equal(service_connect(again.active, &parameters, &no_ece, rig->now), 0);
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_STALE);
    assert_int_equal(connection(again.active)->state, CONNECTION_TIMEWAIT);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_wait(rig, TIMEWAIT);
    assert_int_equal(connection(again.active)->state, CONNECTION_IDLE);
    rig_no_event(&rig->a); /* it was never connected */
    rig_end(rig, &again);
    rig_end(rig, &old);
}

static void a_queue_pair_in_timewait_may_connect_again(void **state)
{
    struct rig *rig = *state;
    struct connected old = rig_connect(rig), again = {.active = rig_resolve(&rig->a, RIG_PORT)};
    struct cm_parameters parameters = rig_parameters(0x11);
    service_disconnect(old.active, rig->now);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    service_disconnect(old.passive, rig->now);
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    assert_int_equal(service_connect(again.active, &parameters, &no_ece, rig->now), 0);
    rig_pass(rig, CM_REQ);
    again.passive = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
    rig_end(rig, &again);
    rig_end(rig, &old);
}

/* --- messages of third hosts */

static void deliver_to(struct rig *rig, struct host *host, struct dispatch_datagram *datagram, const uint8_t *from)
{
    struct dispatch_datagram reply;
    memcpy(datagram->route.gid, from, 16);
    if (dispatch_receive(&host->manager, datagram, &reply, rig->now))
        assert_int_equal(reply.message.attribute, CM_DREP);
}

static void messages_from_another_address_are_nobodys(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    uint8_t stranger[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 99};
    static const enum cm_attribute kinds[] = {CM_REP, CM_REJ, CM_MRA, CM_DREQ, CM_DREP, CM_RTU};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct dispatch_datagram datagram = {
            .message = {.attribute = kinds[i], .remote_id = connection(all.active)->local.communication_id}};
        deliver_to(rig, &rig->a, &datagram, stranger);
    }
    rig_no_event(&rig->a);
    assert_int_equal(dropped(&rig->a, REASON_CM_STRANGER), sizeof kinds / sizeof *kinds);
    assert_int_equal(connection(all.active)->state, CONNECTION_REQ_SENT);
    rig_end(rig, &all);
}

static void a_repeat_of_the_request_from_elsewhere_is_a_request_of_its_own(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct dispatch_datagram copy = *rig_next(rig, CM_REQ);
    uint8_t stranger[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 99};
    rig_arrive(rig, &all);
    copy.route.from = rig->b.port;
    deliver_to(rig, &rig->b, &copy, stranger);
    rig_quiet(rig); /* no MRA: neither to the third host nor to the peer */
    struct identifier *other = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
    assert_memory_equal(other->session->route.gid, stranger, 16);
    identifier_destroy(other, rig->now);
    rig_lose(rig, CM_REJ);
    rig_end(rig, &all);
}

/* --- the events that programs get */

static void a_late_rtu_after_the_reject_is_nothing(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    struct dispatch_datagram rtu = *rig_next(rig, CM_RTU);
    rig_lose(rig, CM_RTU);
    service_reject(all.passive, 0, NULL, 0, rig->now);
    deliver_to(rig, &rig->b, &rtu, rig->a.port.gid);
    rig_no_event(&rig->b);
    rig_pass(rig, CM_REJ);
    rig_event(&rig->a, CM_REJECTED);
    rig_end(rig, &all);
}

/* The depth that an end can answer is the one that the other end may request. */
static void depths_cross(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct cm_parameters parameters = rig_parameters(0x22);
    struct ibv_qp_attr attr;
    int mask;
    rig_arrive(rig, &all);
    parameters.responder_resources = 1;
    parameters.initiator_depth = 0;
    assert_int_equal(service_accept(all.passive, 1, &parameters, &no_ece, rig->now), 0);
    rig_pass(rig, CM_REP);
    assert_int_equal(attributes_of(all.active, IBV_QPS_RTR, &attr, &mask), 0);
    assert_int_equal(attr.max_dest_rd_atomic, 0);
    assert_int_equal(attributes_of(all.active, IBV_QPS_RTS, &attr, &mask), 0);
    assert_int_equal(attr.max_rd_atomic, 1);
    assert_int_equal(attributes_of(all.active, IBV_QPS_INIT, &attr, &mask), 0);
    assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
    rig_end(rig, &all);
}

/* IBA 12.7.34 as Linux computes it. */
static void ack_timeouts_cover_flight_and_delay(void **state)
{
    assert_int_equal(connection_ack_timeout(15, 18), 19);
    assert_int_equal(connection_ack_timeout(18, 18), 20);
    assert_int_equal(connection_ack_timeout(19, 18), 20);
    assert_int_equal(connection_ack_timeout(20, 18), 21);
    assert_int_equal(connection_ack_timeout(21, 18), 21);
    assert_int_equal(connection_ack_timeout(31, 31), 31);
}

static void the_option_sets_the_timeout_of_the_queue_pair(void **state)
{
    struct rig *rig = *state;
    struct ibv_qp_attr attr;
    int mask;
    struct connected all = rig_connect(rig);
    assert_int_equal(identifier_set_ack_timeout(all.active, 14), 0);
    assert_int_equal(attributes_of(all.active, IBV_QPS_RTS, &attr, &mask), 0);
    assert_int_equal(attr.timeout, 14);
    rig_end(rig, &all);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
    const struct CMUnitTest tests[] = {
        TEST(a_state_has_the_time_when_it_began),
        TEST(a_lost_drep_is_sent_again_from_the_timewait),
        TEST(only_the_first_mra_counts),
        TEST(two_reqs_that_cross_are_two_connections),
        TEST(a_full_backlog_is_silent_until_a_request_is_fetched),
        TEST(a_req_of_a_queue_pair_that_is_connected_ends_the_old_connection),
        TEST(a_queue_pair_in_timewait_may_connect_again),
        TEST(messages_from_another_address_are_nobodys),
        TEST(a_repeat_of_the_request_from_elsewhere_is_a_request_of_its_own),
        TEST(a_late_rtu_after_the_reject_is_nothing),
        TEST(depths_cross),
        cmocka_unit_test(ack_timeouts_cover_flight_and_delay),
        TEST(the_option_sets_the_timeout_of_the_queue_pair),
    };
    return SCRIPTS_RUN("scripts of connections", scripts) |
           cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
