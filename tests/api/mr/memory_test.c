/* Memory regions: ibv_reg_mr(3), ibv_reg_mr_iova(3), ibv_rereg_mr(3), IBV_ACCESS_ZERO_BASED. */
#include <errno.h>

#include "pair.h"

static void write_to(struct pair *pair, uint64_t address, uint32_t rkey, enum ibv_wc_status status)
{
    struct send send = end_send(&pair->near, &pair->far, IBV_WR_RDMA_WRITE, 1, 0, 64);
    send.wr.wr.rdma.remote_addr = address;
    send.wr.wr.rdma.rkey = rkey;
    remote_fill(pair->near.remote, pair->near.memory, 64, 7);
    end_post(&pair->near, send);
    end_expect_sent(&pair->near, 1, status);
}

static void peers_name_a_region_by_its_iova(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    uint64_t iova = 0x7000000;
    EXPECT(remote_reg_mr_iova(far->remote, far->pd, far->memory, 4096, iova, ACCESS_ALL), !=, NOBODY);
    uint32_t rkey = far->remote->call.about.rkey;
    write_to(&pair, iova + 128, rkey, IBV_WC_SUCCESS);
    EXPECT(remote_compare(far->remote, far->memory + 128, 64, 7, 0), ==, -1);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void a_zero_based_region_begins_at_0(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(remote_reg_mr(far->remote, far->pd, far->memory, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED), !=, NOBODY);
    uint32_t rkey = far->remote->call.about.rkey;
    write_to(&pair, 4096 - 64, rkey, IBV_WC_SUCCESS);
    EXPECT(remote_compare(far->remote, far->memory + 4096 - 64, 64, 7, 0), ==, -1);
    write_to(&pair, 4096 - 63, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_moves_a_region(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    uint64_t other = remote_memory(far->remote, 8192);
    EXPECT(remote_rereg_mr(far->remote, far->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NOBODY, other, 8192, 0), ==, 0);
    uint32_t rkey = far->remote->call.about.rkey;
    write_to(&pair, other + 8192 - 64, rkey, IBV_WC_SUCCESS);
    EXPECT(remote_compare(far->remote, other + 8192 - 64, 64, 7, 0), ==, -1);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_takes_access_away(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(remote_rereg_mr(far->remote, far->mr, IBV_REREG_MR_CHANGE_ACCESS, NOBODY, 0, 0, IBV_ACCESS_LOCAL_WRITE), ==,
           0);
    write_to(&pair, far->memory, far->remote->call.about.rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_moves_a_region_to_another_PD_and_its_use_count_too(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    int pd = remote_alloc_pd(far->remote);
    EXPECT(remote_rereg_mr(far->remote, far->mr, IBV_REREG_MR_CHANGE_PD, pd, 0, 0, 0), ==, 0);
    uint32_t rkey = far->remote->call.about.rkey;
    EXPECT(remote_destroy(far->remote, KIND_PD, pd), ==, EBUSY);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
    EXPECT(remote_destroy(far->remote, KIND_MR, far->mr), ==, 0);
    EXPECT(remote_destroy(far->remote, KIND_PD, pd), ==, 0);
}

static void a_refused_rereg_leaves_the_region_as_it_was(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(remote_rereg_mr(far->remote, far->mr, 1 << 10, NOBODY, 0, 0, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(remote_rereg_mr(far->remote, far->mr, IBV_REREG_MR_CHANGE_ACCESS, NOBODY, 0, 0, IBV_ACCESS_REMOTE_WRITE), !=,
           0);
    write_to(&pair, far->memory, far->rkey, IBV_WC_SUCCESS);
}

static void bad_registrations_are_refused(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    EXPECT(remote_reg_mr(near->remote, near->pd, near->memory, 64, IBV_ACCESS_REMOTE_WRITE), ==, NOBODY);
    EXPECT(near->remote->error, ==, EINVAL);
    EXPECT(remote_reg_mr(near->remote, near->pd, near->memory, 64, IBV_ACCESS_REMOTE_ATOMIC), ==, NOBODY);
    EXPECT(near->remote->error, ==, EINVAL);
    EXPECT(remote_reg_mr(near->remote, near->pd, 4096, 64, 0), ==, NOBODY);
    EXPECT(near->remote->error, ==, EFAULT);
    pair_ping(&pair, near, &pair.far);
}

static void objects_in_use_are_EBUSY_and_go_on(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    EXPECT(remote_destroy(near->remote, KIND_PD, near->pd), ==, EBUSY);
    EXPECT(remote_destroy(near->remote, KIND_CQ, near->send_cq), ==, EBUSY);
    EXPECT(remote_destroy(near->remote, KIND_CQ, near->receive_cq), ==, EBUSY);
    pair_ping(&pair, near, &pair.far);
}

static void all(void)
{
    CASE(peers_name_a_region_by_its_iova);
    CASE(a_zero_based_region_begins_at_0);
    CASE(rereg_moves_a_region);
    CASE(rereg_takes_access_away);
    CASE(rereg_moves_a_region_to_another_PD_and_its_use_count_too);
    CASE(a_refused_rereg_leaves_the_region_as_it_was);
    CASE(bad_registrations_are_refused);
    CASE(objects_in_use_are_EBUSY_and_go_on);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
