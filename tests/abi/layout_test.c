/* The sizes and offsets that programs compiled in and our library therefore must keep, and the look of an open device
 * from outside. Linked against the library itself. */
#include <infiniband/verbs.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* RELEASE is the installed header's release, from meson. */
#if __SIZEOF_POINTER__ == 8 && defined(__x86_64__)
#define SIZE(structure, bytes) _Static_assert(sizeof(structure) == (bytes), "");
#define AT(structure, member, offset) _Static_assert(offsetof(structure, member) == (offset), #member);
#include "layouts.def"
_Static_assert(NEWER_QP_EX_BYTES == 360, "what a program of the newest release looks at");
_Static_assert(sizeof(struct newer_mr_init_attr) == 72, "of release 64");
_Static_assert(offsetof(struct newer_mr_init_attr, dmah) == 56, "of release 59");
_Static_assert(sizeof(struct newer_dmah) == 8, "of release 59");
_Static_assert(sizeof(struct newer_dmah_init_attr) == 12, "of release 59");
_Static_assert(sizeof(struct newer_comp_cntr) == 16, "of release 65");
_Static_assert(sizeof(struct newer_comp_cntr_caps) == 16, "of release 65");
_Static_assert(offsetof(struct newer_comp_cntr_caps, supported_qp_attach_ops) == 12, "of release 65");
_Static_assert(sizeof(struct newer_comp_cntr_init_attr) == 12, "of release 65");
_Static_assert(sizeof(struct newer_qp_attach_comp_cntr_attr) == 8, "of release 65");
#endif

enum { PORT_ATTR_BYTES = 48, PRIVATE_TAIL = 64 };

static struct ibv_device **devices;
static struct ibv_context *opened;

static int open_first(void **unused)
{
    devices = ibv_get_device_list(NULL);
    opened = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    return 0;
}

static int close_first(void **unused)
{
    if (opened)
        ibv_close_device(opened);
    if (devices)
        ibv_free_device_list(devices);
    return 0;
}

static void need_device(void)
{
    if (!opened)
        skip();
}

/* The verbs_get_ctx of rdma-core, unlike ours, is inline in the program. */
static void an_open_device_has_the_extended_context(void **unused)
{
    need_device();
    assert_ptr_equal(opened->abi_compat, (void *)UINTPTR_MAX);
    struct verbs_context *context = verbs_get_ctx(opened);
    assert_non_null(context);
    assert_ptr_equal(&context->context, opened);
    assert_true(context->sz >= sizeof(struct verbs_context));
    assert_ptr_equal(opened->device, devices[0]);
}

static void programs_poll_the_descriptor_of_an_open_device(void **unused)
{
    need_device();
    assert_true(opened->async_fd >= 0);
    assert_int_equal(opened->num_comp_vectors > 0, 1);
}

/* libmlx5 and libefa look there for their own operations, to see whether the device is theirs. */
static void behind_the_device_there_are_zeros(void **unused)
{
    need_device();
    static const char zeros[PRIVATE_TAIL];
    assert_memory_equal((const char *)devices[0] + sizeof(struct ibv_device), zeros, sizeof zeros);
}

#undef ibv_query_port
/* Older programs call the exported function, with a shorter structure. */
static void the_exported_query_of_a_port_writes_48_bytes(void **unused)
{
    need_device();
    union {
        struct ibv_port_attr attr;
        unsigned char bytes[sizeof(struct ibv_port_attr) + PRIVATE_TAIL];
    } port;
    memset(&port, 0xa5, sizeof port);
    assert_int_equal(ibv_query_port(opened, 1, (struct _compat_ibv_port_attr *)&port.attr), 0);
    for (size_t i = PORT_ATTR_BYTES; i < sizeof port; i++)
        assert_int_equal(port.bytes[i], 0xa5);
    assert_int_equal(port.attr.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_not_equal(port.attr.flags, 0xa5);
}

#define OPERATION(member)                                                                                              \
    {                                                                                                                  \
#member, offsetof(struct verbs_context, member)                                                                \
    }
static const struct {
    const char *name;
    size_t offset;
} operations[] = {
    OPERATION(context.ops.alloc_mw),
    OPERATION(context.ops.bind_mw),
    OPERATION(context.ops.dealloc_mw),
    OPERATION(context.ops.poll_cq),
    OPERATION(context.ops.req_notify_cq),
    OPERATION(context.ops.post_srq_recv),
    OPERATION(context.ops.post_send),
    OPERATION(context.ops.post_recv),
    OPERATION(query_port),
    OPERATION(advise_mr),
    OPERATION(alloc_null_mr),
    OPERATION(read_counters),
    OPERATION(attach_counters_point_flow),
    OPERATION(create_counters),
    OPERATION(destroy_counters),
    OPERATION(reg_dm_mr),
    OPERATION(alloc_dm),
    OPERATION(free_dm),
    OPERATION(modify_flow_action_esp),
    OPERATION(destroy_flow_action),
    OPERATION(create_flow_action_esp),
    OPERATION(modify_qp_rate_limit),
    OPERATION(alloc_parent_domain),
    OPERATION(dealloc_td),
    OPERATION(alloc_td),
    OPERATION(modify_cq),
    OPERATION(post_srq_ops),
    OPERATION(destroy_rwq_ind_table),
    OPERATION(create_rwq_ind_table),
    OPERATION(destroy_wq),
    OPERATION(modify_wq),
    OPERATION(create_wq),
    OPERATION(query_rt_values),
    OPERATION(create_cq_ex),
    OPERATION(query_device_ex),
    OPERATION(ibv_destroy_flow),
    OPERATION(ibv_create_flow),
    OPERATION(open_qp),
    OPERATION(create_qp_ex),
    OPERATION(get_srq_num),
    OPERATION(create_srq_ex),
    OPERATION(open_xrcd),
    OPERATION(close_xrcd),
};

static void every_operation_of_an_open_device_can_be_called(void **unused)
{
    need_device();
    const char *context = (const char *)verbs_get_ctx(opened);
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        void *function;
        memcpy(&function, context + operations[i].offset, sizeof function);
        if (!function)
            fail_msg("%s is NULL", operations[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_device_has_the_extended_context),
        cmocka_unit_test(programs_poll_the_descriptor_of_an_open_device),
        cmocka_unit_test(behind_the_device_there_are_zeros),
        cmocka_unit_test(the_exported_query_of_a_port_writes_48_bytes),
        cmocka_unit_test(every_operation_of_an_open_device_can_be_called),
    };
    return cmocka_run_group_tests(tests, open_first, close_first);
}
