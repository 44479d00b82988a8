/* Why an event of the connection manager is bad news, and the room of requests that wait for their listener. */
#include "gsi/cm/cm_reason.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "diag/diag.h"
#include "gsi/cm/cm_waiting.h"
#include "wire/cm/cm.h"

static void a_status_has_the_reason_of_its_event(void **unused)
{
    static const struct {
        enum cm_event_kind kind;
        int status;
        enum reason reason;
    } rows[] = {
        {CM_REJECTED, CM_REJECT_INVALID_SERVICE, REASON_CM_NOBODY_LISTENS},
        {CM_REJECTED, CM_REJECT_CONSUMER, REASON_CM_REJECTED},
        {CM_REJECTED, CM_REJECT_STALE, REASON_CM_STALE},
        {CM_REJECTED, CM_REJECT_VENDOR_OPTION, REASON_CM_REFUSED},
        {CM_UNREACHABLE, CM_SIDR_UNSUPPORTED, REASON_CM_NOBODY_LISTENS},
        {CM_UNREACHABLE, CM_SIDR_REJECTED, REASON_CM_REJECTED},
        {CM_UNREACHABLE, -ETIMEDOUT, REASON_CM_UNANSWERED},
        {CM_UNREACHABLE, -EIO, REASON_CM_REFUSED},
        {CM_ADDR_ERROR, -ENODEV, REASON_CM_NO_DEVICE},
        {CM_ADDR_ERROR, -ETIMEDOUT, REASON_CM_NO_NEIGHBOR},
        {CM_ADDR_ERROR, -EINVAL, REASON_CM_NO_ROUTE},
        {CM_DISCONNECTED, -ETIMEDOUT, REASON_CM_DREQ_UNANSWERED},
        {CM_DISCONNECTED, -EINVAL, REASON_NONE},
        {CM_DISCONNECTED, 0, REASON_NONE},
        {CM_REJECTED, 0, REASON_NONE},
        {CM_ESTABLISHED, 1, REASON_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cm_reason(rows[i].kind, rows[i].status) != rows[i].reason)
            fail_msg("event %d, status %d: reason %d, not %d", rows[i].kind, rows[i].status,
                     cm_reason(rows[i].kind, rows[i].status), rows[i].reason);
}

static void requests_wait_up_to_a_number(void **unused)
{
    struct cm_waiting *waiting = calloc(1, sizeof *waiting);
    const struct datagram_route route = {.source_port = 4000};
    struct dispatch_datagram datagram = {.message = {.attribute = CM_REQ}};
    for (unsigned i = 0; i < CM_WAITING_MAX; i++) {
        datagram.message.remote_id = i;
        struct udp_arrival arrival = {.route = i ? &route : NULL, .interface = i};
        assert_true(cm_waiting_add(waiting, &datagram, &arrival, i + 1));
    }
    assert_false(cm_waiting_add(waiting, &datagram, &(struct udp_arrival){.route = &route}, 1));
    assert_int_equal(waiting->count, CM_WAITING_MAX);
    assert_int_equal(waiting->requests[0].source_port, 0);
    assert_int_equal(waiting->requests[9].source_port, 4000);
    assert_int_equal(waiting->requests[9].interface, 9);
    assert_int_equal(waiting->requests[9].until, 10);
    assert_int_equal(waiting->requests[9].datagram.message.remote_id, 9);
    free(waiting);
}

TESTS(a_status_has_the_reason_of_its_event,
      requests_wait_up_to_a_number)
