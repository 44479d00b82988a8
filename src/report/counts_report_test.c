/* Counts as JSON. */
#include "report/counts_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "diag/diag.h"
#include "wire/op.h"

static struct counts_total total;

static int begin(void **unused)
{
    memset(&total, 0, sizeof total);
    return 0;
}

/* The report has this text. */
static bool has(const uint64_t *by_peers, const char *text)
{
    char *json = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    assert_non_null(out);
    counts_report(out, &total, by_peers);
    fclose(out);
    bool found = strstr(json, text);
    free(json);
    return found;
}

static void packets_are_counted_by_their_operations(void **unused)
{
    assert_true(has(NULL, "\"sent\":{}"));
    total.packets[EVENT_PACKET_SENT][SERVICE_RC << 5 | OPERATION_SEND_ONLY] = 3;
    total.packets[EVENT_PACKET_RECEIVED][SERVICE_RC << 5 | OPERATION_ACKNOWLEDGE] = 2;
    total.rest.packets[EVENT_PACKET_SENT][0] = 4;
    assert_true(has(NULL, "\"sent\":{\"RC SEND_ONLY\":3,\"ETHERNET\":4}"));
    assert_true(has(NULL, "\"received\":{\"RC ACKNOWLEDGE\":2}"));
}

/* CNPs have a number of their own, and are packets, too. */
static void a_cnp_is_a_packet(void **unused)
{
    counts_add(&total.rest, EVENT_CNP_SENT, 5, 0);
    assert_true(has(NULL, "\"sent\":{\"CNP\":5}"));
    assert_true(has(NULL, "\"received\":{}"));
    assert_true(has(NULL, "\"cnps_sent\":5"));
}

static void work_that_failed_has_the_name_of_its_reason(void **unused)
{
    total.rest.reasons[counts_place(REASON_RETRY_EXCEEDED)] = 2;
    total.rest.reasons[counts_place(1)] = 7;
    assert_true(has(NULL, "\"RETRY_EXCEEDED\":2"));
    assert_true(has(NULL, "\"dropped\":{\"1\":7}"));
}

static void parts_of_a_key_are_one_object(void **unused)
{
    const uint64_t by_peers[8] = {6};
    counts_add(&total.rest, EVENT_DIRECT_READ, 9, 100);
    assert_true(has(NULL, "\"direct\":{\"WRITE\":0,\"READ\":9}"));
    assert_true(has(NULL, "\"fault_kinds\":{}"));
    assert_false(has(NULL, "\"direct_by_peers\""));
    assert_true(has(by_peers, "\"direct_by_peers\":{\"WRITE\":6,"));
}

#define TEST(test) cmocka_unit_test_setup(test, begin)
TESTS_OF(TEST, packets_are_counted_by_their_operations,
               a_cnp_is_a_packet,
               work_that_failed_has_the_name_of_its_reason,
               parts_of_a_key_are_one_object)
