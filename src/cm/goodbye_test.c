/* Scripts of how connections end before they are established, and after: by destroying an identifier, and by rejecting.
 */
#include "cm/connection.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/connect.h"
#include "cm/testing/rig.h"

static const struct cm_ece no_ece;
static const nanos req_wait = 6144 * NANOS_MILLISECOND;
static const nanos timewait = 2048 * NANOS_MILLISECOND;

/* --- goodbyes, by the state that an identifier is destroyed in */

static void destroyed_after_req_the_peer_hears_timeout(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    identifier_destroy(all.active, rig->now);
    all.active = NULL;
    const struct cm_message *rej = &rig_next(rig, CM_REJ)->message;
    assert_int_equal(rej->rej.reason, CM_REJECT_TIMEOUT);
    assert_int_equal(rej->remote_id, 0);
    assert_int_equal(rej->rej.information_length, 8);
    assert_int_equal(rej->rej.information[7], 1);
    rig_pass(rig, CM_REJ);
    rig_no_event(&rig->b); /* it has no uid yet */
    struct cm_parameters parameters = rig_parameters(0x22);
    assert_int_equal(service_accept(all.passive, 1, &parameters, &no_ece, rig->now), EINVAL);
    rig_end(rig, &all);
}

static void destroyed_after_req_and_accept_the_peer_is_rejected(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    identifier_destroy(all.active, rig->now);
    all.active = NULL;
    rig_lose(rig, CM_REJ);
    rig_pass(rig, CM_REP);
    rig_quiet(rig); /* no process is left that could send a message; the REP's timer ends it */
    rig_end(rig, &all);
}

static void destroyed_before_accept_the_peer_is_rejected(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    identifier_destroy(all.passive, rig->now);
    all.passive = NULL;
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_end(rig, &all);
}

static void destroyed_after_accept_the_peer_is_rejected_and_timewait_follows(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_event(&rig->a, CM_CONNECT_RESPONSE);
    identifier_destroy(all.passive, rig->now);
    all.passive = NULL;
    rig_pull(rig);
    assert_int_equal(rig->b.manager.sessions, 1);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_wait(rig, timewait);
    assert_int_equal(rig->b.manager.sessions, 0);
    rig_end(rig, &all);
}

static void destroyed_before_confirming_the_peer_is_rejected(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    identifier_destroy(all.active, rig->now);
    all.active = NULL;
    assert_int_equal(rig_next(rig, CM_REJ)->message.rej.about, CM_ABOUT_REP);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->b, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_end(rig, &all);
}

static void destroyed_when_established_the_peer_hears_of_it_once(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    identifier_destroy(all.active, rig->now);
    all.active = NULL;
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    rig_wait(rig, 4 * req_wait);
    rig_quiet(rig);
    assert_int_equal(rig->a.manager.sessions, 0);
    rig_end(rig, &all);
}

static void destroyed_after_dreq_it_is_answered(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREQ);
    identifier_destroy(all.passive, rig->now);
    all.passive = NULL;
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void a_listener_takes_its_requests_along(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_pass(rig, CM_REQ);
    assert_int_equal(identifier_destroy(all.listener, rig->now), 0);
    all.listener = NULL;
    rig_no_event(&rig->b);
    assert_int_equal(rig->b.signalled, 0);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_end(rig, &all);
}

/* --- what is owed to a peer, for when the process ends without a word */

/* Destroying the identifier says just that. */
static void is_owed_what_destroying_says(struct rig *rig, struct identifier **identifier, enum cm_attribute attribute)
{
    struct cm_message owed;
    struct session *session = (*identifier)->session;
    assert_true(session->operations->goodbye(session, &owed));
    assert_int_equal(owed.attribute, attribute);
    rig_quiet(rig);
    identifier_destroy(*identifier, rig->now);
    *identifier = NULL;
    assert_memory_equal(&rig_next(rig, attribute)->message, &owed, sizeof owed);
    rig_settle(rig);
}

