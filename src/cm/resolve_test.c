/* Scripts of datagram services: resolving a service to a queue pair (IBA volume 1, 12.11), and multicast groups. */
#include "cm/resolve.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "cm/queue_pair/attributes.h"
#include "cm/testing/rig.h"

static const struct cm_ece no_ece;
static const nanos wait = 4096 * NANOS_MILLISECOND;

enum { REPEATS = 15 };

static int make(void **state)
{
    rig_make(state);
    struct rig *rig = *state;
    rig->a.space = rig->b.space = CM_SPACE_UDP;
    return 0;
}

static void a_service_resolves_to_a_queue_pair(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_pass(rig, CM_SIDR_REQ);
    const struct cm_event *request = rig_event(&rig->b, CM_CONNECT_REQUEST);
    assert_true(request->datagram);
    assert_int_equal(request->parameters.qpn, 0);
    assert_int_equal(request->parameters.private_length, 180);
    assert_string_equal((char *)request->parameters.private_data, "data");
    all.passive = identifier_find(&rig->b.manager, request->number);
    rig_accept(rig, &all);
    rig_pass(rig, CM_SIDR_REP);
    const struct cm_event *event = rig_event(&rig->a, CM_ESTABLISHED);
    assert_int_equal(event->parameters.qpn, 0x22);
    assert_int_equal(event->parameters.qkey, CM_QKEY);
    assert_int_equal(event->parameters.private_length, 136);
    assert_true(event->has_route);
    assert_memory_equal(event->route.gid, rig->b.port.gid, 16);
    rig_no_event(&rig->b); /* the passive side is connected without one */
    rig_quiet(rig);
    rig_end(rig, &all);
}

/* All services over IP have librdmacm's Q_Key: a program's own would reach no peer. With AF_IB it counts. */
static void over_ip_the_q_key_is_not_the_programs(void **state)
{
    static const struct {
        uint16_t family;
        uint32_t own, told;
    } rows[] = {{AF_INET, 0x1234, CM_QKEY}, {AF_INET, 0, CM_QKEY}, {AF_IB, 0x1234, 0x1234}, {AF_IB, 0, CM_QKEY}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig *rig = *state;
        struct connected all = rig_start(rig);
        struct cm_parameters parameters = rig_parameters(0x22);
        parameters.qkey = rows[i].own;
        rig_arrive(rig, &all);
        all.passive->source.family = rows[i].family;
        assert_int_equal(service_accept(all.passive, 0xc0, &parameters, &no_ece, rig->now), 0);
        rig_pass(rig, CM_SIDR_REP);
        assert_int_equal(rig_event(&rig->a, CM_ESTABLISHED)->parameters.qkey, rows[i].told);
        rig_end(rig, &all);
    }
}

static void an_answer_has_the_options_of_who_gives_it(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct cm_parameters parameters = rig_parameters(0x22);
    rig_arrive(rig, &all);
    assert_int_equal(service_accept(all.passive, 0xc0, &parameters,
                                    &(struct cm_ece){.vendor = 0xb1b2b3, .options = 0x1234}, rig->now),
                     0);
    rig_pass(rig, CM_SIDR_REP);
    const struct cm_event *event = rig_event(&rig->a, CM_ESTABLISHED);
    assert_int_equal(event->ece.vendor, 0xb1b2b3);
    assert_int_equal(event->ece.options, 0x1234);
    assert_string_equal((char *)event->parameters.private_data, "data");
    rig_end(rig, &all);
}

/* Linux does so: a caller that only confirms names no queue pair. */
static void confirming_a_request_answers_it_without_a_queue_pair(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_confirm(all.passive, rig->now), 0);
    rig_pass(rig, CM_SIDR_REP);
    const struct cm_event *event = rig_event(&rig->a, CM_ESTABLISHED);
    assert_int_equal(event->parameters.qpn, 0);
    assert_int_equal(event->parameters.qkey, CM_QKEY);
    rig_end(rig, &all);
}

