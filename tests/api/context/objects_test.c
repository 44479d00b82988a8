/* Objects: what makes, changes and destroys them, with arguments that are good and with such as must be refused, and
 * what users forbid. All in this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local_fixture.h"

enum { MUCH = 1 << 30 };

/* -- domains and memory */

static void ibv_dealloc_pd_waits_for_all_its_users(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_pd *pd = ibv_alloc_pd(fixture.context);
    struct ibv_mr *mr = local_register(pd);
    char *memory = local_memory(mr);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}});
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_destroy_srq(srq), ==, 0);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
    free(memory);
    fixture_close(&fixture);
}

static void ibv_reg_mr_refuses_what_cannot_be(const void *row)
{
    struct fixture fixture = fixture_open();
    const void *constant = "a string that cannot be written";
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, fixture.memory, 0, 0), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, fixture.memory, 8, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, fixture.memory, 8, 1 << 15), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, (void *)16, 8, 0), EFAULT);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, (void *)(UINTPTR_MAX - 4), 8, 0), EFAULT);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, (void *)(uintptr_t)constant, 8, IBV_ACCESS_LOCAL_WRITE), EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(fixture.pd, (void *)(uintptr_t)constant, 8, IBV_ACCESS_REMOTE_READ);
    EXPECT_TRUE(mr && mr->pd == fixture.pd && mr->length == 8 && mr->addr == constant && mr->lkey);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    fixture_close(&fixture);
}

/* The library does as a kernel, which counts the pages that a region touches: 0 at a page boundary, and 1 elsewhere. */
static void ibv_reg_mr_takes_0_bytes_but_not_at_a_page_boundary(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = local_loop(fixture.pd, fixture.cq);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, fixture.memory, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr(fixture.pd, (void *)16, 0, 0), EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.memory + 8, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    EXPECT_TRUE(mr && mr->length == 0 && mr->addr == fixture.memory + 8);
    struct ibv_sge sge = {(uintptr_t)fixture.memory + 8, 0, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {sge.addr, mr->rkey}},
                       *bad;
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
    EXPECT(local_poll(fixture.cq).status, ==, IBV_WC_SUCCESS);
    sge.length = 1; /* it is empty */
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
    EXPECT(local_poll(fixture.cq).status, ==, IBV_WC_LOC_PROT_ERR);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    fixture_close(&fixture);
}

static void ibv_reg_mr_iova2_takes_optional_access_and_refuses_the_rest(const void *row)
{
    struct fixture fixture = fixture_open();
    uint64_t within = (uintptr_t)fixture.memory % 4096;
    struct ibv_mr *mr = ibv_reg_mr_iova2(fixture.pd, fixture.memory, 64, 0x1000 + within,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING | 1u << 29);
    EXPECT_TRUE(mr);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT_ERRNO(ibv_reg_mr_iova2(fixture.pd, fixture.memory, 64, 0x1000 + within, 1u << 15), EINVAL);
    EXPECT_ERRNO(ibv_reg_mr_iova2(fixture.pd, NULL, 64, 0x1000, 0), EFAULT);
    fixture_close(&fixture);
}

/* Every kernel refuses that, before its driver sees the call. */
static void ibv_reg_mr_iova_refuses_an_iova_elsewhere_in_its_page(const void *row)
{
    struct fixture fixture = fixture_open();
    long size = sysconf(_SC_PAGESIZE);
    char *page = aligned_alloc((size_t)size, 2 * (size_t)size), *memory = page + 0x123;
    static const uint64_t elsewhere[] = {0, 1, 8, 0x122, 0x124, 0x800, 0xfff};
    for (unsigned i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        EXPECT_ERRNO(ibv_reg_mr_iova(fixture.pd, memory, 64, 0x40000 + elsewhere[i], IBV_ACCESS_LOCAL_WRITE), EINVAL);
        EXPECT_ERRNO(ibv_reg_mr_iova2(fixture.pd, memory, 64, 0x40000 + elsewhere[i], IBV_ACCESS_ON_DEMAND), EINVAL);
    }
    struct ibv_mr *mr = ibv_reg_mr_iova2(fixture.pd, memory, 64, 0x40123, IBV_ACCESS_LOCAL_WRITE);
    EXPECT_TRUE(mr);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    free(page);
    fixture_close(&fixture);
}