static void the_peer_of_a_request_is_owed_a_reject(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    is_owed_what_destroying_says(rig, &all.active, CM_REJ);
    rig_end(rig, &all);
}

static void who_waits_to_be_accepted_is_owed_a_reject(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    is_owed_what_destroying_says(rig, &all.passive, CM_REJ);
    rig_event(&rig->a, CM_REJECTED);
    rig_end(rig, &all);
}

static void the_peer_of_a_connection_is_owed_a_dreq(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    is_owed_what_destroying_says(rig, &all.passive, CM_DREQ);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void who_waits_for_a_drep_is_owed_it(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    is_owed_what_destroying_says(rig, &all.passive, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

/* The DREP may be lost, and the peer asks again when the process has ended; its goodbye does not wait for that. */
static void a_drep_is_owed_again(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    struct cm_message first, owed;
    service_disconnect(all.active, rig->now);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    service_disconnect(all.passive, rig->now);
    const struct session *session = all.passive->session;
    first = rig_next(rig, CM_DREP)->message;
    assert_true(connection_goodbye(connect_of(session), &owed));
    assert_memory_equal(&first, &owed, sizeof owed);
    identifier_destroy(all.passive, rig->now); /* the session has its timewait */
    all.passive = NULL;
    assert_true(connection_goodbye(connect_of(session), &owed));
    assert_memory_equal(&first, &owed, sizeof owed);
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    rig_end(rig, &all);
}

static void a_dreq_that_is_not_answered_is_owed_again_and_behind_it_nothing(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    struct cm_message owed;
    service_disconnect(all.active, rig->now);
    rig_pull(rig);
    assert_true(connection_goodbye(connect_of(all.active->session), &owed));
    assert_memory_equal(&rig_next(rig, CM_DREQ)->message, &owed, sizeof owed);
    rig_pass(rig, CM_DREQ);
    rig_event(&rig->b, CM_DISCONNECTED);
    service_disconnect(all.passive, rig->now);
    rig_pass(rig, CM_DREP);
    rig_event(&rig->a, CM_DISCONNECTED);
    assert_false(connection_goodbye(connect_of(all.active->session), &owed));
    assert_true(connect_of(all.active->session)->parting & CONNECTION_DREP_CAME);
    rig_end(rig, &all);
}

/* --- processes of this host that end without a word */

static void bereave(struct rig *rig, struct host *host)
{
    dispatch_bereave(&host->manager, host->peer->address, rig->now);
}

static void a_peer_that_dies_disconnects(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    bereave(rig, &rig->a);
    assert_int_equal(rig_event(&rig->a, CM_DISCONNECTED)->status, 0);
    rig_quiet(rig);
    rig_wait(rig, 2048 * NANOS_MILLISECOND);
    rig_event(&rig->a, CM_TIMEWAIT_EXIT);
    service_disconnect(all.passive, rig->now);
    bereave(rig, &rig->b);
    assert_int_equal(rig_event(&rig->b, CM_DISCONNECTED)->status, 0);
    rig_end(rig, &all);
}

static void a_peer_that_dies_before_it_is_established_rejects(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_event(&rig->a, CM_CONNECT_RESPONSE);
    bereave(rig, &rig->a);
    const struct cm_event *event = rig_event(&rig->a, CM_REJECTED);
    assert_int_equal(event->status, CM_REJECT_CONSUMER);
    assert_int_equal(event->parameters.private_length, 0);
    bereave(rig, &rig->b);
    rig_event(&rig->b, CM_REJECTED);
    rig_end(rig, &all);
}

static void a_request_of_a_peer_that_died_is_never_seen(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_pass(rig, CM_REQ);
    bereave(rig, &rig->b);
    rig_no_event(&rig->b);
    assert_int_equal(rig->b.manager.sessions, 1); /* a REJ is on its way, and leads nowhere */
    rig_lose(rig, CM_REJ);
    assert_int_equal(all.listener->account.requests, 0);
    rig_end(rig, &all);
}

static void the_death_of_another_changes_nothing(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    dispatch_bereave(&rig->a.manager, 77, rig->now);
    rig_no_event(&rig->a);
    rig_end(rig, &all);
}

/* --- rejecting */

static void a_reject_carries_its_reason_and_data(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_reject(all.passive, 3, "no", 3, rig->now), EINVAL);
    assert_int_equal(service_reject(all.passive, CM_REJECT_VENDOR_OPTION, "no", 149, rig->now), EINVAL);
    assert_int_equal(service_reject(all.passive, CM_REJECT_VENDOR_OPTION, "no", 3, rig->now), 0);
    rig_pass(rig, CM_REJ);
    const struct cm_event *event = rig_event(&rig->a, CM_REJECTED);
    assert_int_equal(event->status, CM_REJECT_VENDOR_OPTION);
    assert_int_equal(event->parameters.private_length, 148);
    assert_string_equal((char *)event->parameters.private_data, "no");
    rig_end(rig, &all);
}

static void a_failing_accept_rejects(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct cm_parameters parameters = rig_parameters(0x22);
    rig_arrive(rig, &all);
    parameters.private_length = 197;
    assert_int_equal(service_accept(all.passive, 1, &parameters, &no_ece, rig->now), EINVAL);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_end(rig, &all);
}

static void too_long_private_data_is_refused_and_the_state_stays(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0x11);
    struct connected all = {.active = rig_resolve(&rig->a, RIG_PORT)};
    parameters.private_length = 57;
    assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), EINVAL);
    parameters.private_length = 56;
    assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
    rig_end(rig, &all);
}

