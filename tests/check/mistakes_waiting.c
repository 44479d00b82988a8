/* Waiting: for events that do not come, and for their acknowledgement. */
#include <fcntl.h>
#include <pthread.h>

#include "mistakes.h"

/* Waits for an event, which is returned with its acknowledgement missing. */
static struct ibv_cq *fetch(const struct loopback *loopback)
{
    struct ibv_cq *cq;
    void *unused;
    MUST(!ibv_get_cq_event(loopback->channel, &cq, &unused));
    return cq;
}

static void destroy_qps(struct loopback *loopback)
{
    for (int end = 0; end < LOOPBACK_ENDS; end++) {
        MUST(!ibv_destroy_qp(loopback->qp[end]));
        loopback->qp[end] = NULL;
    }
}

static void acknowledge_completions(enum loopback_variant variant)
{
    struct loopback loopback;
    pthread_t thread;
    struct acknowledgement back = {.number = -1u}; /* so that the thread that destroys the queue goes on */
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    back.cq = loopback.cq;
    for (int event = 0; event < 2; event++) {
        MUST(!ibv_req_notify_cq(loopback.cq, 0));
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
        fetch(&loopback);
        loopback_poll(&loopback, 1);
    }
    ibv_ack_cq_events(loopback.cq, 2);
    if (variant == FAULTY) {
        ibv_ack_cq_events(loopback.cq, 1); /* event-overacknowledged faulty */
        MUST(!pthread_create(&thread, NULL, acknowledge_late, &back));
    }
    destroy_qps(&loopback);
    MUST(!ibv_destroy_cq(loopback.cq));
    loopback.cq = NULL;
    if (variant == FAULTY)
        MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

/* The process ends with the queue, as the call that destroys it would wait. */
static void acknowledge_limit(void)
{
    struct loopback loopback;
    struct ibv_async_event event;
    loopback_open(&loopback, &(struct loopback_options){.srq = true});
    MUST(!ibv_modify_srq(loopback.srq, &(struct ibv_srq_attr){.srq_limit = 1}, IBV_SRQ_LIMIT));
    MUST(!ibv_get_async_event(loopback.context, &event) && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&event);
    ibv_ack_async_event(&event); /* event-overacknowledged neighbour */
}

/* Three completion events for two; two asynchronous ones for one. The twin acknowledges two at once. */
void acknowledge_twice(enum loopback_variant variant)
{
    if (variant == NEIGHBOUR)
        acknowledge_limit();
    else
        acknowledge_completions(variant);
}

enum { ENTRIES = 16, MOST = 2 };

static void write_all(struct loopback *loopback)
{
    for (int entry = 0; entry < ENTRIES; entry++)
        MUST(!WRITE(loopback, 0, 8, IBV_SEND_SIGNALED));
}

static int poll_some(const struct loopback *loopback)
{
    struct ibv_wc list[MOST];
    int found = ibv_poll_cq(loopback->cq, MOST, list);
    MUST(found >= 0);
    return found;
}

static int poll_all(const struct loopback *loopback)
{
    int sum = 0, found;
    do
        sum += found = poll_some(loopback);
    while (found == MOST);
    return sum;
}

static int iterate_once(struct loopback *loopback)
{
    if (ibv_start_poll(loopback->cq_ex, &(struct ibv_poll_cq_attr){0}))
        return 0;
    ibv_end_poll(loopback->cq_ex);
    return 1;
}

static int iterate_all(struct loopback *loopback)
{
    int sum = 0;
    if (ibv_start_poll(loopback->cq_ex, &(struct ibv_poll_cq_attr){0}))
        return 0;
    do
        sum++;
    while (!ibv_next_poll(loopback->cq_ex));
    ibv_end_poll(loopback->cq_ex);
    return sum;
}

static int poll_in_part(struct loopback *loopback, enum loopback_variant variant)
{
    return variant == TWIN ? poll_all(loopback) : poll_some(loopback);
}

/* A poll of at most two entries in each round; an iterator that takes one. The last rounds find all entries there. */
void leave_entries(enum loopback_variant variant)
{
    struct loopback loopback;
    uint64_t flags = variant == NEIGHBOUR ? IBV_WC_EX_WITH_QP_NUM : 0;
    loopback_open(&loopback, &(struct loopback_options){.channel = true, .wc_flags = flags});
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    write_all(&loopback);
    for (int left = ENTRIES; left > 0;) {
        if (variant == NEIGHBOUR)
            ibv_ack_cq_events(fetch(&loopback), 1); /* not-drained neighbour */
        else
            ibv_ack_cq_events(fetch(&loopback), 1); /* not-drained faulty */
        MUST(!ibv_req_notify_cq(loopback.cq, 0));
        left -= variant == NEIGHBOUR ? iterate_once(&loopback) : poll_in_part(&loopback, variant);
    }
    loopback_close(&loopback);
}

/* -- messages and completions that do not come */

static void wait_for_one(struct loopback *loopback, bool by_event)
{
    if (by_event)
        ibv_ack_cq_events(fetch(loopback), 1);
    loopback_poll(loopback, 1);
}

static void post_receive(struct loopback *loopback)
{
    struct ibv_sge room = loopback_piece(loopback, 4096, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &room, .num_sge = 1};
    MUST(!(loopback->srq ? ibv_post_srq_recv(loopback->srq, &receive, &bad)
                         : ibv_post_recv(loopback->qp[1], &receive, &bad)));
}

/* Another thread posts the receive, and so ends the wait. */
static void *post_receive_late(void *loopback)
{
    wait_longer_than_the_checker();
    wait_longer_than_the_checker();
    post_receive(loopback);
    return NULL;
}

/* The thread waits for an event; it polls, and the receive is missing in a shared receive queue. */
void forget_receive(enum loopback_variant variant)
{
    struct loopback loopback;
    pthread_t thread;
    /* receive-missing faulty */
    /* receive-missing neighbour */
    loopback_open(&loopback,
                  &(struct loopback_options){.channel = true, .rnr_endless = true, .srq = variant == NEIGHBOUR});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    if (variant == TWIN)
        post_receive(&loopback);
    else
        MUST(!pthread_create(&thread, NULL, post_receive_late, &loopback));
    MUST(!ibv_post_send(loopback.qp[0], &send, &rest));
    wait_for_one(&loopback, variant != NEIGHBOUR);
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

static void make_qps(struct loopback *loopback, const struct loopback_options *options)
{
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        loopback->qp[end] = loopback_make_qp(loopback, options);
    for (int end = 0; end < LOOPBACK_ENDS; end++)
        loopback_connect(loopback, loopback->qp[end], loopback->qp[!end]->qp_num, options);
}

/* The next client. */
static void *connect_late(void *argument)
{
    struct loopback *loopback = argument;
    wait_longer_than_the_checker();
    wait_longer_than_the_checker();
    make_qps(loopback, &(struct loopback_options){0});
    MUST(!WRITE(loopback, 0, 8, IBV_SEND_SIGNALED));
    return NULL;
}

/* Of a SEND that has no receive, by an event; by polls. The twin waits for the next client only. */
void await_gone(enum loopback_variant variant)
{
    struct loopback loopback;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.channel = true, .rnr_endless = true});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    send.send_flags = IBV_SEND_SIGNALED;
    if (variant == FAULTY)
        MUST(!ibv_post_send(loopback.qp[0], &send, &rest)); /* awaits-gone faulty */
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_send(loopback.qp[0], &send, &rest)); /* awaits-gone neighbour */
    destroy_qps(&loopback);
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    MUST(!pthread_create(&thread, NULL, connect_late, &loopback));
    wait_for_one(&loopback, variant != NEIGHBOUR);
    MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

