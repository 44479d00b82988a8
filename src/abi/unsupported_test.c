#include "abi/unsupported.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void what_is_not_built_answers_eopnotsupp(void **unused)
{
    errno = 0;
    assert_int_equal(unsupported("a test"), EOPNOTSUPP);
    assert_int_equal(errno, EOPNOTSUPP);
}

struct counts {
    unsigned operations, exported, private;
    bool flow_action, event_name;
};

static void count(const char *name, const char *why, void *context)
{
    struct counts *counts = context;
    assert_true(strlen(why) > 0);
    if (strchr(name, '.'))
        counts->operations++;
    else if (strstr(why, "provider"))
        counts->private ++;
    else
        counts->exported++;
    counts->flow_action |= !strcmp(name, "verbs_context.create_flow_action_esp");
    counts->event_name |= !strcmp(name, "ibv_event_type_str");
}

static void what_is_missing_can_be_listed_and_what_is_built_is_not_in_it(void **unused)
{
    struct counts with = {0}, without = {0};
    unsupported_each(true, count, &with);
    unsupported_each(false, count, &without);
    assert_int_equal(with.private, 89);
    assert_int_equal(without.private, 0);
    assert_int_equal(with.exported, without.exported);
    assert_true(with.flow_action);
    assert_false(with.event_name);
}

static struct ibv_mr *own_alloc_null_mr(struct ibv_pd *pd)
{
    return NULL;
}

static void a_stub_fills_only_the_place_that_is_empty(void **unused)
{
    struct verbs_context context = {.alloc_null_mr = own_alloc_null_mr};
    unsupported_fill_context(&context);
    assert_ptr_equal(context.alloc_null_mr, own_alloc_null_mr);
    assert_non_null(context.create_flow_action_esp);
}

static void stubs_answer_in_the_way_of_their_operation(void **unused)
{
    struct verbs_context context = {0};
    unsupported_fill_context(&context);
    assert_null(context.create_flow_action_esp(NULL, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_int_equal(context.destroy_flow_action(NULL), EOPNOTSUPP);
    assert_int_equal(errno, EOPNOTSUPP);
}

/* Private, and so never to be built. */
struct ibv_context *verbs_open_device(struct ibv_device *, void *);
int ibv_cmd_destroy_flow(struct ibv_flow *);

static void an_exported_function_that_nobody_built_is_there_and_refuses(void **unused)
{
    errno = 0;
    assert_null(verbs_open_device(NULL, NULL));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_cmd_destroy_flow(NULL), EOPNOTSUPP);
}

/* A REFUSED line of calls/verbs.def that was forgotten would list as missing what is built. */
static void an_operation_that_an_open_device_has_is_not_listed_as_missing(void **unused)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    if (!devices)
        skip();
    struct ibv_context *opened = ibv_open_device(devices[0]);
    assert_non_null(opened);
    struct verbs_context stubs = {0}, *context = verbs_get_ctx(opened);
    unsupported_fill_context(&stubs);
#define SAME_ibv_context_ops(member) assert_ptr_equal(context->context.ops.member, stubs.context.ops.member);
#define SAME_verbs_context(member) assert_ptr_equal(context->member, stubs.member);
#define SAME_ibv_qp_ex(member)
#define SAME_ibv_cq_ex(member)
#define SAME_ibv_wq(member)
#define SAME_ibv_dm(member)
#define REFUSED(table, answer, member, why) SAME_##table(member)
#include "base/testing/group.h"
#include "calls/verbs.def"
    ibv_close_device(opened);
    ibv_free_device_list(devices);
}

TESTS(what_is_not_built_answers_eopnotsupp,
      what_is_missing_can_be_listed_and_what_is_built_is_not_in_it,
      a_stub_fills_only_the_place_that_is_empty,
      stubs_answer_in_the_way_of_their_operation,
      an_exported_function_that_nobody_built_is_there_and_refuses,
      an_operation_that_an_open_device_has_is_not_listed_as_missing)
