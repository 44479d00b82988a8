/* Thread domains and parent domains: ibv_alloc_td(3), ibv_alloc_parent_domain(3), the parent domain of
 * ibv_create_cq_ex(3). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "local_end.h"
#include "one_process.h"

enum { RESOURCES = 8 };

/* The arguments that the allocators got, and the results that they shall return. */
struct allocator {
    struct ibv_pd *pd;
    int taken[RESOURCES], given_back[RESOURCES];
    void *memory[8]; /* that the first calls gave */
    int wrong;       /* calls whose arguments contradict each other */
    enum { GIVE, USE_DEFAULT, FAIL, MISALIGN } answer;
};

static int count(const int *of)
{
    int sum = 0;
    for (int i = 0; i < RESOURCES; i++)
        sum += of[i];
    return sum;
}

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t resource)
{
    struct allocator *allocator = context;
    char *memory;
    allocator->wrong +=
        pd != allocator->pd || !size || !alignment || alignment & (alignment - 1) || !resource || resource >= RESOURCES;
    if (allocator->answer == USE_DEFAULT)
        return IBV_ALLOCATOR_USE_DEFAULT;
    if (allocator->answer == FAIL || posix_memalign((void **)&memory, alignment, size + 2 * alignment))
        return NULL;
    if (count(allocator->taken) < 8)
        allocator->memory[count(allocator->taken)] = memory;
    allocator->taken[resource]++;
    memset(memory, 0xa5, size + 2 * alignment); /* nothing of ours relies on zeroes */
    *(uint64_t *)memory = resource;
    return memory + alignment + (allocator->answer == MISALIGN);
}

static void release(struct ibv_pd *pd, void *context, void *pointer, uint64_t resource)
{
    struct allocator *allocator = context;
    uint64_t *memory = (void *)(((uintptr_t)pointer & ~(uintptr_t)63) - 64);
    allocator->wrong += pd != allocator->pd || *memory != resource;
    allocator->given_back[resource]++;
    free(memory);
}

static struct ibv_pd *make_parent(struct ibv_pd *pd, struct ibv_td *td, struct allocator *allocator)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
    if (allocator) {
        attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
        attr.alloc = allocate;
        attr.free = release;
        attr.pd_context = allocator;
    }
    struct ibv_pd *parent = ibv_alloc_parent_domain(pd->context, &attr);
    EXPECT_TRUE(parent && parent != pd);
    if (allocator)
        allocator->pd = parent;
    return parent;
}

static struct ibv_pd *open_with_parent(struct allocator *allocator)
{
    return make_parent(ibv_alloc_pd(local_open()), NULL, allocator);
}

