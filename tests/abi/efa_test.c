/* libefa.so.1 on a device that is no EFA, and the layouts that programs compiled in. Linked against both libraries. */
#include <infiniband/efadv.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define VENDOR(answer, type, name, parameters, arguments) type name parameters;
#define PART(type, name, parameters, arguments) type name parameters;
#include "calls/efa.def"

#define SIZE(structure, bytes) _Static_assert(sizeof(struct structure) == (bytes), "");
#define AT(structure, member, offset) _Static_assert(offsetof(struct structure, member) == (offset), #member);
/* Release 65, on machines of 64 bits. */
SIZE(efadv_device_attr, 32)
AT(efadv_device_attr, inline_buf_size_ex, 22) AT(efadv_device_attr, max_rdma_size, 28) SIZE(efadv_ah_attr, 16)
    AT(efadv_ah_attr, ahn, 8) SIZE(efadv_qp_init_attr, 24) AT(efadv_qp_init_attr, flags, 12)
        AT(efadv_qp_init_attr, sl, 14) AT(efadv_qp_init_attr, wr_flags, 16) SIZE(efadv_cq_init_attr, 56)
            AT(efadv_cq_init_attr, flags, 16) AT(efadv_cq_init_attr, ext_mem_dmabuf, 24) SIZE(efadv_cq, 24)
                AT(efadv_cq, wc_read_sgid, 8) AT(efadv_cq, wc_is_unsolicited, 16) SIZE(efadv_cq_attr, 32)
                    AT(efadv_cq_attr, doorbell, 24) SIZE(efadv_wq_attr, 40) AT(efadv_wq_attr, max_batch, 32)
                        AT(efadv_wq_attr, caps, 36) SIZE(efadv_mr_attr, 16) AT(efadv_mr_attr, rdma_recv_ic_id, 14)
                            SIZE(efadv_sq_depth_attr, 24) AT(efadv_sq_depth_attr, max_inline_data, 20)
                                SIZE(efadv_rq_depth_attr, 16) AT(efadv_rq_depth_attr, max_recv_sge, 8)
                                    SIZE(efadv_qp, 16)

                                        static struct ibv_context *context;
static struct ibv_pd *pd;

static int begin(void **unused)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    ibv_free_device_list(list);
    return !pd;
}

static int end(void **unused)
{
    return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

static void questions_of_other_devices_are_refused(void **unused)
{
    struct efadv_device_attr device = {.max_sq_wr = 77};
    struct efadv_sq_depth_attr sends = {0};
    struct efadv_rq_depth_attr receives = {0};
    struct efadv_mr_attr region = {0};
    char memory[64];
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, 0);
    errno = 0;
    assert_int_equal(efadv_query_device(context, &device, sizeof device), EOPNOTSUPP);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(device.max_sq_wr, 77);
    assert_int_equal(efadv_get_max_sq_depth(context, &sends, sizeof sends), -EOPNOTSUPP);
    assert_int_equal(efadv_get_max_rq_depth(context, &receives, sizeof receives), -EOPNOTSUPP);
    assert_int_equal(efadv_query_mr(mr, &region, sizeof region), EOPNOTSUPP);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void objects_of_other_devices_are_refused(void **unused)
{
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1}, .qp_type = IBV_QPT_DRIVER};
    struct ibv_qp_init_attr_ex extended = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1}, .qp_type = IBV_QPT_DRIVER, .pd = pd, .comp_mask = 1};
    struct ibv_cq_init_attr_ex queue = {.cqe = 1};
    struct efadv_qp_init_attr efa = {0};
    struct efadv_cq_init_attr efa_queue = {0};
    struct efadv_cq_attr memory = {0};
    errno = 0;
    assert_null(efadv_create_driver_qp(pd, &attr, EFADV_QP_DRIVER_TYPE_SRD));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(efadv_create_qp_ex(context, &extended, &efa, sizeof efa));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(efadv_create_cq(context, &queue, &efa_queue, sizeof efa_queue));
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_null(efadv_create_comp_cntr(context, NULL, NULL, 0));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(efadv_query_cq(cq, &memory, sizeof memory), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* They only compute an address, of NULL, too (pyverbs). */
static void parts_of_other_objects_know_nothing(void **unused)
{
    struct efadv_cq *cq = efadv_cq_from_ibv_cq_ex(NULL);
    struct efadv_qp *qp = efadv_qp_from_ibv_qp_ex(NULL);
    union ibv_gid gid;
    assert_int_equal(cq->wc_read_sgid(cq, &gid), -ENOENT);
    assert_false(cq->wc_is_unsolicited(cq));
    qp->wr_set_processing_hints(qp, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_of_other_devices_are_refused),
        cmocka_unit_test(objects_of_other_devices_are_refused),
        cmocka_unit_test(parts_of_other_objects_know_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
