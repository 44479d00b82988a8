/* A receive's place is free when its completion was polled, as on adapters: so ibv_post_recv(3) and
 * ibv_post_srq_recv(3) say ENOMEM when max_recv_wr receives have no completion that the program has seen. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "local_fixture.h"
#include "xrc_make.h"

enum { PLACES = 4 /* as fixture_describe has them */, MANY = 1000 };

struct loop {
    struct fixture fixture;
    struct ibv_cq *cq; /* of the receives; there is room for as many as the queue has places */
    struct ibv_srq *srq;
    struct ibv_qp *qp; /* connected with itself */
};

static void connect_loop(struct loop *loop)
{
    local_initialize(loop->qp);
    local_receive_from(loop->qp, loop->qp->qp_num);
    local_send(loop->qp);
}

static struct ibv_qp *make_qp(struct loop *loop, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = fixture_describe(&loop->fixture, type);
    init.recv_cq = loop->cq;
    init.srq = loop->srq;
    init.cap.max_send_wr = MANY;
    struct ibv_qp *qp = ibv_create_qp(loop->fixture.pd, &init);
    EXPECT_TRUE(qp);
    return qp;
}

static struct loop open_loop(enum ibv_qp_type type, bool shared)
{
    struct loop loop = {.fixture = fixture_open()};
    loop.cq = ibv_create_cq(loop.fixture.context, PLACES, NULL, NULL, 0);
    loop.srq = shared ? fixture_srq(&loop.fixture, PLACES) : NULL;
    loop.qp = make_qp(&loop, type);
    connect_loop(&loop);
    return loop;
}