/* All that was taken has been given back, by calls that fit each other. */
static void close_with_parent(struct ibv_pd *parent, const struct allocator *allocator)
{
    struct ibv_context *context = parent->context;
    EXPECT(count(allocator->given_back), ==, count(allocator->taken));
    EXPECT(allocator->wrong, ==, 0);
    EXPECT(ibv_dealloc_pd(parent), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

static struct ibv_cq *make_cq(struct ibv_pd *parent)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 20, .wc_flags = IBV_WC_STANDARD_FLAGS, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(parent->context, &attr);
    return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void a_thread_domain_is_made_and_goes(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
    EXPECT_TRUE(td && td->context == context);
    EXPECT_ERRNO(ibv_alloc_td(context, &(struct ibv_td_init_attr){.comp_mask = 1}), EINVAL);
    EXPECT(ibv_dealloc_td(td), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void what_a_parent_domain_holds_is_busy(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_td *td = ibv_alloc_td(context, &(struct ibv_td_init_attr){0});
    struct ibv_pd *parent = make_parent(pd, td, NULL), *second = make_parent(pd, td, NULL);
    EXPECT(parent->handle, ==, pd->handle);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dealloc_td(td), ==, EBUSY);
    EXPECT(ibv_dealloc_pd(parent), ==, 0);
    EXPECT(ibv_dealloc_td(td), ==, EBUSY);
    EXPECT(ibv_dealloc_pd(second), ==, 0);
    EXPECT(ibv_dealloc_td(td), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void bad_attributes_of_a_parent_domain_are_refused(const void *row)
{
    struct ibv_context *context = local_open(), *other = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context), *foreign = ibv_alloc_pd(other);
    struct ibv_td *td = ibv_alloc_td(other, &(struct ibv_td_init_attr){0});
    struct ibv_parent_domain_init_attr attr = {.td = NULL};
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    attr.pd = foreign;
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    attr.pd = pd, attr.td = td;
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    attr.td = NULL, attr.comp_mask = 1 << 3;
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, attr.alloc = allocate;
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    attr.alloc = NULL, attr.free = release;
    EXPECT_ERRNO(ibv_alloc_parent_domain(context, &attr), EINVAL);
    EXPECT_ERRNO(make_cq(pd), EINVAL);
    attr = (struct ibv_parent_domain_init_attr){.pd = foreign};
    struct ibv_cq_init_attr_ex of_foreign = {.cqe = 20,
                                             .wc_flags = IBV_WC_STANDARD_FLAGS,
                                             .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
                                             .parent_domain = ibv_alloc_parent_domain(other, &attr)};
    EXPECT_TRUE(of_foreign.parent_domain);
    EXPECT_ERRNO(ibv_create_cq_ex(context, &of_foreign), EINVAL);
    EXPECT(ibv_dealloc_pd(pd), ==, 0); /* nothing of all that holds it */
    EXPECT(ibv_close_device(other), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* A region of each name serves queue pairs of the other. */
static void a_parent_domain_is_its_protection_domain(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context), *parent = make_parent(pd, NULL, NULL);
    struct ibv_pd *grandparent = make_parent(parent, NULL, NULL);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_mr *mrs[] = {local_register(pd), local_register(parent), local_register(grandparent)};
    struct ibv_qp *qps[] = {local_loop(pd, cq), local_loop(parent, cq), local_loop(grandparent, cq)};
    EXPECT_TRUE(qps[1]->pd == parent && mrs[1]->pd == parent);
    for (size_t i = 0; i < COUNT(mrs) * COUNT(qps); i++) {
        struct ibv_mr *mr = mrs[i % COUNT(mrs)];
        struct ibv_sge sge = {(uintptr_t)local_memory(mr), 8, mr->lkey};
        struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
        wr.sg_list = &sge, wr.num_sge = 1;
        wr.wr.rdma.remote_addr = sge.addr + 64, wr.wr.rdma.rkey = mr->rkey;
        EXPECT(ibv_post_send(qps[i / COUNT(mrs)], &wr, &bad), ==, 0);
        EXPECT(local_poll(cq).status, ==, IBV_WC_SUCCESS);
    }
    char *memory[] = {local_memory(mrs[0]), local_memory(mrs[1]), local_memory(mrs[2])};
    EXPECT(ibv_close_device(context), ==, 0); /* takes all of it along, in whatever order */
    for (size_t i = 0; i < COUNT(memory); i++)
        free(memory[i]);
}

static struct ibv_ah *make_ah(struct ibv_pd *pd)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(pd->context, 1, 0, &attr.grh.dgid), ==, 0);
    return ibv_create_ah(pd, &attr);
}

static void a_parent_domain_is_busy_with_each_thing_made_with_it(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context), *parent = make_parent(pd, NULL, NULL);
    struct ibv_cq *plain = ibv_create_cq(context, 16, NULL, NULL, 0), *cq = make_cq(parent);
    EXPECT_TRUE(cq);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    struct ibv_qp *qp = local_loop(parent, plain);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    struct ibv_srq *srq = ibv_create_srq(parent, &(struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}});
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_destroy_srq(srq), ==, 0);
    struct ibv_ah *ah = make_ah(parent);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_destroy_ah(ah), ==, 0);
    struct ibv_mw *mw = ibv_alloc_mw(parent, IBV_MW_TYPE_1);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = parent, .cq = plain};
    struct ibv_wq *wq = ibv_create_wq(context, &init);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_destroy_wq(wq), ==, 0);
    EXPECT(ibv_dealloc_pd(parent), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void a_region_moves_between_the_domains(const void *row)
{
    struct ibv_context *context = local_open();
    struct ibv_pd *pd = ibv_alloc_pd(context), *parent = make_parent(pd, NULL, NULL);
    struct ibv_mr *mr = local_register(parent);
    char *memory = local_memory(mr);
    EXPECT(ibv_dealloc_pd(parent), ==, EBUSY);
    EXPECT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), ==, 0);
    EXPECT(ibv_dealloc_pd(parent), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
    EXPECT(ibv_close_device(context), ==, 0);
    free(memory);
}

/* Each kind of queue, while it is made, grows and is destroyed. */
static void queues_lie_in_memory_of_the_allocators(const void *row)
{
    struct allocator allocator = {.answer = GIVE};
    struct ibv_pd *parent = open_with_parent(&allocator);
    struct ibv_cq *cq = make_cq(parent);
    EXPECT_TRUE(cq);
    EXPECT(allocator.taken[1], ==, 1);
    EXPECT(ibv_resize_cq(cq, 100), ==, 0);
    EXPECT(allocator.taken[1], ==, 2);
    EXPECT(allocator.given_back[1], ==, 1);
    struct ibv_srq *srq = ibv_create_srq(parent, &(struct ibv_srq_init_attr){.attr = {.max_wr = 4, .max_sge = 1}});
    EXPECT(allocator.taken[4], ==, 1);
    EXPECT(ibv_modify_srq(srq, &(struct ibv_srq_attr){.max_wr = 50}, IBV_SRQ_MAX_WR), ==, 0);
    EXPECT(allocator.taken[4], ==, 2);
    struct ibv_qp *qp = local_loop(parent, cq);
    EXPECT(allocator.taken[2], ==, 1);
    EXPECT(allocator.taken[3], ==, 1);
    EXPECT(count(allocator.given_back), ==, 1);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(ibv_destroy_srq(srq), ==, 0);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    close_with_parent(parent, &allocator);
}

