/* Scripts of connections on a network that loses, repeats and delays, each named after what holds. Both ends are this
 * engine. IBA volume 1, 12.9, and the waiting times of Linux's CM. */
#include "cm/connection.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/attributes.h"
#include "cm/connect.h"
#include "cm/testing/rig.h"

static const struct cm_ece no_ece;
static const nanos req_wait = 6144 * NANOS_MILLISECOND, answer_wait = 4096 * NANOS_MILLISECOND;
static const nanos timewait = 2048 * NANOS_MILLISECOND;

enum { REPEATS = 15 };

static const struct connection *connection(const struct identifier *identifier)
{
    return connect_of(identifier->session);
}

static uint64_t dropped(const struct host *host, enum reason reason)
{
    return host->dropped[reason - REASON_CM_BACKLOG];
}

/* --- messages that get lost */

static void a_lost_req_is_sent_again(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_lose(rig, CM_REQ);
    rig_wait(rig, req_wait - 1);
    rig_quiet(rig);
    rig_wait(rig, 1);
    rig_arrive(rig, &all);
    rig_end(rig, &all);
}

/* 1 + 15 times in 98.3 seconds. */
static void a_req_that_nobody_answers_ends_in_unreachable(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, CM_REQ);
        rig_no_event(&rig->a);
        rig_wait(rig, req_wait);
    }
    const struct cm_event *event = rig_event(&rig->a, CM_UNREACHABLE);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_memory_equal(event->route.gid, all.active->route.gid, 16); /* its answers explain it */
    rig_quiet(rig);
    rig_end(rig, &all);
}

static void a_lost_rep_is_sent_again(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_lose(rig, CM_REP);
    rig_wait(rig, answer_wait);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_pass(rig, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    rig_end(rig, &all);
}

static void a_lost_rtu_is_sent_again_for_the_repeated_rep(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_lose(rig, CM_RTU);
    rig_wait(rig, answer_wait);
    rig_pass(rig, CM_REP);
    rig_pass(rig, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    rig_no_event(&rig->a);
    rig_end(rig, &all);
}

static void a_rep_that_nobody_confirms_ends_in_unreachable(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    connect_of(all.active->session)->deadline = NANOS_NEVER; /* the active end is as good as dead */
    session_settle(all.active->session);
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, CM_REP);
        rig_no_event(&rig->b);
        rig_wait(rig, answer_wait);
    }
    assert_int_equal(rig_event(&rig->b, CM_UNREACHABLE)->status, -ETIMEDOUT);
    rig_end(rig, &all);
}

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

static void a_lost_dreq_is_sent_again(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    rig_lose(rig, CM_DREQ);
    rig_wait(rig, req_wait);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void a_dreq_that_nobody_answers_ends_in_disconnected_all_the_same(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.passive, rig->now);
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, CM_DREQ);
        rig_no_event(&rig->b);
        rig_wait(rig, answer_wait);
    }
    assert_int_equal(rig_event(&rig->b, CM_DISCONNECTED)->status, -ETIMEDOUT);
    rig_wait(rig, timewait);
    rig_event(&rig->b, CM_TIMEWAIT_EXIT);
    rig_end(rig, &all);
}

static void a_timewait_lasts_as_long_as_its_owner_wants(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    rig->b.linger = 3 * NANOS_SECOND;
    service_disconnect(all.passive, rig->now);
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, CM_DREQ);
        rig_wait(rig, answer_wait);
    }
    rig_event(&rig->b, CM_DISCONNECTED);
    rig_wait(rig, timewait);
    rig_no_event(&rig->b);
    rig_wait(rig, 3 * NANOS_SECOND);
    rig_event(&rig->b, CM_TIMEWAIT_EXIT);
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

/* --- messages that arrive twice */

