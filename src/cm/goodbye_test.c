/* Scripts of how connections end before they are established, and after: by destroying an identifier, and by rejecting.
 */
#include "cm/connection.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/connect.h"
#include "cm/testing/steps.h"

static const struct cm_ece no_ece;
#define REQ_WAIT (6144 * NANOS_MILLISECOND)
#define TIMEWAIT (2048 * NANOS_MILLISECOND)

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

/* --- scripts */

static void active_is_owed(struct rig *rig, struct connected *all, int64_t message)
{
    is_owed_what_destroying_says(rig, &all->active, (enum cm_attribute)message);
}

static void passive_is_owed(struct rig *rig, struct connected *all, int64_t message)
{
    is_owed_what_destroying_says(rig, &all->passive, (enum cm_attribute)message);
}

static void peer_of_a_dies(struct rig *rig, struct connected *all, int64_t unused)
{
    bereave(rig, &rig->a);
}

static void peer_of_b_dies(struct rig *rig, struct connected *all, int64_t unused)
{
    bereave(rig, &rig->b);
}

static void signals_of_b(struct rig *rig, struct connected *all, int64_t count)
{
    assert_int_equal(rig->b.signalled, count);
}

static void private_data(struct rig *rig, struct connected *all, int64_t length)
{
    assert_int_equal(rig->last->parameters.private_length, length);
}

static void requests(struct rig *rig, struct connected *all, int64_t count)
{
    assert_int_equal(all->listener->account.requests, count);
}

static void listen_elsewhere(struct rig *rig, struct connected *all, int64_t port)
{
    identifier_destroy(all->listener, rig->now);
    all->listener = rig_listen(&rig->b, (uint16_t)port);
}

static void move_listener(struct rig *rig, struct connected *all, int64_t by)
{
    all->listener->source.gid[15] = (uint8_t)(all->listener->source.gid[15] + by);
}

/* clang-format off */
static const struct script scripts[] = {
    /* goodbyes, by the state that an identifier is destroyed in; no process is left that could send a message after the second: the REP's
     * timer ends it */
    {"destroyed after REQ and accept, the peer is rejected", {START, ARRIVE, ACCEPT, A_LEAVES, LOSE(REJ), PASS(REP), QUIET}},
    {"destroyed before accept, the peer is rejected", {START, ARRIVE, B_LEAVES, PASS(REJ), A_GETS(REJECTED), STATUS(CM_REJECT_CONSUMER)}},
    {"destroyed after accept, the peer is rejected and timewait follows",
     {START, ARRIVE, ACCEPT, PASS(REP), A_GETS(CONNECT_RESPONSE), B_LEAVES, PULL, SESSIONS_B(1), PASS(REJ), A_GETS(REJECTED),
      STATUS(CM_REJECT_CONSUMER), WAIT(TIMEWAIT), SESSIONS_B(0)}},
    {"destroyed before confirming, the peer is rejected",
     {START, ARRIVE, ACCEPT, PASS(REP), A_LEAVES, ABOUT(REP), PASS(REJ), B_GETS(REJECTED), STATUS(CM_REJECT_CONSUMER)}},
    {"destroyed when established, the peer hears of it once",
     {CONNECT, A_LEAVES, PASS(DREQ), B_GETS(DISCONNECTED), WAIT(4 * REQ_WAIT), QUIET, SESSIONS_A(0)}},
    {"destroyed after DREQ it is answered", {CONNECT, A_HANGS_UP, PASS(DREQ), B_LEAVES, PASS(DREP), A_GETS(DISCONNECTED)}},
    {"a listener takes its requests along",
     {START, PASS(REQ), LISTENER_LEAVES, B_GETS_NOTHING, {signals_of_b, 0}, PASS(REJ), A_GETS(REJECTED), STATUS(CM_REJECT_CONSUMER)}},
    /* what is owed to a peer, for when the process ends without a word */
    {"the peer of a request is owed a reject", {START, ARRIVE, {active_is_owed, CM_REJ}}},
    {"who waits to be accepted is owed a reject", {START, ARRIVE, {passive_is_owed, CM_REJ}, A_GETS(REJECTED)}},
    {"the peer of a connection is owed a DREQ", {CONNECT, {passive_is_owed, CM_DREQ}, A_GETS(DISCONNECTED)}},
    {"who waits for a DREP is owed it",
     {CONNECT, A_HANGS_UP, PASS(DREQ), B_GETS(DISCONNECTED), {passive_is_owed, CM_DREP}, A_GETS(DISCONNECTED)}},
    /* processes of this host that end without a word */
    {"a peer that dies disconnects",
     {CONNECT, {peer_of_a_dies, 0}, A_GETS(DISCONNECTED), STATUS(0), QUIET, WAIT(TIMEWAIT), A_GETS(TIMEWAIT_EXIT), B_HANGS_UP, {peer_of_b_dies, 0},
      B_GETS(DISCONNECTED), STATUS(0)}},
    {"a peer that dies before it is established rejects",
     {START, ARRIVE, ACCEPT, PASS(REP), A_GETS(CONNECT_RESPONSE), {peer_of_a_dies, 0}, A_GETS(REJECTED), STATUS(CM_REJECT_CONSUMER),
      {private_data, 0}, {peer_of_b_dies, 0}, B_GETS(REJECTED)}},
    {"a request of a peer that died is never seen; a REJ is on its way, and leads nowhere",
     {START, PASS(REQ), {peer_of_b_dies, 0}, B_GETS_NOTHING, SESSIONS_B(1), LOSE(REJ), {requests, 0}}},
    /* rejecting */
    {"another service is no service",
     {START, {listen_elsewhere, RIG_PORT + 1}, PASS(REQ), PASS(REJ), A_GETS(REJECTED), STATUS(CM_REJECT_INVALID_SERVICE)}},
    {"another address is a reject by the consumer",
     {START, {move_listener, 1}, PASS(REQ), PASS(REJ), {move_listener, -1}, A_GETS(REJECTED), STATUS(CM_REJECT_CONSUMER)}},
};
/* clang-format on */

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
    const struct CMUnitTest tests[] = {
        TEST(destroyed_after_req_the_peer_hears_timeout),
        TEST(a_reject_carries_its_reason_and_data),
        TEST(a_failing_accept_rejects),
        TEST(too_long_private_data_is_refused_and_the_state_stays),
        TEST(a_drep_is_owed_again),
        TEST(a_dreq_that_is_not_answered_is_owed_again_and_behind_it_nothing),
        TEST(the_death_of_another_changes_nothing),
    };
    return SCRIPTS_RUN("scripts of goodbyes", scripts) | cmocka_run_group_tests_name("goodbye", tests, NULL, NULL);
}