/* A peer that refuses has not said them. */
static void a_refusal_names_no_queue_pair(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_reject(all.passive, 0, "no", 3, rig->now), 0);
    rig_next(rig, CM_SIDR_REP)->message.sidr_rep.qpn = 0x77; /* the peer names a queue pair nevertheless */
    rig_pass(rig, CM_SIDR_REP);
    const struct cm_event *event = rig_event(&rig->a, CM_UNREACHABLE);
    assert_int_equal(event->parameters.qpn, 0);
    assert_int_equal(event->parameters.qkey, 0);
    assert_int_equal(event->parameters.private_length, 136);
    assert_false(event->has_route);
    rig_end(rig, &all);
}

static void queue_pairs_of_datagrams_need_no_peer(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct ibv_qp_attr attr;
    int mask;
    for (enum ibv_qp_state qp_state = IBV_QPS_INIT; qp_state <= IBV_QPS_RTS; qp_state++) {
        assert_int_equal(attributes_of(all.active, qp_state, &attr, &mask), 0);
        assert_int_equal(mask, 0x71);
        assert_int_equal(attr.qkey, CM_QKEY);
    }
    rig_end(rig, &all);
}

static void a_lost_request_is_sent_again(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_lose(rig, CM_SIDR_REQ);
    rig_wait(rig, wait);
    rig_arrive(rig, &all);
    rig_end(rig, &all);
}

/* Linux forgets a request once it is answered, and asks the program again. */
static void a_lost_reply_is_sent_again_without_asking_the_program(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_lose(rig, CM_SIDR_REP);
    rig_wait(rig, wait);
    rig_pass(rig, CM_SIDR_REQ);
    rig_pass(rig, CM_SIDR_REP);
    rig_no_event(&rig->b);
    rig_event(&rig->a, CM_ESTABLISHED);
    rig_end(rig, &all);
}

static void a_repeated_request_is_silent_while_the_program_thinks(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_twice(rig, CM_SIDR_REQ);
    rig_pass(rig, CM_SIDR_REQ);
    rig_quiet(rig);
    rig_event(&rig->b, CM_CONNECT_REQUEST);
    rig_no_event(&rig->b);
    identifiers_destroy(&rig->b.manager, NULL, rig->now);
    all.listener = NULL;
    rig_end(rig, &all);
}

static void a_request_that_nobody_answers_ends_in_unreachable(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    for (unsigned i = 0; i <= REPEATS; i++) {
        rig_lose(rig, CM_SIDR_REQ);
        rig_no_event(&rig->a);
        rig_wait(rig, wait);
    }
    const struct cm_event *event = rig_event(&rig->a, CM_UNREACHABLE);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_int_equal(event->parameters.private_length, 0);
    rig_end(rig, &all);
}

static void nobody_listening_is_unreachable_with_a_status(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    identifier_destroy(all.listener, rig->now);
    all.listener = NULL;
    rig_pass(rig, CM_SIDR_REQ);
    rig_pass(rig, CM_SIDR_REP);
    assert_int_equal(rig_event(&rig->a, CM_UNREACHABLE)->status, CM_SIDR_UNSUPPORTED);
    rig_end(rig, &all);
}

static void a_reject_is_unreachable_with_a_status_and_data(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_reject(all.passive, 0, "no", 137, rig->now), EINVAL);
    assert_int_equal(service_reject(all.passive, 0, "no", 3, rig->now), 0);
    rig_pass(rig, CM_SIDR_REP);
    const struct cm_event *event = rig_event(&rig->a, CM_UNREACHABLE);
    assert_int_equal(event->status, CM_SIDR_REJECTED);
    assert_string_equal((char *)event->parameters.private_data, "no");
    rig_end(rig, &all);
}