static void ibv_rereg_mr_says_which_kind_of_error_it_was(const void *row)
{
    struct fixture fixture = fixture_open();
    EXPECT(ibv_rereg_mr(fixture.mr, 0, NULL, NULL, 0, 0), ==, IBV_REREG_MR_ERR_CMD);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, fixture.pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE), ==,
           IBV_REREG_MR_ERR_INPUT);
    EXPECT(ibv_rereg_mr(fixture.mr, 1 << 7, NULL, NULL, 0, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0), ==, IBV_REREG_MR_ERR_INPUT);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE), ==,
           IBV_REREG_MR_ERR_CMD);
    EXPECT(ibv_rereg_mr(fixture.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), ==, 0);
    fixture_close(&fixture);
}

static void ibv_dereg_mr_and_others_know_a_handle_that_was_spoilt(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_RC);
    fixture.mr->handle += 1000, fixture.pd->handle += 1000, fixture.cq->handle += 1000, qp->handle += 1000;
    EXPECT(ibv_dereg_mr(fixture.mr), ==, ENOENT);
    EXPECT(ibv_destroy_qp(qp), ==, ENOENT);
    EXPECT(ibv_destroy_cq(fixture.cq), ==, ENOENT);
    EXPECT(ibv_dealloc_pd(fixture.pd), ==, ENOENT);
    fixture.mr->handle -= 1000, fixture.pd->handle -= 1000, fixture.cq->handle -= 1000, qp->handle -= 1000;
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(ibv_dereg_mr(fixture.mr), ==, 0);
    EXPECT(ibv_destroy_cq(fixture.cq), ==, 0);
    EXPECT(ibv_dealloc_pd(fixture.pd), ==, 0);
    fixture_close(&fixture);
}

static void ibv_alloc_mw_knows_two_types(const void *row)
{
    struct fixture fixture = fixture_open();
    EXPECT_ERRNO(ibv_alloc_mw(fixture.pd, (enum ibv_mw_type)0), EINVAL);
    EXPECT_ERRNO(ibv_alloc_mw(fixture.pd, (enum ibv_mw_type)3), EINVAL);
    struct ibv_mw *mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_2);
    struct ibv_mw_bind bind = {.bind_info = {.mr = fixture.mr, .length = 8}};
    EXPECT(ibv_bind_mw(fixture_qp(&fixture, IBV_QPT_RC), mw, &bind), ==, EINVAL); /* which is for type 1 */
    EXPECT(ibv_dealloc_mw(mw), ==, 0);
    fixture_close(&fixture);
}

/* -- completion queues */

static void ibv_create_cq_refuses_sizes_and_vectors_that_are_not(const void *row)
{
    struct fixture fixture = fixture_open();
    EXPECT_ERRNO(ibv_create_cq(fixture.context, 0, NULL, NULL, 0), EINVAL);
    EXPECT_ERRNO(ibv_create_cq(fixture.context, -1, NULL, NULL, 0), EINVAL);
    EXPECT_ERRNO(ibv_create_cq(fixture.context, MUCH, NULL, NULL, 0), EINVAL);
    EXPECT_ERRNO(ibv_create_cq(fixture.context, 1, NULL, NULL, -1), EINVAL);
    EXPECT_ERRNO(ibv_create_cq(fixture.context, 1, NULL, NULL, fixture.context->num_comp_vectors), EINVAL);
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 3, &fixture, NULL, fixture.context->num_comp_vectors - 1);
    EXPECT_TRUE(cq && cq->cqe >= 3 && cq->cq_context == &fixture && !cq->channel);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    fixture_close(&fixture);
}

static struct ibv_cq_ex *make_cq_ex(const struct fixture *fixture, struct ibv_cq_init_attr_ex attr)
{
    attr.cqe = attr.cqe ? attr.cqe : 16;
    return ibv_create_cq_ex(fixture->context, &attr);
}

static void ibv_create_cq_ex_refuses_what_it_does_not_know(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_cq_init_attr_ex single = {.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                         .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
    EXPECT_ERRNO(make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.cqe = MUCH}), EINVAL);
    EXPECT_ERRNO(make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.comp_vector = 1u << 30}), EINVAL);
    EXPECT_ERRNO(make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.comp_mask = 1u << 30}), EINVAL);
    EXPECT_ERRNO(make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.wc_flags = 1ull << 40}), EOPNOTSUPP);
    single.flags |= 1u << 30;
    EXPECT_ERRNO(make_cq_ex(&fixture, single), EOPNOTSUPP);
    single.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    struct ibv_cq_ex *cq = make_cq_ex(&fixture, single);
    EXPECT_TRUE(cq);
    EXPECT(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), ==, 0);
    fixture_close(&fixture);
}