static void a_repeated_req_is_answered_by_mra_while_the_program_thinks(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_twice(rig, CM_REQ);
    rig_pass(rig, CM_REQ);
    assert_int_equal(rig_next(rig, CM_MRA)->message.mra.service_timeout, 24);
    assert_int_equal(rig_next(rig, CM_MRA)->message.mra.about, CM_ABOUT_REQ);
    rig_pass(rig, CM_MRA);
    rig_event(&rig->b, CM_CONNECT_REQUEST);
    rig_no_event(&rig->b);
    all.passive = NULL; /* stays without the listener, since it was fetched */
    rig_wait(rig, 2 * req_wait);
    rig_wait(rig, 67584 * NANOS_MILLISECOND - 2 * req_wait - 1); /* the MRA asked for 65536 + 2048 ms */
    rig_quiet(rig);
    rig_wait(rig, 1);
    rig_lose(rig, CM_REQ);
    identifiers_destroy(&rig->b.manager, NULL, rig->now);
    all.listener = NULL;
    rig_settle(rig);
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

static void a_repeated_rep_is_answered_by_mra_while_the_program_thinks(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_twice(rig, CM_REP);
    rig_pass(rig, CM_REP);
    assert_int_equal(rig_next(rig, CM_MRA)->message.mra.about, CM_ABOUT_REP);
    rig_pass(rig, CM_MRA);
    rig_event(&rig->a, CM_CONNECT_RESPONSE);
    rig_no_event(&rig->a);
    rig_end(rig, &all);
}

static void repeated_rtu_dreq_and_drep_change_nothing(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_twice(rig, CM_RTU);
    rig_pass(rig, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    service_disconnect(all.active, rig->now);
    rig_twice(rig, CM_DREQ);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    rig_quiet(rig); /* the program decides */
    service_disconnect(all.passive, rig->now);
    rig_twice(rig, CM_DREP);
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_no_event(&rig->a);
    rig_no_event(&rig->b);
    assert_int_equal(dropped(&rig->a, REASON_CM_UNEXPECTED), 1);
    assert_int_equal(dropped(&rig->b, REASON_CM_UNEXPECTED), 2);
    rig_end(rig, &all);
}

/* --- messages that cross */

static void two_dreqs_that_cross_end_it_for_both(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    service_disconnect(all.passive, rig->now);
    rig_pass(rig, CM_DREQ);
    rig_pass(rig, CM_DREQ);
    assert_int_equal(rig_event(&rig->a, CM_DISCONNECTED)->status, 0);
    assert_int_equal(rig_event(&rig->b, CM_DISCONNECTED)->status, 0);
    assert_int_equal(connection(all.active)->state, CONNECTION_DREQ_RCVD);
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREP);
    assert_int_equal(connection(all.passive)->state, CONNECTION_TIMEWAIT);
    rig_no_event(&rig->b);
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

static void a_dreq_that_overtakes_the_rtu_ends_the_connection(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_lose(rig, CM_RTU);
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void a_packet_stands_for_the_rtu(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_next(rig, CM_REP);
    assert_int_equal(service_notify(all.passive, IBV_EVENT_COMM_EST, rig->now), 0);
    rig_event(&rig->b, CM_ESTABLISHED);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_pass(rig, CM_RTU);
    rig_no_event(&rig->b);
    rig_end(rig, &all);
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
    rig_wait(rig, req_wait);
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
    rig_wait(rig, timewait);
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

static void a_dreq_with_another_queue_pair_is_ignored(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    rig_next(rig, CM_DREQ)->message.dreq.remote_qpn ^= 1;
    rig_pass(rig, CM_DREQ);
    rig_no_event(&rig->b);
    assert_int_equal(connection(all.passive)->state, CONNECTION_ESTABLISHED);
    rig_quiet(rig);
    rig_end(rig, &all);
}

static void a_dreq_of_no_connection_is_answered_so_that_it_ends(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    identifier_destroy(all.passive, rig->now);
    all.passive = NULL;
    rig_lose(rig, CM_DREQ);
    rig_wait(rig, timewait);
    assert_int_equal(rig->b.manager.sessions, 0);
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREQ);
    assert_int_equal(dropped(&rig->b, REASON_CM_UNKNOWN), 1);
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void an_addressing_header_of_another_version_drops_the_request(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_next(rig, CM_REQ)->message.private_data[0] = 0x10;
    rig_pass(rig, CM_REQ);
    rig_quiet(rig);
    rig_no_event(&rig->b);
    assert_int_equal(dropped(&rig->b, REASON_CM_ADDRESSING), 1);
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

static void a_new_identifier_has_no_events_before_it_is_accepted(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    identifier_destroy(all.active, rig->now);
    all.active = NULL;
    rig_pass(rig, CM_REJ);
    rig_no_event(&rig->b);
    rig_end(rig, &all);
}

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
        TEST(a_lost_req_is_sent_again),
        TEST(a_req_that_nobody_answers_ends_in_unreachable),
        TEST(a_lost_rep_is_sent_again),
        TEST(a_lost_rtu_is_sent_again_for_the_repeated_rep),
        TEST(a_rep_that_nobody_confirms_ends_in_unreachable),
        TEST(a_state_has_the_time_when_it_began),
        TEST(a_lost_dreq_is_sent_again),
        TEST(a_dreq_that_nobody_answers_ends_in_disconnected_all_the_same),
        TEST(a_timewait_lasts_as_long_as_its_owner_wants),
        TEST(a_lost_drep_is_sent_again_from_the_timewait),
        TEST(a_repeated_req_is_answered_by_mra_while_the_program_thinks),
        TEST(only_the_first_mra_counts),
        TEST(a_repeated_rep_is_answered_by_mra_while_the_program_thinks),
        TEST(repeated_rtu_dreq_and_drep_change_nothing),
        TEST(two_dreqs_that_cross_end_it_for_both),
        TEST(two_reqs_that_cross_are_two_connections),
        TEST(a_dreq_that_overtakes_the_rtu_ends_the_connection),
        TEST(a_packet_stands_for_the_rtu),
        TEST(a_full_backlog_is_silent_until_a_request_is_fetched),
        TEST(a_req_of_a_queue_pair_that_is_connected_ends_the_old_connection),
        TEST(a_queue_pair_in_timewait_may_connect_again),
        TEST(messages_from_another_address_are_nobodys),
        TEST(a_dreq_with_another_queue_pair_is_ignored),
        TEST(a_dreq_of_no_connection_is_answered_so_that_it_ends),
        TEST(an_addressing_header_of_another_version_drops_the_request),
        TEST(a_repeat_of_the_request_from_elsewhere_is_a_request_of_its_own),
        TEST(a_new_identifier_has_no_events_before_it_is_accepted),
        TEST(a_late_rtu_after_the_reject_is_nothing),
        TEST(depths_cross),
        cmocka_unit_test(ack_timeouts_cover_flight_and_delay),
        TEST(the_option_sets_the_timeout_of_the_queue_pair),
    };
    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