static void allocators_may_leave_it_to_the_library(const void *row)
{
    struct allocator allocator = {.answer = USE_DEFAULT};
    struct ibv_pd *parent = open_with_parent(&allocator);
    struct ibv_cq *cq = make_cq(parent);
    struct ibv_qp *qp = local_loop(parent, cq);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(ibv_resize_cq(cq, 100), ==, 0);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    EXPECT(count(allocator.taken), ==, 0);
    close_with_parent(parent, &allocator);
}

static void an_allocator_that_fails_fails_the_call(const void *row)
{
    struct allocator allocator = {.answer = GIVE};
    struct ibv_pd *parent = open_with_parent(&allocator);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_cq *cq = make_cq(parent);
    struct ibv_qp_init_attr qp = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    allocator.answer = FAIL;
    EXPECT_ERRNO(make_cq(parent), ENOMEM);
    EXPECT_ERRNO(ibv_create_qp(parent, &qp), ENOMEM);
    EXPECT_ERRNO(ibv_create_srq(parent, &srq), ENOMEM);
    EXPECT(ibv_resize_cq(cq, 100), ==, ENOMEM);
    allocator.answer = MISALIGN;
    EXPECT_ERRNO(make_cq(parent), EINVAL);
    EXPECT_ERRNO(ibv_create_srq(parent, &srq), EINVAL);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    close_with_parent(parent, &allocator);
}

/* The program may have let go of what its allocators need. */
static void closing_the_device_calls_no_allocator(const void *row)
{
    struct allocator allocator = {.answer = GIVE};
    struct ibv_pd *parent = open_with_parent(&allocator);
    struct ibv_cq *cq = make_cq(parent);
    EXPECT_TRUE(cq && local_loop(parent, cq));
    int before = count(allocator.taken);
    EXPECT(ibv_close_device(parent->context), ==, 0);
    EXPECT(count(allocator.taken), ==, before);
    EXPECT(count(allocator.given_back), ==, 0);
    for (int i = 0; i < before; i++)
        free(allocator.memory[i]);
}

/* All queues of the near end in memory of the program, and messages both ways over the link. */
static void messages_go_through_queues_of_the_program(const void *row)
{
    struct allocator allocator = {.answer = GIVE};
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    struct ibv_pd *pd = near_pd(&pair);
    struct ibv_td *td = ibv_alloc_td(pd->context, &(struct ibv_td_init_attr){0});
    struct ibv_pd *parent = make_parent(pd, td, &allocator);
    struct ibv_cq *cq = make_cq(parent);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = near->cap};
    struct ibv_qp *qp = ibv_create_qp(parent, &init);
    EXPECT_TRUE(qp);
    near->send_cq = near->receive_cq = end_enter(near->remote->objects, KIND_CQ, cq);
    near->qp = end_enter(near->remote->objects, KIND_QP, qp);
    near->number = qp->qp_num;
    EXPECT(end_move(&pair.far, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    for (int i = 0; i < 100; i++) {
        pair_ping(&pair, near, &pair.far);
        pair_ping(&pair, &pair.far, near);
    }
    EXPECT(remote_destroy(near->remote, KIND_QP, near->qp), ==, 0);
    EXPECT(remote_destroy(near->remote, KIND_CQ, near->send_cq), ==, 0);
    EXPECT(ibv_dealloc_pd(parent), ==, 0);
    EXPECT(ibv_dealloc_td(td), ==, 0);
    EXPECT(count(allocator.taken), ==, 3);
    EXPECT(count(allocator.given_back), ==, 3);
    EXPECT(allocator.wrong, ==, 0);
}

static void all(void)
{
    if (harness_link() != LINK_NONE) {
        CASE(messages_go_through_queues_of_the_program);
        return;
    }
    CASE(a_thread_domain_is_made_and_goes);
    CASE(what_a_parent_domain_holds_is_busy);
    CASE(bad_attributes_of_a_parent_domain_are_refused);
    CASE(a_parent_domain_is_its_protection_domain);
    CASE(a_parent_domain_is_busy_with_each_thing_made_with_it);
    CASE(a_region_moves_between_the_domains);
    CASE(queues_lie_in_memory_of_the_allocators);
    CASE(allocators_may_leave_it_to_the_library);
    CASE(an_allocator_that_fails_fails_the_call);
    CASE(closing_the_device_calls_no_allocator);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
