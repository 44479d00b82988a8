/* ibv_query_ece(3), ibv_set_ece(3), ibv_query_qp_data_in_order(3). */
#include <errno.h>

#include "one_process.h"

struct bench {
    struct ibv_context *context;
    struct ibv_qp *qp;
};

static struct bench begin(void)
{
    struct bench bench = {.context = alone_open()};
    struct ibv_cq *cq = ibv_create_cq(bench.context, 16, NULL, NULL, 0);
    bench.qp = alone_loop(ibv_alloc_pd(bench.context), cq);
    return bench;
}

static void end(struct bench *bench)
{
    EXPECT(ibv_close_device(bench->context), ==, 0);
}

static void a_queue_pair_has_the_vendor_of_its_device_and_no_options(const void *row)
{
    struct bench bench = begin();
    struct ibv_device_attr device;
    struct ibv_ece ece = {.vendor_id = 1, .options = 2, .comp_mask = 3};
    EXPECT(ibv_query_device(bench.context, &device), ==, 0);
    EXPECT(ibv_query_ece(bench.qp, &ece), ==, 0);
    EXPECT(ece.vendor_id, ==, device.vendor_id);
    EXPECT(ece.options, ==, 0);
    EXPECT(ece.comp_mask, ==, 0);
    end(&bench);
}

static void of_the_options_that_are_set_none_is_accepted(const void *row)
{
    struct bench bench = begin();
    struct ibv_ece own, ece;
    EXPECT(ibv_query_ece(bench.qp, &own), ==, 0);
    ece = (struct ibv_ece){.vendor_id = own.vendor_id, .options = 0xff};
    EXPECT(ibv_set_ece(bench.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    EXPECT(ece.vendor_id, ==, own.vendor_id);
    ece = (struct ibv_ece){.vendor_id = own.vendor_id + 1, .options = 1};
    EXPECT(ibv_set_ece(bench.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    EXPECT(ibv_query_ece(bench.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    end(&bench);
}

static void bad_options_are_refused(const void *row)
{
    struct bench bench = begin();
    struct ibv_ece ece = {.vendor_id = 1, .comp_mask = 1};
    EXPECT(ibv_set_ece(bench.qp, &ece), ==, EINVAL);
    ece = (struct ibv_ece){.options = 1};
    EXPECT(ibv_set_ece(bench.qp, &ece), ==, EOPNOTSUPP);
    bench.qp->handle ^= 1;
    EXPECT(ibv_query_ece(bench.qp, &ece), ==, EINVAL);
    ece = (struct ibv_ece){.vendor_id = 1};
    EXPECT(ibv_set_ece(bench.qp, &ece), ==, EINVAL);
    bench.qp->handle ^= 1;
    end(&bench);
}

/* No order is promised, whatever is asked; and it is an answer, not a refusal. */
static void no_order_of_data_is_promised(const void *row)
{
    struct bench bench = begin();
    errno = 0;
    for (int opcode = IBV_WR_RDMA_WRITE; opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; opcode++)
        for (uint32_t flags = 0; flags < 2; flags++)
            EXPECT(ibv_query_qp_data_in_order(bench.qp, (enum ibv_wr_opcode)opcode, flags), ==, 0);
    EXPECT(errno, ==, 0);
    end(&bench);
}

static void all(void)
{
    CASE(a_queue_pair_has_the_vendor_of_its_device_and_no_options);
    CASE(of_the_options_that_are_set_none_is_accepted);
    CASE(bad_options_are_refused);
    CASE(no_order_of_data_is_promised);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
