/* The device that a call is about, by the subject of the call. */
#include "report/reach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "config/device.h"
#include "verbs/object/context.h"

static struct device device = {.name = "soft3"};
static struct context context;

static const char *device_of(const char *kind, const void *object)
{
    const struct calls_subject subject = {.kind = kind, .object = (uintptr_t)object};
    return report_reach.device(&subject);
}

static int make(void **unused)
{
    context.device = &device;
    return 0;
}

static void a_device_has_its_own_name(void **unused)
{
    struct ibv_device ibv = {.name = "soft1"};
    assert_string_equal(device_of("device", &ibv), "soft1");
    assert_null(device_of("device", NULL)); /* ibv_open_device(NULL) */
}

static struct ibv_context *ibv_of(struct context *of)
{
    return &of->ibv.context;
}

/* Each struct of objects begins with its context, but a flow's. */
static void an_object_has_the_device_of_its_context(void **unused)
{
    struct ibv_qp qp = {.context = ibv_of(&context)};
    struct ibv_mr mr = {.context = ibv_of(&context)};
    struct ibv_flow flow = {.comp_mask = 1, .context = ibv_of(&context)};
    assert_string_equal(device_of("context", ibv_of(&context)), "soft3");
    assert_string_equal(device_of("qp", &qp), "soft3");
    assert_string_equal(device_of("mr", &mr), "soft3");
    assert_string_equal(device_of("flow", &flow), "soft3");
}

static void what_has_no_context_has_no_device(void **unused)
{
    struct ibv_qp stale = {.context = NULL};
    int other[4] = {1, 2, 3, 4}; /* is not read as a pointer to a context */
    assert_null(device_of(NULL, NULL));
    assert_null(device_of("qp", NULL));
    assert_null(device_of("qp", &stale));
    assert_null(device_of("identifier", other));
    assert_null(device_of("buf", other));
}

/* An event for a queue pair leaves a call about another kind, or about nothing, alone. */
static void an_event_for_another_kind_does_nothing(void **unused)
{
    const struct script_raised raised = {.type = IBV_EVENT_QP_FATAL, .of = "qp"};
    int other[4] = {1, 2, 3, 4};
    report_reach.event(&(struct calls_subject){.kind = "cq", .object = (uintptr_t)other}, &raised);
    report_reach.event(&(struct calls_subject){.kind = "qp"}, &raised);
    report_reach.event(&(struct calls_subject){.kind = NULL}, &raised);
    assert_int_equal(other[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_its_own_name),
        cmocka_unit_test(an_object_has_the_device_of_its_context),
        cmocka_unit_test(what_has_no_context_has_no_device),
        cmocka_unit_test(an_event_for_another_kind_does_nothing),
    };
    return cmocka_run_group_tests_name("inject", tests, make, NULL);
}
