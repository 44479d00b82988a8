/* Reports rounds of polls and posts to a simulated run (softverbs sim), whose library has the function; without it
 * there is no layer. */
#include <infiniband/verbs.h>

#include "abi/bottom.h"

/* Whether the call found or did something. It may give the processor to another thread of the run. */
__attribute__((weak)) void softverbs_sim_round(unsigned found);

static struct calls_layer layer;

static int poll_in_turn(struct ibv_cq *cq, int count, struct ibv_wc *list)
{
    int found = calls_get(&layer.below, ibv_poll_cq)(cq, count, list);
    softverbs_sim_round(found != 0);
    return found;
}

/* A poll that has begun holds the queue until its end, so only one that finds nothing goes on there. */
static int begin_poll_in_turn(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    int error = calls_get(&layer.below, ibv_start_poll)(cq, attr);
    if (error)
        softverbs_sim_round(0);
    return error;
}

static void end_poll_in_turn(struct ibv_cq_ex *cq)
{
    calls_get(&layer.below, ibv_end_poll)(cq);
    softverbs_sim_round(1);
}

#define POST(name, object, work)                                                                                       \
    static int name##_in_turn(struct object *to, struct work *first, struct work **bad)                                \
    {                                                                                                                  \
        int error = calls_get(&layer.below, ibv_##name)(to, first, bad);                                               \
        softverbs_sim_round(1);                                                                                        \
        return error;                                                                                                  \
    }
POST(post_send, ibv_qp, ibv_send_wr)
POST(post_recv, ibv_qp, ibv_recv_wr)
POST(post_srq_recv, ibv_srq, ibv_recv_wr)
POST(post_srq_ops, ibv_srq, ibv_ops_wr)

static int complete_in_turn(struct ibv_qp_ex *qp)
{
    int error = calls_get(&layer.below, ibv_wr_complete)(qp);
    softverbs_sim_round(1);
    return error;
}

static struct calls_layer layer = {.name = "simulated",
                                   .place = CALLS_PLACE_SIMULATED,
                                   .calls = {.ibv_poll_cq = poll_in_turn,
                                             .ibv_start_poll = begin_poll_in_turn,
                                             .ibv_end_poll = end_poll_in_turn,
                                             .ibv_post_send = post_send_in_turn,
                                             .ibv_post_recv = post_recv_in_turn,
                                             .ibv_post_srq_recv = post_srq_recv_in_turn,
                                             .ibv_post_srq_ops = post_srq_ops_in_turn,
                                             .ibv_wr_complete = complete_in_turn}};

/* Runs after abi/bottom.c has set the bottom of calls. */
__attribute__((constructor(102))) static void begin_simulated(void)
{
    if (softverbs_sim_round)
        calls_put_around(&layer);
}