static void the_largest_CQ_is_no_larger_than_the_device_says(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_device_attr attr;
    EXPECT(ibv_query_device(fixture.context, &attr), ==, 0);
    struct ibv_cq *cq = ibv_create_cq(fixture.context, attr.max_cqe, NULL, NULL, 0);
    EXPECT_TRUE(cq && cq->cqe == attr.max_cqe);
    EXPECT(ibv_resize_cq(cq, 16), ==, 0);
    EXPECT(ibv_resize_cq(cq, attr.max_cqe), ==, 0);
    EXPECT(cq->cqe, ==, attr.max_cqe);
    EXPECT(ibv_resize_cq(cq, attr.max_cqe + 1), ==, EINVAL);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    fixture_close(&fixture);
}

static void ibv_resize_cq_keeps_room_for_what_is_there(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 16, NULL, NULL, 0);
    struct ibv_qp *qp = local_loop(fixture.pd, cq);
    EXPECT(ibv_resize_cq(cq, 0), ==, EINVAL);
    EXPECT(ibv_resize_cq(cq, -1), ==, EINVAL);
    EXPECT(ibv_resize_cq(cq, MUCH), ==, EINVAL);
    fixture_write(&fixture, qp, 11);
    usleep(300000); /* all have arrived, on a busy machine, too; were they not, the resize could succeed */
    EXPECT(ibv_poll_cq(cq, 0, NULL), ==, 0);
    EXPECT(ibv_resize_cq(cq, 4), ==, EINVAL);
    EXPECT(ibv_resize_cq(cq, 10), ==, EINVAL); /* although what it would be rounded to had room */
    EXPECT(ibv_resize_cq(cq, 11), ==, 0);
    EXPECT(ibv_resize_cq(cq, 100), ==, 0);
    EXPECT(cq->cqe, >=, 100);
    for (uint64_t i = 0; i < 11; i++)
        EXPECT(local_poll(cq).wr_id, ==, i);
    EXPECT(ibv_destroy_cq(cq), ==, EBUSY);
    fixture_close(&fixture);
}

static void ibv_destroy_comp_channel_waits_for_its_queues(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(fixture.context);
    struct ibv_cq *cq = ibv_create_cq(fixture.context, 1, NULL, channel, 0), *got;
    void *context;
    EXPECT(channel->refcnt, ==, 1);
    EXPECT(ibv_destroy_comp_channel(channel), ==, EBUSY);
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
    EXPECT(ibv_get_cq_event(channel, &got, &context), ==, -1);
    EXPECT(errno, ==, EAGAIN);
    EXPECT(ibv_destroy_cq(cq), ==, 0);
    EXPECT(ibv_destroy_comp_channel(channel), ==, 0);
    fixture_close(&fixture);
}

/* The iterator; its readers are in cq_test.c. */
static void ibv_start_poll_refuses_attributes_and_says_ENOENT(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_cq_ex *cq = make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.wc_flags = IBV_WC_STANDARD_FLAGS});
    struct ibv_qp *qp = local_loop(fixture.pd, ibv_cq_ex_to_cq(cq));
    struct ibv_poll_cq_attr attr = {.comp_mask = 1};
    EXPECT(ibv_start_poll(cq, &attr), ==, EINVAL);
    attr.comp_mask = 0;
    EXPECT(ibv_start_poll(cq, &attr), ==, ENOENT); /* after which there is no ibv_end_poll */
    EXPECT(ibv_start_poll(cq, &attr), ==, ENOENT);
    fixture_write(&fixture, qp, 2);
    int error;
    do
        error = ibv_start_poll(cq, &attr);
    while (error == ENOENT);
    EXPECT(error, ==, 0);
    EXPECT(cq->wr_id, ==, 0);
    while (ibv_next_poll(cq) == ENOENT)
        ;
    EXPECT(cq->wr_id, ==, 1);
    EXPECT(ibv_next_poll(cq), ==, ENOENT); /* after which there is one */
    ibv_end_poll(cq);
    EXPECT(ibv_start_poll(cq, &attr), ==, ENOENT);
    fixture_close(&fixture);
}

static void start_some(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    int error;
    do
        error = ibv_start_poll(cq, &attr);
    while (error == ENOENT);
    EXPECT(error, ==, 0);
}

