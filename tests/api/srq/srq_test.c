/* Shared receive queues: shared by several queue pairs, limits, resizing, the last work request. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "local_fixture.h"
#include "pair.h"

static struct pair open_on_srq(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.srq = true;
    return pair_open_as(wishes);
}

static void post_many(struct end *far, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++)
        end_post_receive(far, end_receive(far, id, 0, 64));
}

static void send_many(struct pair *pair, uint64_t from, uint64_t to)
{
    for (uint64_t id = from; id < to; id++) {
        end_post(&pair->near, end_send(&pair->near, &pair->far, IBV_WR_SEND, id, 0, 8));
        end_expect_sent(&pair->near, id, IBV_WC_SUCCESS);
        end_expect_received(&pair->far, id, IBV_WC_SUCCESS, 8);
    }
}

static int set_limit(struct end *far, uint32_t limit)
{
    struct ibv_srq_attr attr = {.srq_limit = limit};
    return remote_modify_srq(far->remote, far->srq, &attr, IBV_SRQ_LIMIT);
}

static int resize(struct end *far, uint32_t size)
{
    struct ibv_srq_attr attr = {.max_wr = size};
    return remote_modify_srq(far->remote, far->srq, &attr, IBV_SRQ_MAX_WR);
}

static struct ibv_srq_attr query(struct end *far)
{
    struct ibv_srq_attr attr;
    EXPECT(remote_query_srq(far->remote, far->srq, &attr), ==, 0);
    return attr;
}

/* Strictly below the limit, once; ibv_modify_srq arms it again. */
static void the_limit_event_comes_once_below_the_limit(const void *row)
{
    struct pair pair = open_on_srq();
    struct end *far = &pair.far;
    post_many(far, 0, 10);
    EXPECT(set_limit(far, 5), ==, 0);
    EXPECT(query(far).srq_limit, ==, 5);
    send_many(&pair, 0, 5);
    EXPECT(remote_get_async_event(far->remote, 10), ==, -1);
    send_many(&pair, 5, 6);
    EXPECT(remote_get_async_event(far->remote, PATIENCE), ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT(far->remote->call.id[0], ==, far->srq);
    EXPECT(query(far).srq_limit, ==, 0);
    send_many(&pair, 6, 7);
    EXPECT(remote_get_async_event(far->remote, 10), ==, -1);
    post_many(far, 10, 15);
    EXPECT(set_limit(far, 3), ==, 0);
    send_many(&pair, 7, 12);
    EXPECT(remote_get_async_event(far->remote, 10), ==, -1);
    send_many(&pair, 12, 13);
    EXPECT(remote_get_async_event(far->remote, PATIENCE), ==, IBV_EVENT_SRQ_LIMIT_REACHED);
}

static void a_limit_above_the_size_is_EINVAL(const void *row)
{
    struct pair pair = open_on_srq();
    EXPECT(set_limit(&pair.far, query(&pair.far).max_wr + 1), ==, EINVAL);
    EXPECT(set_limit(&pair.far, query(&pair.far).max_wr), ==, 0);
}

static void an_SRQ_grows_and_shrinks_to_what_is_posted(const void *row)
{
    struct pair pair = open_on_srq();
    struct end *far = &pair.far;
    post_many(far, 0, pair.wishes.cap.max_recv_wr);
    struct receive extra = end_receive(far, 9, 0, 64);
    EXPECT(remote_post_srq(far->remote, far->srq, &extra, 1, NULL), ==, ENOMEM);
    EXPECT(resize(far, 200), ==, 0);
    EXPECT(query(far).max_wr, >=, 200);
    post_many(far, pair.wishes.cap.max_recv_wr, 200);
    EXPECT(resize(far, 100), ==, EINVAL);
    EXPECT(query(far).max_wr, >=, 200);
    send_many(&pair, 0, 150);
    EXPECT(resize(far, 50), ==, 0);
    EXPECT(remote_post_srq(far->remote, far->srq, &extra, 1, NULL), ==, ENOMEM);
    send_many(&pair, 150, 200);
}

static void unknown_attributes_and_sizes_are_EINVAL(const void *row)
{
    struct pair pair = open_on_srq();
    struct ibv_srq_attr attr = {.max_wr = 10};
    EXPECT(remote_modify_srq(pair.far.remote, pair.far.srq, &attr, 1 << 5), ==, EINVAL);
    EXPECT(resize(&pair.far, 0), ==, EINVAL);
    EXPECT(resize(&pair.far, 1 << 30), ==, EINVAL);
    post_many(&pair.far, 0, 1);
    send_many(&pair, 0, 1);
}

static void an_SRQ_in_use_is_EBUSY_and_goes_on(const void *row)
{
    struct pair pair = open_on_srq();
    struct end *far = &pair.far;
    EXPECT(remote_destroy(far->remote, KIND_SRQ, far->srq), ==, EBUSY);
    post_many(far, 0, 1);
    send_many(&pair, 0, 1);
    EXPECT(remote_destroy(far->remote, KIND_QP, far->qp), ==, 0);
    EXPECT(remote_destroy(far->remote, KIND_SRQ, far->srq), ==, 0);
}

/* A queue pair that dies takes no shared receive along, and reports once that it takes no more. */
static void the_last_work_request_is_reported_once(const void *row)
{
    struct pair pair = open_on_srq();
    struct end *far = &pair.far;
    post_many(far, 0, 3);
    EXPECT(end_move(far, IBV_QPS_ERR), ==, 0);
    EXPECT(remote_get_async_event(far->remote, PATIENCE), ==, IBV_EVENT_QP_LAST_WQE_REACHED);
    EXPECT(far->remote->call.id[0], ==, far->qp);
    EXPECT(end_move(far, IBV_QPS_ERR), ==, 0);
    EXPECT(remote_get_async_event(far->remote, 10), ==, -1);
    end_expect_nothing(far);
    EXPECT(end_move(&pair.near, IBV_QPS_RESET), ==, 0);
    EXPECT(end_move(far, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    send_many(&pair, 0, 3);
    EXPECT(end_move(far, IBV_QPS_ERR), ==, 0);
    EXPECT(remote_get_async_event(far->remote, PATIENCE), ==, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* A message takes the oldest receive, whichever queue pair it arrived at. */
static void queue_pairs_share_the_receives(const void *row)
{
    struct pair first = open_on_srq(), second = first;
    end_create_qp(&second.near, &second.wishes);
    end_create_qp(&second.far, &second.wishes);
    pair_connect(&second);
    post_many(&first.far, 0, 20);
    for (uint64_t id = 0; id < 20; id++) {
        struct pair *pair = id % 3 ? &first : &second;
        end_post(&pair->near, end_send(&pair->near, &pair->far, IBV_WR_SEND, id, 0, 8));
        end_expect_sent(&pair->near, id, IBV_WC_SUCCESS);
        end_expect_received(&pair->far, id, IBV_WC_SUCCESS, 8);
    }
    EXPECT(remote_destroy(first.far.remote, KIND_QP, first.far.qp), ==, 0);
    post_many(&second.far, 0, 2);
    send_many(&second, 0, 2);
}

/* -- which protection domain the receives are of */

struct two_domains {
    struct fixture fixture; /* its domain is the SRQ's */
    struct ibv_pd *pd;      /* the queue pair's */
    struct ibv_mr *mr;      /* of the queue pair's domain, over the same memory */
    struct ibv_srq *srq;
    struct ibv_qp *qp; /* connected with itself */
};

static struct two_domains open_two_domains(enum ibv_qp_type type)
{
    struct two_domains of = {.fixture = fixture_open()};
    struct ibv_qp_init_attr init = fixture_describe(&of.fixture, type);
    of.pd = ibv_alloc_pd(of.fixture.context);
    of.mr = ibv_reg_mr(of.pd, of.fixture.memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    init.srq = of.srq = fixture_srq(&of.fixture, 4);
    of.qp = ibv_create_qp(of.pd, &init);
    EXPECT_TRUE(of.mr && of.qp);
    local_initialize(of.qp);
    local_receive_from(of.qp, of.qp->qp_num);
    local_send(of.qp);
    return of;
}

static void post_shared(struct two_domains *of, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)of->fixture.memory + 1024, 1024, lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_srq_recv(of->srq, &wr, &bad), ==, 0);
}

static void send_to_itself(struct two_domains *of)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    struct ibv_sge sge = {(uintptr_t)of->fixture.memory, 8, of->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    if (of->qp->qp_type == IBV_QPT_UD) {
        EXPECT(ibv_query_gid(of->fixture.context, 1, 0, &attr.grh.dgid), ==, 0);
        wr.wr.ud.ah = ibv_create_ah(of->pd, &attr);
        wr.wr.ud.remote_qpn = of->qp->qp_num;
        wr.wr.ud.remote_qkey = 0x11;
    }
    EXPECT(ibv_post_send(of->qp, &wr, &bad), ==, 0);
}

/* ibv_create_srq(3) makes the SRQ in a domain, whatever domain the queue pairs are of. */
static void receives_are_of_the_queues_domain(const void *row)
{
    struct two_domains of = open_two_domains(*(const enum ibv_qp_type *)row);
    post_shared(&of, of.fixture.mr->lkey);
    send_to_itself(&of);
    struct ibv_wc wc = local_poll(of.fixture.cq);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.wr_id, ==, 1);
    fixture_close(&of.fixture);
}

static void receives_are_not_of_the_queue_pairs_domain(const void *row)
{
    struct two_domains of = open_two_domains(*(const enum ibv_qp_type *)row);
    memcpy(of.fixture.memory, "keep out", 8);
    post_shared(&of, of.mr->lkey);
    send_to_itself(&of);
    struct ibv_wc wc = local_poll(of.fixture.cq);
    EXPECT(wc.status, ==, IBV_WC_LOC_PROT_ERR);
    EXPECT(wc.wr_id, ==, 1);
    for (int i = 1024; i < 2048; i++)
        EXPECT(of.fixture.memory[i], ==, 0);
    fixture_close(&of.fixture);
}

/* The library does as adapters, which clean their CQ and free the entries of the SRQ. */
static void what_a_destroyed_queue_pair_received_is_not_told_and_its_places_are_free(const void *row)
{
    struct two_domains of = open_two_domains(IBV_QPT_RC);
    struct ibv_async_event event;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            post_shared(&of, of.fixture.mr->lkey);
        EXPECT(ibv_modify_srq(of.srq, &(struct ibv_srq_attr){.srq_limit = 1}, IBV_SRQ_LIMIT), ==, 0);
        for (int i = 0; i < 4; i++)
            send_to_itself(&of);
        EXPECT(ibv_get_async_event(of.fixture.context, &event), ==, 0); /* all four receives were taken */
        EXPECT(event.event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
        ibv_ack_async_event(&event);
        EXPECT(ibv_modify_qp(of.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), ==, 0);
        local_poll_nothing(of.fixture.cq);
        local_initialize(of.qp);
        local_receive_from(of.qp, of.qp->qp_num);
        local_send(of.qp);
    }
    fixture_close(&of.fixture);
}

/* -- datagrams */

static void send_datagram(struct fixture *fixture, struct ibv_qp *from, struct ibv_qp *to, uint32_t length)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    struct ibv_sge sge = {(uintptr_t)fixture->memory, length, fixture->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    EXPECT(ibv_query_gid(fixture->context, 1, 0, &attr.grh.dgid), ==, 0);
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ibv_create_ah(fixture->pd, &attr);
    wr.wr.ud.remote_qpn = to->qp_num;
    wr.wr.ud.remote_qkey = 0x11;
    EXPECT(ibv_post_send(from, &wr, &bad), ==, 0);
    EXPECT(local_poll(fixture->cq).wr_id, ==, 9);
}

static struct ibv_qp *make_datagrams(struct fixture *fixture, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = fixture_describe(fixture, IBV_QPT_UD);
    init.srq = srq;
    struct ibv_qp *qp = ibv_create_qp(fixture->pd, &init);
    EXPECT_TRUE(qp);
    local_initialize(qp);
    local_receive_from(qp, 0);
    local_send(qp);
    return qp;
}

/* "The message is discarded", and with that nothing has happened to the SRQ, of whose receives another queue pair may
 * have the next. */
static void a_datagram_that_is_too_long_takes_no_receive(const void *row)
{
    enum { ROOM = 60, TOO_LONG = ROOM - 40 + 1 };
    struct fixture fixture = fixture_open();
    struct ibv_srq *srq = fixture_srq(&fixture, 1);
    struct ibv_qp *one = make_datagrams(&fixture, srq), *other = make_datagrams(&fixture, srq);
    struct ibv_sge sge = {(uintptr_t)fixture.memory + 1024, ROOM, fixture.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_srq_attr limit = {.srq_limit = 1};
    EXPECT(ibv_post_srq_recv(srq, &wr, &bad), ==, 0);
    EXPECT(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), ==, 0);
    send_datagram(&fixture, other, one, TOO_LONG);
    local_poll_nothing(fixture.cq);
    local_no_event(fixture.context);
    EXPECT(ibv_modify_qp(one, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), ==, 0);
    local_poll_nothing(fixture.cq);
    EXPECT(ibv_destroy_qp(one), ==, 0);
    send_datagram(&fixture, other, other, TOO_LONG - 1);
    struct ibv_wc wc = local_poll(fixture.cq);
    EXPECT(wc.wr_id, ==, 1);
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    EXPECT(wc.byte_len, ==, ROOM);
    fixture_close(&fixture);
}

static void of_each_type(const char *name, void (*body)(const void *))
{
    static const struct {
        enum ibv_qp_type type;
        const char *name;
    } types[] = {{IBV_QPT_RC, "RC"}, {IBV_QPT_UC, "UC"}, {IBV_QPT_UD, "UD"}};
    for (size_t i = 0; i < COUNT(types); i++) {
        char full[128];
        snprintf(full, sizeof full, "%s: %s", types[i].name, name);
        harness_run(full, body, &types[i].type);
    }
}

static void all(void)
{
    CASE(the_limit_event_comes_once_below_the_limit);
    CASE(a_limit_above_the_size_is_EINVAL);
    CASE(an_SRQ_grows_and_shrinks_to_what_is_posted);
    CASE(unknown_attributes_and_sizes_are_EINVAL);
    CASE(an_SRQ_in_use_is_EBUSY_and_goes_on);
    CASE(the_last_work_request_is_reported_once);
    CASE(queue_pairs_share_the_receives);
    CASE(what_a_destroyed_queue_pair_received_is_not_told_and_its_places_are_free);
    CASE(a_datagram_that_is_too_long_takes_no_receive);
    of_each_type("receives are of the queue's domain", receives_are_of_the_queues_domain);
    of_each_type("receives are not of the queue pair's domain", receives_are_not_of_the_queue_pairs_domain);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
