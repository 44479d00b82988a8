/* Posts: what they say, and that their results are looked at. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "mistakes.h"

/* More than the 100 ms for which the checker waits. */
static void poll_in_vain(struct loopback *loopback)
{
    enum { LONG = 150 /* ms */ };
    struct timespec begun, now;
    struct ibv_wc wc;
    MUST(!clock_gettime(CLOCK_MONOTONIC, &begun));
    do {
        MUST(!ibv_poll_cq(loopback->cq, 1, &wc));
        sched_yield();
        MUST(!clock_gettime(CLOCK_MONOTONIC, &now));
    } while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < LONG);
}

/* Inline data that is too long; the twin posts it again without the flag. */
static void post_inline(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    int error = WRITE(&loopback, 0, 8192, IBV_SEND_SIGNALED | IBV_SEND_INLINE); /* post-refused faulty */
    MUST(error == EINVAL);
    if (variant == TWIN) {
        MUST(!WRITE(&loopback, 0, 8192, IBV_SEND_SIGNALED));
        loopback_poll(&loopback, 1);
    }
    poll_in_vain(&loopback);
    loopback_close(&loopback);
}

static void *write_late(void *argument)
{
    struct loopback *loopback = argument;
    wait_longer_than_the_checker();
    MUST(!WRITE(loopback, 0, 8, IBV_SEND_SIGNALED));
    return NULL;
}

/* A receive that is posted in RESET. Another thread ends the wait. */
static void post_receive_too_early(void)
{
    struct loopback loopback;
    struct loopback_options options = {.channel = true};
    pthread_t thread;
    struct ibv_cq *cq;
    void *unused;
    loopback_open(&loopback, &options);
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    struct ibv_qp *early = loopback_make_qp(&loopback, &options);
    MUST(ibv_post_recv(early, &receive, &bad) == EINVAL); /* post-refused neighbour */
    loopback_listen(&loopback, early, loopback.qp[0]->qp_num, &options);
    MUST(!ibv_req_notify_cq(loopback.cq, 0));
    MUST(!pthread_create(&thread, NULL, write_late, &loopback));
    MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
    ibv_ack_cq_events(cq, 1);
    MUST(!pthread_join(thread, NULL));
    loopback_poll(&loopback, 1);
    MUST(!ibv_destroy_qp(early));
    loopback_close(&loopback);
}

void ignore_refusal(enum loopback_variant variant)
{
    if (variant == NEIGHBOUR)
        post_receive_too_early();
    else
        post_inline(variant);
}

/* Two more than the queue takes; the twin stops at the first that is refused. */
void fill_and_ignore(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = piece.addr + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    for (; wr.wr_id < LOOPBACK_DEPTH + 2; wr.wr_id++)
        if (ibv_post_send(loopback.qp[0], &wr, &rest) && variant == TWIN)
            break;
    loopback_poll(&loopback, LOOPBACK_DEPTH);
    poll_in_vain(&loopback);
    loopback_close(&loopback);
}

/* 16 bytes by lists; by builders. The twin has a queue pair that asked for them. */
void post_inline_unasked(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.no_inline = variant != TWIN});
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback.qp[0]);
    if (variant != NEIGHBOUR) {
        MUST(!WRITE(&loopback, 0, 16, IBV_SEND_SIGNALED | IBV_SEND_INLINE)); /* inline-unasked faulty */
    } else {
        ibv_wr_start(qp);
        qp->wr_flags = IBV_SEND_SIGNALED;
        /* inline-unasked neighbour */
        ibv_wr_rdma_write(qp, loopback.mr->rkey, (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2);
        ibv_wr_set_inline_data(qp, loopback.memory, 16);
        MUST(!ibv_wr_complete(qp));
    }
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

static int add_by_builder(struct loopback *loopback, uint32_t rkey, uint64_t address)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    /* atomic-misaligned neighbour */
    /* atomic-key-zero neighbour */
    ibv_wr_atomic_fetch_add(qp, rkey, address, 1);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, 8);
    return ibv_wr_complete(qp);
}

