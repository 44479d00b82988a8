/* ibv_query_ece(3), ibv_set_ece(3), ibv_query_qp_data_in_order(3). */
#include <errno.h>

#include "one_process.h"

struct fixture {
    struct ibv_context *context;
    struct ibv_qp *qp;
};

static struct fixture begin(void)
{
    struct fixture fixture = {.context = local_open()};
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 16, NULL, NULL, 0);
    fixture.qp = local_loop(ibv_alloc_pd(fixture.context), cq);
    return fixture;
}

static void end(struct fixture *fixture)
{
    EXPECT(ibv_close_device(fixture->context), ==, 0);
}

static void a_queue_pair_has_the_vendor_of_its_device_and_no_options(const void *row)
{
    struct fixture fixture = begin();
    struct ibv_device_attr device;
    struct ibv_ece ece = {.vendor_id = 1, .options = 2, .comp_mask = 3};
    EXPECT(ibv_query_device(fixture.context, &device), ==, 0);
    EXPECT(ibv_query_ece(fixture.qp, &ece), ==, 0);
    EXPECT(ece.vendor_id, ==, device.vendor_id);
    EXPECT(ece.options, ==, 0);
    EXPECT(ece.comp_mask, ==, 0);
    end(&fixture);
}

static void of_the_options_that_are_set_none_is_accepted(const void *row)
{
    struct fixture fixture = begin();
    struct ibv_ece own, ece;
    EXPECT(ibv_query_ece(fixture.qp, &own), ==, 0);
    ece = (struct ibv_ece){.vendor_id = own.vendor_id, .options = 0xff};
    EXPECT(ibv_set_ece(fixture.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    EXPECT(ece.vendor_id, ==, own.vendor_id);
    ece = (struct ibv_ece){.vendor_id = own.vendor_id + 1, .options = 1};
    EXPECT(ibv_set_ece(fixture.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    EXPECT(ibv_query_ece(fixture.qp, &ece), ==, 0);
    EXPECT(ece.options, ==, 0);
    end(&fixture);
}

static void bad_options_are_refused(const void *row)
{
    struct fixture fixture = begin();
    struct ibv_ece ece = {.vendor_id = 1, .comp_mask = 1};
    EXPECT(ibv_set_ece(fixture.qp, &ece), ==, EINVAL);
    ece = (struct ibv_ece){.options = 1};
    EXPECT(ibv_set_ece(fixture.qp, &ece), ==, EOPNOTSUPP);
    fixture.qp->handle ^= 1;
    EXPECT(ibv_query_ece(fixture.qp, &ece), ==, EINVAL);
    ece = (struct ibv_ece){.vendor_id = 1};
    EXPECT(ibv_set_ece(fixture.qp, &ece), ==, EINVAL);
    fixture.qp->handle ^= 1;
    end(&fixture);
}

/* No order is promised, whatever is asked; and it is an answer, not a refusal. */
static void no_order_of_data_is_promised(const void *row)
{
    struct fixture fixture = begin();
    errno = 0;
    for (int opcode = IBV_WR_RDMA_WRITE; opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; opcode++)
        for (uint32_t flags = 0; flags < 2; flags++)
            EXPECT(ibv_query_qp_data_in_order(fixture.qp, (enum ibv_wr_opcode)opcode, flags), ==, 0);
    EXPECT(errno, ==, 0);
    end(&fixture);
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