static void destroyed_before_the_answer_the_peer_is_rejected(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    identifier_destroy(all.passive, rig->now);
    all.passive = NULL;
    rig_pass(rig, CM_SIDR_REP);
    assert_int_equal(rig_event(&rig->a, CM_UNREACHABLE)->status, CM_SIDR_REJECTED);
    rig_end(rig, &all);
}

static void a_full_backlog_rejects(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0x11);
    struct connected all = rig_start(rig);
    all.listener->backlog = 1;
    rig_pass(rig, CM_SIDR_REQ);
    struct identifier *second = rig_resolve(&rig->a, RIG_PORT);
    assert_int_equal(service_connect(second, &parameters, &no_ece, rig->now), 0);
    rig_pass(rig, CM_SIDR_REQ);
    rig_pass(rig, CM_SIDR_REP);
    assert_int_equal(rig_event(&rig->a, CM_UNREACHABLE)->status, CM_SIDR_REJECTED);
    identifier_destroy(second, rig->now);
    rig_end(rig, &all);
}

static void a_reply_from_another_address_is_nobodys(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    struct dispatch_datagram rep = *rig_next(rig, CM_SIDR_REP), reply;
    rep.route.gid[15] = 99;
    dispatch_receive(&rig->a.manager, &rep, &reply, rig->now);
    rig_no_event(&rig->a);
    rig_end(rig, &all);
}

/* No peer has rejected it. */
static void a_second_answer_is_refused_for_the_state(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct cm_parameters parameters = rig_parameters(0x22);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    assert_int_equal(service_accept(all.passive, 0xc0, &parameters, &no_ece, rig->now), EINVAL);
    assert_int_equal(rig->b.refused, REASON_CM_CONNECTION_STATE);
    rig_pass(rig, CM_SIDR_REP);
    rig_event(&rig->a, CM_ESTABLISHED);
    rig_end(rig, &all);
}

static void other_commands_mean_nothing(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_notify(all.passive, IBV_EVENT_COMM_EST, rig->now), EINVAL);
    assert_int_equal(service_disconnect(all.passive, rig->now), 0);
    rig_quiet(rig);
    assert_int_equal(identifier_set_ack_timeout(all.active, 14), EINVAL);
    rig_end(rig, &all);
}

/* A REQ finds no listener of datagrams, nor the other way round. */
static void services_do_not_mix(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct dispatch_datagram *req = rig_next(rig, CM_SIDR_REQ);
    uint64_t service = req->message.sidr_req.service;
    uint32_t id = req->message.local_id;
    req->message.attribute = CM_REQ;
    req->message.req = (struct cm_req){.service = service, .qpn = 1, .guid = 1};
    req->message.local_id = id;
    rig_pass(rig, CM_REQ);
    assert_int_equal(rig_next(rig, CM_REJ)->message.rej.reason, CM_REJECT_CONSUMER);
    rig_lose(rig, CM_REJ);
    rig_end(rig, &all);
}

/* --- multicast */

static const struct cm_address group = {.family = AF_INET, .gid = {[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 7}};

static struct identifier *bound(struct rig *rig)
{
    struct identifier *identifier;
    struct cm_address address = rig_address(&rig->a, 0);
    assert_int_equal(identifier_create(&rig->a.manager, &rig->a.queue, 1, CM_SPACE_UDP, 0, &identifier), 0);
    assert_int_equal(identifier_bind(identifier, &address), 0);
    return identifier;
}

static void joining_tells_the_group_with_a_number_of_its_own(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = bound(rig);
    uint32_t number, fetched;
    assert_int_equal(identifier_join(identifier, 0xd0, &group, &number), 0);
    const struct cm_event *event = rig_event(&rig->a, CM_MULTICAST_JOIN);
    assert_int_equal(event->uid, 0xd0);
    assert_int_equal(event->number, number);
    assert_int_equal(event->parameters.qpn, 0xffffff);
    assert_int_equal(event->parameters.qkey, CM_QKEY);
    assert_memory_equal(event->route.gid, group.gid, 16);
    assert_int_equal(event->route.hop_limit, 64);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->a.queue, number, &fetched), 0);
    assert_int_equal(fetched, 1);
    assert_int_equal(identifier_destroy(identifier, rig->now), 1); /* the event counts for both */
}

