/* Memory regions: ibv_reg_mr(3), ibv_reg_mr_iova(3), ibv_rereg_mr(3), IBV_ACCESS_ZERO_BASED. */
#include <errno.h>

#include "pair.h"

static void write_to(struct pair *pair, uint64_t address, uint32_t rkey, enum ibv_wc_status status)
{
    struct send send = end_send(&pair->near, &pair->far, IBV_WR_RDMA_WRITE, 1, 0, 64);
    send.wr.wr.rdma.remote_addr = address;
    send.wr.wr.rdma.rkey = rkey;
    puppet_fill(pair->near.puppet, pair->near.memory, 64, 7);
    end_post(&pair->near, send);
    end_expect_sent(&pair->near, 1, status);
}

static void peers_name_a_region_by_its_iova(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    uint64_t iova = 0x7000000;
    EXPECT(puppet_reg_mr_iova(far->puppet, far->pd, far->memory, 4096, iova, ACCESS_ALL), !=, NOBODY);
    uint32_t rkey = far->puppet->call.about.rkey;
    write_to(&pair, iova + 128, rkey, IBV_WC_SUCCESS);
    EXPECT(puppet_compare(far->puppet, far->memory + 128, 64, 7, 0), ==, -1);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void a_zero_based_region_begins_at_0(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(puppet_reg_mr(far->puppet, far->pd, far->memory, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED), !=, NOBODY);
    uint32_t rkey = far->puppet->call.about.rkey;
    write_to(&pair, 4096 - 64, rkey, IBV_WC_SUCCESS);
    EXPECT(puppet_compare(far->puppet, far->memory + 4096 - 64, 64, 7, 0), ==, -1);
    write_to(&pair, 4096 - 63, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_moves_a_region(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    uint64_t other = puppet_memory(far->puppet, 8192);
    EXPECT(puppet_rereg_mr(far->puppet, far->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NOBODY, other, 8192, 0), ==, 0);
    uint32_t rkey = far->puppet->call.about.rkey;
    write_to(&pair, other + 8192 - 64, rkey, IBV_WC_SUCCESS);
    EXPECT(puppet_compare(far->puppet, other + 8192 - 64, 64, 7, 0), ==, -1);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_takes_access_away(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(puppet_rereg_mr(far->puppet, far->mr, IBV_REREG_MR_CHANGE_ACCESS, NOBODY, 0, 0, IBV_ACCESS_LOCAL_WRITE), ==,
           0);
    write_to(&pair, far->memory, far->puppet->call.about.rkey, IBV_WC_REM_ACCESS_ERR);
}

static void rereg_moves_a_region_to_another_PD_and_its_use_count_too(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    int pd = puppet_alloc_pd(far->puppet);
    EXPECT(puppet_rereg_mr(far->puppet, far->mr, IBV_REREG_MR_CHANGE_PD, pd, 0, 0, 0), ==, 0);
    uint32_t rkey = far->puppet->call.about.rkey;
    EXPECT(puppet_destroy(far->puppet, KIND_PD, pd), ==, EBUSY);
    write_to(&pair, far->memory, rkey, IBV_WC_REM_ACCESS_ERR);
    EXPECT(puppet_destroy(far->puppet, KIND_MR, far->mr), ==, 0);
    EXPECT(puppet_destroy(far->puppet, KIND_PD, pd), ==, 0);
}

static void a_refused_rereg_leaves_the_region_as_it_was(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *far = &pair.far;
    EXPECT(puppet_rereg_mr(far->puppet, far->mr, 1 << 10, NOBODY, 0, 0, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(puppet_rereg_mr(far->puppet, far->mr, IBV_REREG_MR_CHANGE_ACCESS, NOBODY, 0, 0, IBV_ACCESS_REMOTE_WRITE), !=,
           0);
    write_to(&pair, far->memory, far->rkey, IBV_WC_SUCCESS);
}

static void bad_registrations_are_refused(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    EXPECT(puppet_reg_mr(near->puppet, near->pd, near->memory, 64, IBV_ACCESS_REMOTE_WRITE), ==, NOBODY);
    EXPECT(near->puppet->error, ==, EINVAL);
    EXPECT(puppet_reg_mr(near->puppet, near->pd, near->memory, 64, IBV_ACCESS_REMOTE_ATOMIC), ==, NOBODY);
    EXPECT(near->puppet->error, ==, EINVAL);
    EXPECT(puppet_reg_mr(near->puppet, near->pd, 4096, 64, 0), ==, NOBODY);
    EXPECT(near->puppet->error, ==, EFAULT);
    pair_ping(&pair, near, &pair.far);
}

static void objects_in_use_are_EBUSY_and_go_on(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    EXPECT(puppet_destroy(near->puppet, KIND_PD, near->pd), ==, EBUSY);
    EXPECT(puppet_destroy(near->puppet, KIND_CQ, near->send_cq), ==, EBUSY);
    EXPECT(puppet_destroy(near->puppet, KIND_CQ, near->receive_cq), ==, EBUSY);
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