/* A thread that holds the queue would wait for itself. */
static void ibv_start_poll_twice_is_refused_and_so_is_ibv_end_poll(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_cq_ex *cq = make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.wc_flags = IBV_WC_STANDARD_FLAGS});
    struct ibv_qp *qp = local_loop(fixture.pd, ibv_cq_ex_to_cq(cq));
    struct ibv_poll_cq_attr attr = {0};
    ibv_end_poll(cq);
    for (int round = 0; round < 2; round++) {
        fixture_write(&fixture, qp, 2);
        start_some(cq);
        EXPECT(ibv_start_poll(cq, &attr), ==, EINVAL);
        EXPECT(cq->wr_id, ==, 0); /* the batch is what it was */
        while (ibv_next_poll(cq) == ENOENT)
            ;
        EXPECT(cq->wr_id, ==, 1);
        ibv_end_poll(cq);
        ibv_end_poll(cq);
    }
    fixture_close(&fixture);
}

static void ibv_wc_read_invalidated_rkey_reads_what_was_invalidated(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_cq_ex *cq = make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.wc_flags = IBV_WC_STANDARD_FLAGS});
    struct ibv_qp *qp = local_loop(fixture.pd, ibv_cq_ex_to_cq(cq));
    struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(fixture.pd, IBV_MW_TYPE_2);
    uint32_t key = ibv_inc_rkey(mw->rkey);
    struct ibv_send_wr *bad, bind = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
    bind.bind_mw.mw = mw;
    bind.bind_mw.rkey = key;
    bind.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)fixture.memory, 64, IBV_ACCESS_REMOTE_READ};
    struct ibv_send_wr send = {.wr_id = 2, .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key};
    struct ibv_recv_wr receive = {.wr_id = 3}, *bad_receive;
    EXPECT(ibv_post_recv(qp, &receive, &bad_receive), ==, 0);
    bind.next = &send;
    EXPECT(ibv_post_send(qp, &bind, &bad), ==, 0);
    start_some(cq);
    EXPECT(cq->status, ==, IBV_WC_SUCCESS);
    EXPECT(cq->wr_id, ==, 3);
    EXPECT(ibv_wc_read_wc_flags(cq), ==, IBV_WC_WITH_INV);
    EXPECT(ibv_wc_read_invalidated_rkey(cq), ==, key);
    ibv_end_poll(cq);
    fixture_close(&fixture);
}

/* -- queue pairs and shared receive queues */

static void expect_no_qp(struct fixture *fixture, struct ibv_qp_init_attr init, int error)
{
    EXPECT_ERRNO(ibv_create_qp(fixture->pd, &init), error);
}

static void ibv_create_qp_refuses_what_cannot_be(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp_init_attr init = fixture_describe(&fixture, IBV_QPT_RC);
#define WITH(field, value, error)                                                                                      \
    do {                                                                                                               \
        struct ibv_qp_init_attr changed = init;                                                                        \
        changed.field = value;                                                                                         \
        expect_no_qp(&fixture, changed, error);                                                                        \
    } while (0)
    WITH(send_cq, NULL, EINVAL);
    WITH(recv_cq, NULL, EINVAL);
    WITH(qp_type, (enum ibv_qp_type)1, EOPNOTSUPP);
    WITH(qp_type, (enum ibv_qp_type)99, EOPNOTSUPP);
    WITH(cap.max_send_wr, MUCH, EINVAL);
    WITH(cap.max_recv_wr, MUCH, EINVAL);
    WITH(cap.max_send_sge, MUCH, EINVAL);
    WITH(cap.max_recv_sge, MUCH, EINVAL);
    WITH(cap.max_inline_data, MUCH, EINVAL);
#undef WITH
    struct ibv_qp *qp = ibv_create_qp(fixture.pd, &init);
    EXPECT_TRUE(qp && qp->state == IBV_QPS_RESET && qp->pd == fixture.pd && qp->send_cq == fixture.cq);
    EXPECT(init.cap.max_send_wr, >=, 4);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    fixture_close(&fixture);
}