static void another_service_is_no_service(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    identifier_destroy(all.listener, rig->now);
    all.listener = rig_listen(&rig->b, RIG_PORT + 1);
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_INVALID_SERVICE);
    rig_end(rig, &all);
}

static void another_address_is_a_reject_by_the_consumer(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    all.listener->source.gid[15]++;
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_REJ);
    all.listener->source.gid[15]--;
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_CONSUMER);
    rig_end(rig, &all);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
    const struct CMUnitTest tests[] = {
        TEST(destroyed_after_req_the_peer_hears_timeout),
        TEST(destroyed_after_req_and_accept_the_peer_is_rejected),
        TEST(destroyed_before_accept_the_peer_is_rejected),
        TEST(destroyed_after_accept_the_peer_is_rejected_and_timewait_follows),
        TEST(destroyed_before_confirming_the_peer_is_rejected),
        TEST(destroyed_when_established_the_peer_hears_of_it_once),
        TEST(destroyed_after_dreq_it_is_answered),
        TEST(a_listener_takes_its_requests_along),
        TEST(a_reject_carries_its_reason_and_data),
        TEST(a_failing_accept_rejects),
        TEST(too_long_private_data_is_refused_and_the_state_stays),
        TEST(another_service_is_no_service),
        TEST(another_address_is_a_reject_by_the_consumer),
        TEST(the_peer_of_a_request_is_owed_a_reject),
        TEST(who_waits_to_be_accepted_is_owed_a_reject),
        TEST(the_peer_of_a_connection_is_owed_a_dreq),
        TEST(who_waits_for_a_drep_is_owed_it),
        TEST(a_drep_is_owed_again),
        TEST(a_dreq_that_is_not_answered_is_owed_again_and_behind_it_nothing),
        TEST(a_peer_that_dies_disconnects),
        TEST(a_peer_that_dies_before_it_is_established_rejects),
        TEST(a_request_of_a_peer_that_died_is_never_seen),
        TEST(the_death_of_another_changes_nothing),
    };
    return cmocka_run_group_tests_name("goodbye", tests, NULL, NULL);
}