/* 4 bytes beside it; 1 byte. */
void misalign_atomic(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = piece.addr + LOOPBACK_MEMORY / 2 + (variant == TWIN ? 8 : 4);
    wr.wr.atomic.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        MUST(!add_by_builder(&loopback, loopback.mr->rkey, piece.addr + LOOPBACK_MEMORY / 2 + 1));
    else
        MUST(!ibv_post_send(loopback.qp[0], &wr, &rest)); /* atomic-misaligned faulty */
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* The member of another operation; a builder with a key that was never set. */
void misplace_key(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic.remote_addr = piece.addr + LOOPBACK_MEMORY / 2;
    if (variant == TWIN)
        wr.wr.atomic.rkey = loopback.mr->rkey;
    else
        wr.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        MUST(!add_by_builder(&loopback, 0, piece.addr + LOOPBACK_MEMORY / 2));
    else
        MUST(!ibv_post_send(loopback.qp[0], &wr, &rest)); /* atomic-key-zero faulty */
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* A region that peers may only read; one that is closed to them. */
void read_into_closed_memory(enum loopback_variant variant)
{
    static const int access[] = {[FAULTY] = IBV_ACCESS_REMOTE_READ, [TWIN] = IBV_ACCESS_REMOTE_WRITE, [NEIGHBOUR] = 0};
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.plain = true, .no_inline = true});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, loopback.memory, 4096, IBV_ACCESS_LOCAL_WRITE | access[variant]);
    MUST(mr);
    struct ibv_sge piece = {(uintptr_t)loopback.memory, variant == NEIGHBOUR ? 4096 : 64, mr->lkey};
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = piece.addr + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_send(loopback.qp[0], &wr, &rest)); /* read-sink-access neighbour */
    else
        MUST(!ibv_post_send(loopback.qp[0], &wr, &rest)); /* read-sink-access faulty */
    loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* An operation that was not asked for; data that is set twice. The twin gives a batch up, and asks for what it does. */
void build_out_of_turn(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback.qp[0]);
    uint64_t target = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    if (variant == TWIN) {
        ibv_wr_start(qp);
        ibv_wr_rdma_write(qp, loopback.mr->rkey, target);
        ibv_wr_abort(qp);
    }
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    if (variant == FAULTY)
        ibv_wr_rdma_write_imm(qp, loopback.mr->rkey, target, 7); /* builder-order faulty */
    else
        ibv_wr_rdma_write(qp, loopback.mr->rkey, target);
    if (variant != FAULTY)
        ibv_wr_set_sge(qp, loopback.mr->lkey, (uintptr_t)loopback.memory, 8);
    if (variant == NEIGHBOUR)
        ibv_wr_set_sge(qp, loopback.mr->lkey, (uintptr_t)loopback.memory + 64, 8); /* builder-order neighbour */
    if (variant == FAULTY)
        ibv_wr_abort(qp);
    else
        MUST(!ibv_wr_complete(qp));
    if (variant != FAULTY)
        loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* Each of the other mistakes; the twin has several operations in a batch, one without data, and two batches. */
void build_wrongly(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback.qp[0]);
    uint64_t target = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    qp->wr_flags = IBV_SEND_SIGNALED;
    for (int batches = 0; variant == TWIN && batches < 2; batches++) {
        ibv_wr_start(qp);
        ibv_wr_rdma_write(qp, loopback.mr->rkey, target);
        ibv_wr_set_sge(qp, loopback.mr->lkey, (uintptr_t)loopback.memory, 8);
        ibv_wr_rdma_write(qp, loopback.mr->rkey, target + 8);
        ibv_wr_set_inline_data(qp, loopback.memory, 8);
        ibv_wr_rdma_write(qp, loopback.mr->rkey, target + 16);
        MUST(!ibv_wr_complete(qp));
        loopback_poll(&loopback, 3);
    }
    if (variant != TWIN) {
        ibv_wr_start(qp);
        ibv_wr_start(qp);
        ibv_wr_set_sge(qp, loopback.mr->lkey, (uintptr_t)loopback.memory, 8);
        (void)ibv_wr_complete(qp);
        ibv_wr_complete(qp);
    }
    loopback_close(&loopback);
}

/* The address of an element is cut to 32 bits; its bytes are in the other order. */
void spoil_address(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_send_wr *rest, wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = piece.addr + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    piece.addr = variant == FAULTY ? (uint32_t)piece.addr : __builtin_bswap64(piece.addr);
    MUST(!ibv_post_send(loopback.qp[0], &wr, &rest));
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}