static void ibv_modify_qp_refuses_unknown_and_missing_attributes(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int all = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    EXPECT(ibv_modify_qp(qp, &attr, all | 1 << 30), ==, EINVAL);
    EXPECT(ibv_modify_qp(qp, &attr, all & ~IBV_QP_PORT), ==, EINVAL);
    attr.port_num = 2;
    EXPECT(ibv_modify_qp(qp, &attr, all), ==, EINVAL);
    attr.port_num = 1, attr.pkey_index = 1;
    EXPECT(ibv_modify_qp(qp, &attr, all), ==, EINVAL);
    attr.pkey_index = 0, attr.qp_state = IBV_QPS_RTS;
    EXPECT(ibv_modify_qp(qp, &attr, all), ==, EINVAL);
    attr.qp_state = (enum ibv_qp_state)99;
    EXPECT(ibv_modify_qp(qp, &attr, all), ==, EINVAL);
    EXPECT(local_state(qp), ==, IBV_QPS_RESET);
    attr.qp_state = IBV_QPS_INIT;
    EXPECT(ibv_modify_qp(qp, &attr, all), ==, 0);
    fixture_close(&fixture);
}

/* No list at all, in each state: an error where nothing may be posted, with no work request to blame. */
static void ibv_post_send_takes_an_empty_list(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_RC);
    struct ibv_send_wr none, *bad = &none;
    EXPECT(ibv_post_send(qp, NULL, &bad), ==, EINVAL);
    EXPECT_TRUE(!bad);
    local_initialize(qp);
    EXPECT(ibv_post_send(qp, NULL, &bad), ==, EINVAL);
    local_receive_from(qp, qp->qp_num);
    EXPECT(ibv_post_send(qp, NULL, &bad), ==, EINVAL);
    local_send(qp);
    EXPECT(ibv_post_send(qp, NULL, &bad), ==, 0);
    fixture_close(&fixture);
}

static void ibv_query_qp_gives_back_what_was_asked_for(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_UC);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(qp, &attr, 0, &init), ==, 0);
    EXPECT(init.qp_type, ==, IBV_QPT_UC);
    EXPECT_TRUE(init.send_cq == fixture.cq && init.recv_cq == fixture.cq && !init.srq);
    qp->handle++;
    EXPECT(ibv_query_qp(qp, &attr, 0, &init), ==, ENOENT);
    qp->handle--;
    fixture_close(&fixture);
}

static void ibv_create_srq_refuses_sizes_that_are_not(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq_init_attr empty = {.attr = {.max_sge = 1}}, huge = {.attr = {.max_wr = MUCH, .max_sge = 1}},
                             wide = {.attr = {.max_wr = 1, .max_sge = MUCH}};
    EXPECT_ERRNO(ibv_create_srq(fixture.pd, &empty), EINVAL);
    EXPECT_ERRNO(ibv_create_srq(fixture.pd, &huge), EINVAL);
    EXPECT_ERRNO(ibv_create_srq(fixture.pd, &wide), EINVAL);
    struct ibv_srq_init_attr limited = {.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 2}};
    struct ibv_srq *srq = ibv_create_srq(fixture.pd, &limited);
    EXPECT_TRUE(srq && limited.attr.max_wr >= 4 && limited.attr.max_sge >= 1);
    EXPECT(limited.attr.srq_limit, ==, 0); /* "the original values of the SRQ that was created" */
    EXPECT(ibv_destroy_srq(srq), ==, 0);
    fixture_close(&fixture);
}

/* "If any of the modify attributes is invalid, none of the attributes will be modified." */
static void ibv_modify_srq_does_all_or_nothing(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 8);
    struct ibv_srq_attr before, after, attr = {.max_wr = 64, .srq_limit = MUCH};
    EXPECT(ibv_query_srq(srq, &before), ==, 0);
    EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), ==, EINVAL);
    EXPECT(ibv_query_srq(srq, &after), ==, 0);
    EXPECT(after.max_wr, ==, before.max_wr);
    EXPECT(after.srq_limit, ==, 0);
    attr.srq_limit = 60; /* which fits what it will be */
    EXPECT(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), ==, 0);
    EXPECT(local_event(fixture.context).event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT(ibv_query_srq(srq, &after), ==, 0);
    EXPECT(after.max_wr, >=, 64);
    EXPECT(ibv_modify_srq(srq, &attr, 0), ==, 0);
    fixture_close(&fixture);
}

static void ibv_post_srq_recv_names_the_bad_one(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 2);
    struct ibv_sge sges[2] = {{(uintptr_t)fixture.memory, 8, fixture.mr->lkey},
                              {(uintptr_t)fixture.memory, 8, fixture.mr->lkey}};
    struct ibv_recv_wr second = {.wr_id = 2, .sg_list = sges, .num_sge = 2};
    struct ibv_recv_wr first = {.wr_id = 1, .next = &second, .sg_list = sges, .num_sge = 1}, *bad = NULL;
    EXPECT(ibv_post_srq_recv(srq, &first, &bad), ==, EINVAL);
    EXPECT_TRUE(bad == &second);
    second.num_sge = -1;
    EXPECT(ibv_post_srq_recv(srq, &second, &bad), ==, EINVAL);
    second.num_sge = 0;
    int error = 0, posted = 0;
    while (!(error = ibv_post_srq_recv(srq, &second, &bad)) && posted < 100)
        posted++;
    EXPECT(error, ==, ENOMEM);
    EXPECT_TRUE(bad == &second && posted >= 1);
    fixture_close(&fixture);
}