static void a_group_that_is_lost_is_an_error_and_a_membership_to_leave(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = bound(rig);
    uint32_t number, fetched;
    rig->a.loses = true;
    assert_int_equal(identifier_join(identifier, 0xd0, &group, &number), 0);
    const struct cm_event *event = rig_event(&rig->a, CM_MULTICAST_ERROR);
    assert_int_equal(event->uid, 0xd0);
    assert_int_equal(event->number, number);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->a.queue, number, &fetched), 0);
    assert_int_equal(fetched, 1);
    identifier_destroy(identifier, rig->now);
}

static void leaving_takes_back_what_was_not_fetched(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = bound(rig);
    uint32_t first, second, fetched;
    assert_int_equal(identifier_join(identifier, 1, &group, &first), 0);
    assert_int_equal(identifier_join(identifier, 2, &group, &second), 0);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->b.queue, first, &fetched), EINVAL);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->a.queue, first, &fetched), 0);
    assert_int_equal(fetched, 0);
    assert_int_equal(rig_event(&rig->a, CM_MULTICAST_JOIN)->number, second);
    rig_no_event(&rig->a);
    identifier_destroy(identifier, rig->now);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->a.queue, second, &fetched), ENOENT);
}

static void numbers_of_memberships_are_no_identifiers(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = bound(rig);
    uint32_t number, fetched;
    assert_int_equal(identifier_join(identifier, 1, &group, &number), 0);
    assert_null(identifier_find(&rig->a.manager, number));
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->a.queue, identifier_number(identifier), &fetched), ENOENT);
    identifiers_destroy(&rig->a.manager, &rig->a.queue, rig->now);
    assert_int_equal(rig->a.signalled, 0);
}

static void moved_identifiers_take_their_memberships_along(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = bound(rig);
    uint32_t number, fetched;
    assert_int_equal(identifier_join(identifier, 1, &group, &number), 0);
    identifier_migrate(identifier, &rig->b.queue);
    assert_int_equal(rig->a.signalled, 0);
    assert_int_equal(rig->b.signalled, 1);
    assert_int_equal(identifier_leave(&rig->a.manager, &rig->b.queue, number, &fetched), 0);
    assert_int_equal(rig->b.signalled, 0);
    identifier_destroy(identifier, rig->now);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, make, rig_free)
TESTS_OF(TEST, a_service_resolves_to_a_queue_pair,
               over_ip_the_q_key_is_not_the_programs,
               an_answer_has_the_options_of_who_gives_it,
               confirming_a_request_answers_it_without_a_queue_pair,
               a_refusal_names_no_queue_pair,
               queue_pairs_of_datagrams_need_no_peer,
               a_lost_request_is_sent_again,
               a_lost_reply_is_sent_again_without_asking_the_program,
               a_repeated_request_is_silent_while_the_program_thinks,
               a_request_that_nobody_answers_ends_in_unreachable,
               nobody_listening_is_unreachable_with_a_status,
               a_reject_is_unreachable_with_a_status_and_data,
               destroyed_before_the_answer_the_peer_is_rejected,
               a_full_backlog_rejects,
               a_reply_from_another_address_is_nobodys,
               a_second_answer_is_refused_for_the_state,
               other_commands_mean_nothing,
               services_do_not_mix,
               joining_tells_the_group_with_a_number_of_its_own,
               leaving_takes_back_what_was_not_fetched,
               a_group_that_is_lost_is_an_error_and_a_membership_to_leave,
               numbers_of_memberships_are_no_identifiers,
               moved_identifiers_take_their_memberships_along)
