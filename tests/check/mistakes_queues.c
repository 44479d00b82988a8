/* Queues: that they have room, and that events come of them. */
#include <pthread.h>
#include <unistd.h>

#include "mistakes.h"

/* Sends; receives. */
void overrun_cq(enum loopback_variant variant)
{
    enum { ENTRIES = 4 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.entries = ENTRIES});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    for (int entry = 0; entry < loopback.cq->cqe; entry++)
        if (variant == NEIGHBOUR)
            MUST(!ibv_post_recv(loopback.qp[entry % 2], &receive, &bad));
        else
            MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* cq-overrun neighbour */
    else
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED)); /* cq-overrun faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, (unsigned)loopback.cq->cqe);
    loopback_close(&loopback);
}

static int write_by_builder(struct loopback *loopback, unsigned flags)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_flags = flags;
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, 8);
    return ibv_wr_complete(qp); /* send-queue-stuck neighbour */
}

/* Work requests by lists; by builders. The twin's last but one is signalled. */
void fill_send_queue(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    for (int posted = 0; posted < LOOPBACK_DEPTH; posted++) {
        unsigned flags = variant == TWIN && posted == LOOPBACK_DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
        MUST(!(variant == NEIGHBOUR ? write_by_builder(&loopback, flags) : WRITE(&loopback, 0, 8, flags)));
    }
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    int error =
        variant == NEIGHBOUR ? write_by_builder(&loopback, 0) : WRITE(&loopback, 0, 8, 0); /* send-queue-stuck faulty */
    MUST(variant == TWIN ? !error : error == ENOMEM);
    loopback_close(&loopback);
}

/* One message; two, to a queue pair that had a receive once. The twin posts first. */
void run_out_of_receives(enum loopback_variant variant)
{
    enum { MEANWHILE = 50000 /* us */ };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.patient = true});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8), room = loopback_piece(&loopback, 4096, 64);
    struct ibv_send_wr *rest, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_recv_wr *bad, receive = {.sg_list = &room, .num_sge = 1};
    send.send_flags = IBV_SEND_SIGNALED;
    int messages = variant == NEIGHBOUR ? 2 : 1;
    if (variant != FAULTY)
        MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad));
    for (int message = 0; message < messages; message++)
        MUST(!ibv_post_send(loopback.qp[0], &send, &rest));
    usleep(MEANWHILE); /* the message finds no receive */
    room.addr += room.length;
    if (variant == FAULTY)
        MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad)); /* receives-ran-out faulty */
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad)); /* receives-ran-out neighbour */
    loopback_poll(&loopback, 2 * (unsigned)messages);
    loopback_close(&loopback);
}

static void post_to_srq(struct loopback *loopback, int count)
{
    static unsigned places;
    while (count--) {
        struct ibv_sge room = loopback_piece(loopback, 4096 + 64 * places++, 64);
        struct ibv_recv_wr *bad, receive = {.sg_list = &room, .num_sge = 1};
        MUST(!ibv_post_srq_recv(loopback->srq, &receive, &bad));
    }
}

static void send_and_poll(struct loopback *loopback, int count)
{
    struct ibv_sge piece = loopback_piece(loopback, 0, 8);
    struct ibv_send_wr *rest, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    send.send_flags = IBV_SEND_SIGNALED;
    for (; count--; loopback_poll(loopback, 2))
        MUST(!ibv_post_send(loopback->qp[0], &send, &rest));
}

/* Below 1; below 3. */
void pass_limit(enum loopback_variant variant)
{
    int limit = variant == NEIGHBOUR ? 3 : 1;
    struct loopback loopback;
    struct ibv_srq_attr attr = {.srq_limit = (uint32_t)limit};
    struct ibv_async_event event;
    /* srq-limit-passed faulty */
    /* srq-limit-passed neighbour */
    loopback_open(&loopback, &(struct loopback_options){.srq = true});
    post_to_srq(&loopback, limit);
    MUST(!ibv_modify_srq(loopback.srq, &attr, IBV_SRQ_LIMIT));
    send_and_poll(&loopback, 1);
    MUST(!ibv_get_async_event(loopback.context, &event) && event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&event);
    post_to_srq(&loopback, 1);
    if (variant == TWIN)
        MUST(!ibv_modify_srq(loopback.srq, &attr, IBV_SRQ_LIMIT));
    send_and_poll(&loopback, 1);
    loopback_close(&loopback);
}

static void *arm_late(void *argument)
{
    struct ibv_cq *cq = argument;
    wait_longer_than_the_checker();
    ibv_req_notify_cq(cq, 0);
    return NULL;
}

static void wait_for_event(struct loopback *loopback, enum loopback_variant variant)
{
    struct ibv_cq *cq;
    void *unused;
    if (variant == NEIGHBOUR)
        MUST(!ibv_get_cq_event(loopback->channel, &cq, &unused)); /* never-armed neighbour */
    else
        MUST(!ibv_get_cq_event(loopback->channel, &cq, &unused)); /* never-armed faulty */
    ibv_ack_cq_events(cq, 1);
}

/* The wait is for a WRITE; for the completion of a receive. Another thread ends the wait. */
void wait_unarmed(enum loopback_variant variant)
{
    struct loopback loopback;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8), room = loopback_piece(&loopback, 4096, 64);
    struct ibv_send_wr *unsent, send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_recv_wr *bad, receive = {.sg_list = &room, .num_sge = 1};
    if (variant == TWIN)
        MUST(!ibv_req_notify_cq(loopback.cq, 0));
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad) && !ibv_post_send(loopback.qp[0], &send, &unsent));
    else
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    if (variant != TWIN)
        MUST(!pthread_create(&thread, NULL, arm_late, loopback.cq));
    wait_for_event(&loopback, variant);
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* Armed after the post, and not polled; in a round, polled before it is armed. */
void miss_event(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *unused;
    int polled = 0;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    if (variant == NEIGHBOUR) {
        MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
        ibv_ack_cq_events(cq, 1);
        loopback_poll(&loopback, 1);
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    }
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    if (variant == TWIN)
        MUST((polled = ibv_poll_cq(loopback.cq, 1, &wc)) >= 0);
    if (variant == NEIGHBOUR)
        MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused)); /* event-missed neighbour */
    else
        MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused)); /* event-missed faulty */
    ibv_ack_cq_events(cq, 1);
    loopback_poll(&loopback, 1 - (unsigned)polled);
    loopback_close(&loopback);
}