static int post_receive(struct loop *loop)
{
    struct ibv_sge sge = {(uintptr_t)loop->fixture.memory + 1024, 1024, loop->fixture.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    return loop->srq ? ibv_post_srq_recv(loop->srq, &wr, &bad) : ibv_post_recv(loop->qp, &wr, &bad);
}

/* Until it is refused: how many. */
static int fill(struct loop *loop)
{
    int count = 0, error = 0;
    while (count < MANY && !(error = post_receive(loop)))
        count++;
    EXPECT(error, ==, ENOMEM);
    return count;
}

static void send_to(struct loop *loop, struct ibv_qp *qp)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    struct ibv_sge sge = {(uintptr_t)loop->fixture.memory, 8, loop->fixture.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    wr.send_flags = IBV_SEND_SIGNALED;
    if (qp->qp_type == IBV_QPT_UD) {
        EXPECT(ibv_query_gid(loop->fixture.context, 1, 0, &attr.grh.dgid), ==, 0);
        wr.wr.ud.ah = ibv_create_ah(loop->fixture.pd, &attr);
        wr.wr.ud.remote_qpn = qp->qp_num;
        wr.wr.ud.remote_qkey = 0x11;
    }
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
    EXPECT(local_poll(loop->fixture.cq).wr_id, ==, 2);
}

static void send_many(struct loop *loop, int count)
{
    for (int i = 0; i < count; i++)
        send_to(loop, loop->qp);
    if (count && loop->qp->qp_type != IBV_QPT_RC)
        local_poll_nothing(loop->fixture.cq); /* until the last has arrived */
}

static void expect_receives(struct loop *loop, int count, enum ibv_wc_status status)
{
    for (int i = 0; i < count; i++) {
        struct ibv_wc wc = local_poll(loop->cq);
        EXPECT(wc.wr_id, ==, 1);
        EXPECT(wc.status, ==, status);
    }
}

static const struct kind {
    const char *name;
    enum ibv_qp_type type;
    bool shared;
} kinds[] = {{"RC", IBV_QPT_RC, false},          {"UC", IBV_QPT_UC, false},
             {"UD", IBV_QPT_UD, false},          {"RC on an SRQ", IBV_QPT_RC, true},
             {"UC on an SRQ", IBV_QPT_UC, true}, {"UD on an SRQ", IBV_QPT_UD, true}};

/* The CQ has a place for each receive, so it can't overrun. */
static void posting_until_ENOMEM_overruns_no_CQ(const void *row)
{
    const struct kind *kind = row;
    struct loop loop = open_loop(kind->type, kind->shared);
    for (int round = 0; round < 3; round++) {
        EXPECT(fill(&loop), ==, PLACES);
        send_many(&loop, PLACES);
        EXPECT(fill(&loop), ==, 0);
        local_no_event(loop.fixture.context);
        for (int i = 0; i < PLACES; i++) {
            expect_receives(&loop, 1, IBV_WC_SUCCESS);
            EXPECT(fill(&loop), ==, 1);
            send_many(&loop, 1);
        }
        expect_receives(&loop, PLACES, IBV_WC_SUCCESS);
    }
    fixture_close(&loop.fixture);
}

static void posting_in_ERR_ends(const void *row)
{
    struct loop loop = open_loop(IBV_QPT_RC, false);
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    EXPECT(fill(&loop), ==, PLACES);
    EXPECT(ibv_modify_qp(loop.qp, &error, IBV_QP_STATE), ==, 0);
    EXPECT(fill(&loop), ==, 0);
    expect_receives(&loop, PLACES, IBV_WC_WR_FLUSH_ERR);
    EXPECT(fill(&loop), ==, PLACES);
    expect_receives(&loop, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT(fill(&loop), ==, 2);
    local_no_event(loop.fixture.context);
    fixture_close(&loop.fixture);
}

/* Completions of a queue pair that is reset or destroyed are never polled. */
static void what_is_withdrawn_has_no_place(const void *row)
{
    const struct kind *kind = row;
    struct loop loop = open_loop(kind->type, kind->shared);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    for (int round = 0; round < 3; round++) {
        EXPECT(fill(&loop), ==, PLACES);
        send_many(&loop, round);
        EXPECT(ibv_modify_qp(loop.qp, &reset, IBV_QP_STATE), ==, 0);
        local_poll_nothing(loop.cq);
        connect_loop(&loop);
        EXPECT(fill(&loop), ==, kind->shared ? round : PLACES);
        send_many(&loop, PLACES);
        expect_receives(&loop, PLACES, IBV_WC_SUCCESS);
    }
    EXPECT(fill(&loop), ==, PLACES);
    send_many(&loop, PLACES);
    EXPECT(ibv_destroy_qp(loop.qp), ==, 0);
    local_poll_nothing(loop.cq);
    loop.qp = make_qp(&loop, kind->type);
    connect_loop(&loop);
    EXPECT(fill(&loop), ==, PLACES);
    fixture_close(&loop.fixture);
}

static void queue_pairs_with_CQs_of_their_own_share_the_places(const void *row)
{
    struct loop loop = open_loop(IBV_QPT_RC, true), other = loop;
    other.cq = ibv_create_cq(loop.fixture.context, PLACES, NULL, NULL, 0);
    other.qp = make_qp(&other, IBV_QPT_RC);
    connect_loop(&other);
    EXPECT(fill(&loop), ==, PLACES);
    send_many(&loop, 1);
    send_many(&other, PLACES - 1);
    EXPECT(fill(&loop), ==, 0);
    expect_receives(&other, 2, IBV_WC_SUCCESS);
    EXPECT(fill(&loop), ==, 2);
    expect_receives(&loop, 1, IBV_WC_SUCCESS);
    EXPECT(fill(&loop), ==, 1);
    fixture_close(&loop.fixture);
}

static void an_SRQ_does_not_shrink_below_what_was_not_polled(const void *row)
{
    struct loop loop = open_loop(IBV_QPT_RC, true);
    struct ibv_srq_attr smaller = {.max_wr = PLACES - 1};
    EXPECT(fill(&loop), ==, PLACES);
    send_many(&loop, 2);
    EXPECT(ibv_modify_srq(loop.srq, &smaller, IBV_SRQ_MAX_WR), ==, EINVAL);
    expect_receives(&loop, 2, IBV_WC_SUCCESS);
    EXPECT(ibv_modify_srq(loop.srq, &smaller, IBV_SRQ_MAX_WR), ==, 0);
    EXPECT(fill(&loop), ==, 1);
    fixture_close(&loop.fixture);
}

/* The limit counts what waits for a message, as before. */
static void the_limit_is_reached_when_receives_are_taken(const void *row)
{
    struct loop loop = open_loop(IBV_QPT_RC, true);
    struct ibv_srq_attr limit = {.srq_limit = 3};
    EXPECT(fill(&loop), ==, PLACES);
    EXPECT(ibv_modify_srq(loop.srq, &limit, IBV_SRQ_LIMIT), ==, 0);
    send_many(&loop, 2);
    EXPECT(local_event(loop.fixture.context).event_type, ==, IBV_EVENT_SRQ_LIMIT_REACHED);
    fixture_close(&loop.fixture);
}

/* An entry that is overwritten where overruns are ignored will not be polled either. */
static void an_entry_that_was_overwritten_has_no_place(const void *row)
{
    const struct kind *kind = row;
    struct loop loop = {.fixture = fixture_open()};
    struct ibv_cq_init_attr_ex attr = {.cqe = 2,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS,
                                       .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                       .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
    loop.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(loop.fixture.context, &attr));
    loop.srq = kind->shared ? fixture_srq(&loop.fixture, PLACES) : NULL;
    loop.qp = make_qp(&loop, kind->type);
    connect_loop(&loop);
    EXPECT(fill(&loop), ==, PLACES);
    send_many(&loop, PLACES);
    EXPECT(fill(&loop), ==, PLACES - 2);
    fixture_close(&loop.fixture);
}

/* A CQ that overran loses completions, whose receives may be of an SRQ that others use on. */
static void a_lost_completion_takes_no_place_of_an_SRQ_along(const void *row)
{
    struct loop loop = {.fixture = fixture_open()}, other;
    loop.cq = ibv_create_cq(loop.fixture.context, 1, NULL, NULL, 0);
    loop.srq = fixture_srq(&loop.fixture, PLACES);
    loop.qp = make_qp(&loop, IBV_QPT_RC);
    connect_loop(&loop);
    other = loop;
    EXPECT(fill(&loop), ==, PLACES);
    send_many(&loop, 2);
    EXPECT(local_event(loop.fixture.context).event_type, ==, IBV_EVENT_CQ_ERR);
    EXPECT(fill(&other), ==, 1);
    expect_receives(&loop, 1, IBV_WC_SUCCESS);
    EXPECT(fill(&other), ==, 1);
    fixture_close(&loop.fixture);
}

/* The receives are the SRQ's, and outlive the queue pair; the SRQ may be destroyed before they are polled. */
static void receives_of_an_XRC_SRQ_have_places_until_they_are_polled(const void *row)
{
    struct loop loop = {.fixture = fixture_open()};
    struct ibv_context *context = loop.fixture.context;
    struct ibv_xrcd *domain = xrc_make_domain(context, -1, O_CREAT);
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_SEND,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = loop.fixture.pd,
                                       .send_cq = loop.fixture.cq,
                                       .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    loop.cq = ibv_create_cq(context, PLACES, NULL, NULL, 0);
    loop.srq = xrc_make_srq(loop.fixture.pd, domain, loop.cq, PLACES);
    struct ibv_qp *sender = ibv_create_qp_ex(context, &init), *receiver = xrc_make_receiver(context, domain);
    struct ibv_sge sge = {(uintptr_t)loop.fixture.memory, 8, loop.fixture.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    EXPECT_TRUE(loop.srq && sender && receiver);
    local_connect(sender, receiver);
    wr.send_flags = IBV_SEND_SIGNALED;
    EXPECT(ibv_get_srq_num(loop.srq, &wr.qp_type.xrc.remote_srqn), ==, 0);
    EXPECT(fill(&loop), ==, PLACES);
    for (int i = 0; i < PLACES; i++) {
        EXPECT(ibv_post_send(sender, &wr, &bad), ==, 0);
        EXPECT(local_poll(loop.fixture.cq).wr_id, ==, 2);
    }
    EXPECT(fill(&loop), ==, 0);
    EXPECT(ibv_destroy_qp(receiver), ==, 0);
    expect_receives(&loop, 2, IBV_WC_SUCCESS);
    EXPECT(fill(&loop), ==, 2);
    EXPECT(ibv_destroy_srq(loop.srq), ==, 0);
    expect_receives(&loop, 2, IBV_WC_SUCCESS);
    fixture_close(&loop.fixture);
}

static void of_each(const char *name, void (*body)(const void *))
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        char full[128];
        snprintf(full, sizeof full, "%s: %s", kinds[i].name, name);
        harness_run(full, body, &kinds[i]);
    }
}
#define CASE_OF_EACH(body) of_each(#body, body)

static void all(void)
{
    CASE_OF_EACH(posting_until_ENOMEM_overruns_no_CQ);
    CASE(posting_in_ERR_ends);
    CASE_OF_EACH(what_is_withdrawn_has_no_place);
    CASE(queue_pairs_with_CQs_of_their_own_share_the_places);
    CASE(an_SRQ_does_not_shrink_below_what_was_not_polled);
    CASE(the_limit_is_reached_when_receives_are_taken);
    CASE_OF_EACH(an_entry_that_was_overwritten_has_no_place);
    CASE(a_lost_completion_takes_no_place_of_an_SRQ_along);
    CASE(receives_of_an_XRC_SRQ_have_places_until_they_are_polled);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
