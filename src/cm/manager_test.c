/* The numbers of a manager, and the hosts that it has to do with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "cm/testing/rig.h"

/* The first values of splitmix64 from 0, as its author publishes the algorithm. */
static void random_numbers_are_those_of_splitmix64(void **state)
{
    static const uint64_t values[] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f};
    struct manager manager = {.random = 0};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(manager_random(&manager) == values[i]);
}

/* A session that waits for a peer's answer, or that peer's, makes its host known. */
static void a_host_is_known_while_a_session_is_there(void **state)
{
    struct rig *rig = *state;
    assert_false(dispatch_knows(&rig->a.manager, rig->b.port.gid));
    struct connected all = rig_connect(rig);
    assert_true(dispatch_knows(&rig->a.manager, rig->b.port.gid));
    assert_true(dispatch_knows(&rig->b.manager, rig->a.port.gid));
    assert_false(dispatch_knows(&rig->a.manager, rig->a.port.gid));
    rig_end(rig, &all);
    assert_false(dispatch_knows(&rig->a.manager, rig->b.port.gid));
}

/* The ends find it by its GUID and its number, so that a REQ from it after its restart finds the old connection. */
static void the_queue_pair_of_a_peer_is_known_once_it_is_named(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_ptr_equal(manager_find_remote_qp(&rig->b.manager, rig->a.port.guid, 0x11, NULL), all.passive->session);
    rig_accept(rig, &all);
    assert_null(manager_find_remote_qp(&rig->a.manager, rig->b.port.guid, 0x22, NULL));
    rig_pass(rig, CM_REP);
    assert_ptr_equal(manager_find_remote_qp(&rig->a.manager, rig->b.port.guid, 0x22, NULL), all.active->session);
    rig_confirm(rig, &all);
    rig_pass(rig, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    rig_end(rig, &all);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
TESTS_OF(TEST, random_numbers_are_those_of_splitmix64,
               a_host_is_known_while_a_session_is_there,
               the_queue_pair_of_a_peer_is_known_once_it_is_named)