/* -- of no rule by itself: rules_test.py */

static int take_event(const struct loopback *loopback)
{
    struct ibv_cq *cq;
    void *unused;
    if (ibv_get_cq_event(loopback->channel, &cq, &unused))
        return 0;
    ibv_ack_cq_events(cq, 1);
    return 1;
}

/* Comes back to what a poll has left, as it waits nowhere. */
static void come_back(struct loopback *loopback)
{
    int flags = fcntl(loopback->channel->fd, F_GETFL);
    MUST(!fcntl(loopback->channel->fd, F_SETFL, flags | O_NONBLOCK));
    MUST(!ibv_req_notify_cq(loopback->cq, 0));
    write_all(loopback);
    for (int left = ENTRIES; left > 0; left -= poll_some(loopback)) {
        take_event(loopback);
        MUST(!ibv_req_notify_cq(loopback->cq, 0));
    }
    take_event(loopback);
    MUST(!fcntl(loopback->channel->fd, F_SETFL, flags));
}

/* Empties the queue before it waits for the next entries, by an iterator, too. */
static void empty_twice(struct loopback *loopback)
{
    for (int round = 0; round < 2; round++) {
        MUST(!ibv_req_notify_cq(loopback->cq, 0));
        write_all(loopback);
        for (int left = ENTRIES; left > 0;) {
            MUST(take_event(loopback));
            MUST(!ibv_req_notify_cq(loopback->cq, 0));
            left -= loopback->cq_ex ? iterate_all(loopback) : poll_all(loopback);
        }
    }
}

static void *write_late(void *loopback)
{
    wait_longer_than_the_checker();
    MUST(!WRITE((struct loopback *)loopback, 0, 8, IBV_SEND_SIGNALED));
    return NULL;
}

/* Queue pairs without receives, to which no peer sends. */
static void wait_without_receives(struct loopback *loopback)
{
    pthread_t thread;
    MUST(!ibv_req_notify_cq(loopback->cq, 0));
    MUST(!pthread_create(&thread, NULL, write_late, loopback));
    wait_for_one(loopback, true);
    MUST(!pthread_join(thread, NULL));
}

void wait_rightly(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    wait_without_receives(&loopback);
    come_back(&loopback);
    loopback_close(&loopback);
    for (int extended = 0; extended < 2; extended++) {
        uint64_t flags = extended ? IBV_WC_EX_WITH_QP_NUM : 0;
        loopback_open(&loopback, &(struct loopback_options){.channel = true, .wc_flags = flags});
        empty_twice(&loopback);
        loopback_close(&loopback);
    }
}
