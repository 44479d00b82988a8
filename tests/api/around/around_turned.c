/* Work whose end a rule decides, in front of the library: around_turned PRELOADED. Prints TAP. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <time.h>

#include "loop.h"

enum { DEPTH = 16, FIRST = 100, RECEIVES = 200, TURNED = RECEIVES + DEPTH - 1 };

static const char rules[] = "when work: complete RETRY_EXC_ERR; when receive, wr_id 215: complete LOC_PROT_ERR";

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static unsigned count;

static void done(const char *what)
{
    printf("ok %u - %s\n", ++count, what);
    fflush(stdout);
}

static void send_some(struct ibv_qp *qp, unsigned many)
{
    for (unsigned i = 0; i < many; i++) {
        struct ibv_send_wr *bad, wr = {.wr_id = FIRST + i, .opcode = IBV_WR_SEND};
        need(!ibv_post_send(qp, &wr, &bad), "a send was refused");
    }
}

static void receive_some(struct ibv_qp *qp, struct ibv_srq *srq, unsigned many)
{
    for (unsigned i = 0; i < many; i++) {
        struct ibv_recv_wr *bad, wr = {.wr_id = srq ? TURNED - i : RECEIVES + i};
        need(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)), "a receive was refused");
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The next completion; each wr_id is one of the program's. False: none within the time. */
static bool poll_one(struct ibv_wc *wc, double most)
{
    double end = seconds() + most;
    while (seconds() < end) {
        if (ibv_poll_cq(cq, 1, wc) <= 0)
            continue;
        need(wc->wr_id >= FIRST && wc->wr_id < RECEIVES + DEPTH, "a wr_id is not the program's");
        return true;
    }
    return false;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "no state");
    return attr.qp_state;
}

static struct ibv_qp *make_loop(struct ibv_srq *srq)
{
    struct ibv_qp *qp = make_qp(pd, cq, srq, DEPTH);
    connect_with_itself(qp);
    return qp;
}

/* Polls the ends of sends until there are so many of them, and returns the first that is no success. */
static enum ibv_wc_status poll_sends(unsigned many, unsigned *failed, unsigned *flushed)
{
    enum ibv_wc_status first = IBV_WC_SUCCESS;
    struct ibv_wc wc;
    *failed = *flushed = 0;
    while (many) {
        need(poll_one(&wc, 60), "no completion");
        if (wc.wr_id >= RECEIVES)
            continue;
        many--;
        first = first ? first : wc.status;
        *flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
        *failed += wc.status && wc.status != IBV_WC_WR_FLUSH_ERR;
    }
    return first;
}

static void drain(void)
{
    struct ibv_wc wc;
    while (poll_one(&wc, 0.2)) {
    }
}

static void the_first_error_flushes_the_rest(struct ibv_qp *qp)
{
    unsigned failed, flushed;
    receive_some(qp, NULL, 8);
    send_some(qp, 8);
    need(poll_sends(8, &failed, &flushed) == IBV_WC_RETRY_EXC_ERR && failed == 1 && flushed == 7,
         "one error, and flushes");
    need(state_of(qp) == IBV_QPS_ERR, "the queue pair is in ERR");
    drain();
    done("the first error flushes the rest");
}

static void a_reset_queue_pair_begins_anew(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    unsigned failed, flushed;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RESET");
    connect_with_itself(qp);
    need(state_of(qp) == IBV_QPS_RTS, "the queue pair is in RTS");
    receive_some(qp, NULL, 1);
    send_some(qp, 1);
    need(poll_sends(1, &failed, &flushed) == IBV_WC_RETRY_EXC_ERR && failed == 1, "its first send fails");
    drain();
    done("a queue pair that was reset begins anew");
}

static void the_wr_ids_of_one_that_is_gone_are_the_programs(void)
{
    struct ibv_qp *qp = make_loop(NULL);
    receive_some(qp, NULL, 4);
    send_some(qp, 4);
    need(!ibv_destroy_qp(qp), "destroyed");
    drain();
    done("wr_ids of a queue pair that is gone are the program's");
}

static void a_batch_that_is_given_up_leaves_nothing(struct ibv_qp *qp)
{
    struct ibv_qp_ex *builder = ibv_qp_to_qp_ex(qp);
    unsigned failed, flushed;
    receive_some(qp, NULL, 2);
    ibv_wr_start(builder);
    builder->wr_id = FIRST;
    builder->wr_flags = 0;
    ibv_wr_send(builder);
    ibv_wr_abort(builder);
    need(builder->wr_id == FIRST && !builder->wr_flags, "wr_id and flags are the program's");
    ibv_wr_start(builder);
    ibv_wr_send(builder); /* with the same wr_id */
    ibv_wr_send(builder);
    need(!ibv_wr_complete(builder) && builder->wr_id == FIRST && !builder->wr_flags, "posted");
    need(poll_sends(2, &failed, &flushed) == IBV_WC_RETRY_EXC_ERR && failed == 1 && flushed == 1,
         "an error and a flush");
    drain();
    done("a batch that is given up leaves nothing");
}

static void receives_of_a_shared_queue_fail_their_queue_pair(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_qp *qp = srq ? make_loop(srq) : NULL;
    struct ibv_send_wr *bad, wr = {.wr_id = FIRST, .opcode = IBV_WR_SEND};
    struct ibv_wc wc;
    need(qp, "no shared receive queue");
    receive_some(NULL, srq, 2);
    need(!ibv_post_send(qp, &wr, &bad), "a send was refused");
    do
        need(poll_one(&wc, 60), "no completion");
    while (wc.wr_id < RECEIVES);
    need(wc.status == IBV_WC_LOC_PROT_ERR && state_of(qp) == IBV_QPS_ERR, "the receive fails its queue pair");
    need(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq), "destroyed");
    drain();
    done("receives of a shared queue fail their queue pair");
}

int main(int argc, char **argv)
{
    (void)argc;
    become_preloaded(argv,
                     (const char *const[]){"SOFTVERBS_AROUND_INJECT", rules, "SOFTVERBS_AROUND_LOG", "none", NULL});
    context = open_first();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0);
    need(pd && cq, "no queue");
    struct ibv_qp *qp = make_loop(NULL);
    the_first_error_flushes_the_rest(qp);
    a_reset_queue_pair_begins_anew(qp);
    need(!ibv_destroy_qp(qp) && (qp = make_loop(NULL)), "another");
    a_batch_that_is_given_up_leaves_nothing(qp);
    the_wr_ids_of_one_that_is_gone_are_the_programs();
    receives_of_a_shared_queue_fail_their_queue_pair();
    printf("1..%u\n", count);
    return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context);
}