/* Tag matching has separate tests, tests/tags. */
static void ibv_post_srq_ops_is_for_lists_of_tags(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_srq *plain = fixture_srq(&fixture, 4);
    struct ibv_ops_wr add = {.wr_id = 7, .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED}, *bad = NULL;
    struct ibv_sge sge = {(uintptr_t)fixture.memory, 64, fixture.mr->lkey};
    add.tm.add.sg_list = &sge;
    add.tm.add.num_sge = 1;
    EXPECT(ibv_post_srq_ops(plain, &add, &bad), ==, EINVAL);
    struct ibv_cq_ex *cq =
        make_cq_ex(&fixture, (struct ibv_cq_init_attr_ex){.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO});
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = fixture.pd,
                                        .cq = ibv_cq_ex_to_cq(cq),
                                        .tm_cap = {.max_num_tags = 1, .max_ops = 2}};
    struct ibv_srq *srq = ibv_create_srq_ex(fixture.context, &init);
    EXPECT_TRUE(srq);
    EXPECT(ibv_post_srq_ops(srq, &add, &bad), ==, 0);
    start_some(cq);
    EXPECT(cq->status, ==, IBV_WC_SUCCESS);
    EXPECT(cq->wr_id, ==, 7);
    EXPECT(ibv_wc_read_opcode(cq), ==, IBV_WC_TM_ADD);
    struct ibv_wc_tm_info info;
    ibv_wc_read_tm_info(cq, &info);
    ibv_end_poll(cq);
    EXPECT(ibv_post_srq_ops(srq, &add, &bad), ==, ENOMEM); /* the list is full */
    EXPECT_TRUE(bad == &add);
    add.opcode = (enum ibv_ops_wr_opcode)99;
    EXPECT(ibv_post_srq_ops(srq, &add, &bad), ==, EINVAL);
    fixture_close(&fixture);
}

static void of_memory_and_queues(void)
{
    CASE(ibv_dealloc_pd_waits_for_all_its_users);
    CASE(ibv_reg_mr_refuses_what_cannot_be);
    CASE(ibv_reg_mr_takes_0_bytes_but_not_at_a_page_boundary);
    CASE(ibv_reg_mr_iova2_takes_optional_access_and_refuses_the_rest);
    CASE(ibv_reg_mr_iova_refuses_an_iova_elsewhere_in_its_page);
    CASE(ibv_rereg_mr_says_which_kind_of_error_it_was);
    CASE(ibv_dereg_mr_and_others_know_a_handle_that_was_spoilt);
    CASE(ibv_alloc_mw_knows_two_types);
    CASE(ibv_create_cq_refuses_sizes_and_vectors_that_are_not);
    CASE(ibv_create_cq_ex_refuses_what_it_does_not_know);
    CASE(the_largest_CQ_is_no_larger_than_the_device_says);
    CASE(ibv_resize_cq_keeps_room_for_what_is_there);
    CASE(ibv_destroy_comp_channel_waits_for_its_queues);
    CASE(ibv_start_poll_refuses_attributes_and_says_ENOENT);
    CASE(ibv_start_poll_twice_is_refused_and_so_is_ibv_end_poll);
    CASE(ibv_wc_read_invalidated_rkey_reads_what_was_invalidated);
}

static void of_queue_pairs(void)
{
    CASE(ibv_create_qp_refuses_what_cannot_be);
    CASE(ibv_modify_qp_refuses_unknown_and_missing_attributes);
    CASE(ibv_post_send_takes_an_empty_list);
    CASE(ibv_query_qp_gives_back_what_was_asked_for);
    CASE(ibv_create_srq_refuses_sizes_that_are_not);
    CASE(ibv_modify_srq_does_all_or_nothing);
    CASE(ibv_post_srq_recv_names_the_bad_one);
    CASE(ibv_post_srq_ops_is_for_lists_of_tags);
}

static void all(void)
{
    of_memory_and_queues();
    of_queue_pairs();
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
