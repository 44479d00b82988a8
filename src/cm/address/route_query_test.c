/* Routes that get no answer, and devices whose address changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "cm/testing/rig.h"

static const struct cm_address none;

static struct identifier *create(struct rig *rig)
{
    struct identifier *identifier;
    assert_int_equal(identifier_create(&rig->a.manager, &rig->a.queue, 0xa0, CM_SPACE_TCP, 0, &identifier), 0);
    return identifier;
}

static void resolve(struct rig *rig, struct identifier *identifier)
{
    struct cm_address address = rig_address(&rig->b, RIG_PORT);
    assert_int_equal(address_query_start(identifier, &none, &address, 2000, rig->now), 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
}

static struct identifier *lost(struct rig *rig)
{
    struct identifier *identifier = create(rig);
    resolve(rig, identifier);
    rig->a.loses = true;
    assert_int_equal(route_query_start(identifier, 500, rig->now), 0);
    rig->a.loses = false;
    assert_int_equal(identifier->state, IDENTIFIER_ROUTE_QUERY);
    return identifier;
}

static void a_route_that_is_lost_is_an_error_after_the_timeout_and_can_be_asked_anew(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = lost(rig);
    rig_wait(rig, 499 * NANOS_MILLISECOND);
    rig_no_event(&rig->a);
    rig_wait(rig, NANOS_MILLISECOND);
    assert_int_equal(rig_event(&rig->a, CM_ROUTE_ERROR)->status, -ETIMEDOUT);
    assert_int_equal(identifier->state, IDENTIFIER_ADDR_RESOLVED);
    assert_int_equal(route_query_start(identifier, 500, rig->now), 0);
    rig_event(&rig->a, CM_ROUTE_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

static void who_is_destroyed_meanwhile_hears_nothing_of_its_route(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = lost(rig);
    identifier_destroy(identifier, rig->now);
    rig_wait(rig, NANOS_SECOND);
    rig_no_event(&rig->a);
}

static void another_address_is_an_event_for_those_on_the_device_alone(void **state)
{
    struct rig *rig = *state;
    struct identifier *on_it = create(rig), *on_none = create(rig);
    resolve(rig, on_it);
    identifiers_event_of_device(&rig->a.manager, rig->a.port.device + 1, CM_ADDR_CHANGE);
    rig_no_event(&rig->a);
    identifiers_event_of_device(&rig->a.manager, rig->a.port.device, CM_ADDR_CHANGE);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_CHANGE)->number, identifier_number(on_it));
    rig_no_event(&rig->a);
    identifier_destroy(on_it, rig->now);
    identifier_destroy(on_none, rig->now);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
TESTS_OF(TEST, a_route_that_is_lost_is_an_error_after_the_timeout_and_can_be_asked_anew,
               who_is_destroyed_meanwhile_hears_nothing_of_its_route,
               another_address_is_an_event_for_those_on_the_device_alone)
