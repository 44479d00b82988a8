/* Programs that break one rule of the checker each: mistakes CASE VARIANT. A variant is `faulty`, its correct `twin`,
 * or a `neighbour`, which breaks the rule with another object, size or order. The line that a finding must name ends in
 * a comment with the case's name and variant. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mistakes.h"

static void write_by_builders(struct loopback *loopback, unsigned from, unsigned bytes)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_id = 8;
    qp->wr_flags = IBV_SEND_SIGNALED;
    /* send-buffer-changed neighbour */
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory + from, bytes);
    MUST(!ibv_wr_complete(qp));
}

static int write_unsignalled(struct loopback *loopback, unsigned bytes)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_flags = 0;
    /* inline-missing neighbour */
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, bytes);
    return ibv_wr_complete(qp);
}

/* The first of 64 bytes changes; the last of 20000. */
static void change_send_buffer(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    if (variant == NEIGHBOUR)
        write_by_builders(&loopback, 0, 20000);
    else
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED)); /* send-buffer-changed faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    loopback.memory[variant == NEIGHBOUR ? 19999 : 0]++;
    if (variant != TWIN)
        loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* A WRITE of 64 bytes by lists; by builders. The second post fills the buffer of the first anew. */
static void post_without_inline(enum loopback_variant variant)
{
    struct loopback loopback;
    unsigned flags = IBV_SEND_SIGNALED | (variant == TWIN ? IBV_SEND_INLINE : 0);
    loopback_open(&loopback, &(struct loopback_options){0});
    if (variant == NEIGHBOUR)
        MUST(!write_unsignalled(&loopback, 128));
    else
        MUST(!WRITE(&loopback, 0, 64, flags)); /* inline-missing faulty */
    loopback.memory[0]++;
    MUST(!WRITE(&loopback, 0, 64, flags));
    loopback_poll(&loopback, variant == NEIGHBOUR ? 1 : 2);
    loopback_close(&loopback);
}

/* A receive of `bytes` bytes of memory, and a SEND of 16 into it. */
static void receive_into(struct loopback *loopback, unsigned bytes, enum loopback_variant variant)
{
    struct ibv_sge target = loopback_piece(loopback, LOOPBACK_MEMORY / 2, bytes);
    struct ibv_sge source = loopback_piece(loopback, 0, 16);
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .sg_list = &target, .num_sge = 1};
    struct ibv_send_wr *rest, send = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};
    char *written = loopback->memory + LOOPBACK_MEMORY / 2 + bytes - 1;
    send.send_flags = IBV_SEND_SIGNALED;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback->qp[1], &receive, &bad)); /* receive-buffer-written neighbour */
    else
        MUST(!ibv_post_recv(loopback->qp[1], &receive, &bad)); /* receive-buffer-written faulty */
    if (variant != TWIN)
        ++*written;
    MUST(!ibv_post_send(loopback->qp[0], &send, &rest));
    loopback_poll(loopback, 2);
    ++*written;
}

/* A buffer of 256 bytes; of 20000. */
static void write_receive_buffer(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    receive_into(&loopback, variant == NEIGHBOUR ? 20000 : 256, variant);
    loopback_close(&loopback);
}

/* The first byte of two pages, which is read; the last of three, which is written, of a shared receive queue. */
static void touch_early(enum loopback_variant variant)
{
    enum { PAGE = 4096 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.srq = variant == NEIGHBOUR});
    struct ibv_sge target = loopback_piece(&loopback, LOOPBACK_MEMORY / 2, variant == NEIGHBOUR ? 3 * PAGE : 2 * PAGE);
    struct ibv_sge source = loopback_piece(&loopback, 0, 2 * PAGE);
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .sg_list = &target, .num_sge = 1};
    struct ibv_send_wr *rest, send = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND};
    volatile char *memory = loopback.memory + LOOPBACK_MEMORY / 2;
    send.send_flags = IBV_SEND_SIGNALED;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_srq_recv(loopback.srq, &receive, &bad));
    else
        MUST(!ibv_post_recv(loopback.qp[1], &receive, &bad));
    if (variant == FAULTY)
        MUST(*memory == 1); /* touched-early faulty */
    if (variant == NEIGHBOUR)
        memory[3 * PAGE - 1] = 1; /* touched-early neighbour */
    MUST(!ibv_post_send(loopback.qp[0], &send, &rest));
    loopback_poll(&loopback, 2);
    MUST(*memory == 1 && memory[2 * PAGE - 1] == 1);
    memory[2 * PAGE - 1] = 2;
    loopback_close(&loopback);
}

/* -- events and completions */

void *acknowledge_late(void *argument)
{
    enum { LATE = 300000 /* us */ };
    const struct acknowledgement *late = argument;
    usleep(LATE); /* what is tested */
    ibv_ack_cq_events(late->cq, late->number);
    return NULL;
}

/* A CQ of one channel; with two events, only one acknowledged. */
static void forget_acknowledgement(enum loopback_variant variant)
{
    struct loopback loopback;
    struct ibv_cq *cq;
    void *unused;
    pthread_t thread;
    struct acknowledgement late = {.number = 1};
    int events = variant == NEIGHBOUR ? 2 : 1;
    loopback_open(&loopback, &(struct loopback_options){.channel = true});
    for (int event = 0; event < events; event++) {
        MUST(!ibv_req_notify_cq(loopback.cq, 0));
        MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
        MUST(!ibv_get_cq_event(loopback.channel, &cq, &unused));
        loopback_poll(&loopback, 1);
    }
    late.cq = cq;
    if (events == 2 || variant == TWIN)
        ibv_ack_cq_events(cq, 1);
    if (variant != TWIN)
        MUST(!pthread_create(&thread, NULL, acknowledge_late, &late));
    for (int end = 0; end < LOOPBACK_ENDS; end++) {
        MUST(!ibv_destroy_qp(loopback.qp[end]));
        loopback.qp[end] = NULL;
    }
    if (variant == NEIGHBOUR)
        MUST(!ibv_destroy_cq(loopback.cq)); /* event-unacknowledged neighbour */
    else
        MUST(!ibv_destroy_cq(loopback.cq)); /* event-unacknowledged faulty */
    loopback.cq = NULL;
    if (variant != TWIN)
        MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
}

/* byte_len; the immediate. */
static void read_other_field(enum loopback_variant variant)
{
    struct loopback loopback;
    uint64_t asked = IBV_WC_EX_WITH_QP_NUM | (variant == TWIN ? IBV_WC_EX_WITH_BYTE_LEN : 0);
    loopback_open(&loopback, &(struct loopback_options){.wc_flags = asked});
    MUST(!WRITE(&loopback, 0, 8, IBV_SEND_SIGNALED));
    begin_poll(&loopback);
    MUST(ibv_wc_read_qp_num(loopback.cq_ex) == loopback.qp[0]->qp_num);
    if (variant == NEIGHBOUR)
        ibv_wc_read_imm_data(loopback.cq_ex); /* field-not-asked neighbour */
    else
        ibv_wc_read_byte_len(loopback.cq_ex); /* field-not-asked faulty */
    ibv_end_poll(loopback.cq_ex);
    loopback_close(&loopback);
}

/* The opcode; byte_len, of the receive that is flushed. */
static void read_failed_field(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.wc_flags = IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_BYTE_LEN});
    struct ibv_sge piece = loopback_piece(&loopback, 0, 8);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad));
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
    begin_poll(&loopback);
    MUST(loopback.cq_ex->status == IBV_WC_WR_FLUSH_ERR);
    if (variant == FAULTY)
        ibv_wc_read_opcode(loopback.cq_ex); /* failed-field faulty */
    if (variant == NEIGHBOUR)
        ibv_wc_read_byte_len(loopback.cq_ex); /* failed-field neighbour */
    ibv_wc_read_vendor_err(loopback.cq_ex);
    ibv_wc_read_qp_num(loopback.cq_ex);
    ibv_end_poll(loopback.cq_ex);
    loopback_close(&loopback);
}

/* -- memory regions */

static struct ibv_mr *register_half(struct loopback *loopback)
{
    struct ibv_mr *mr = ibv_reg_mr(loopback->pd, loopback->memory, LOOPBACK_MEMORY / 2, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    return mr;
}

/* The buffer of a receive; of a READ. */
static void write_read_only(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, loopback.memory, 64, variant == TWIN ? IBV_ACCESS_LOCAL_WRITE : 0);
    MUST(mr);
    struct ibv_sge piece = {(uintptr_t)loopback.memory, 64, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    struct ibv_send_wr *unsent, read = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    read.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    read.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        ibv_post_send(loopback.qp[0], &read, &unsent); /* local-write-missing neighbour */
    else
        ibv_post_recv(loopback.qp[0], &receive, &bad); /* local-write-missing faulty */
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* A region with a WRITE that was not polled; with a receive that waits. */
static void deregister_in_use(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_mr *whole = loopback.mr, *half = register_half(&loopback);
    struct ibv_sge piece = {(uintptr_t)loopback.memory, 64, half->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    loopback.mr->lkey = half->lkey;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* region-in-use neighbour */
    else
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED)); /* region-in-use faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(half));
    if (variant == FAULTY)
        loopback_poll(&loopback, 1);
    loopback.mr = whole;
    loopback_close(&loopback);
}

/* The buffer of a receive, from its start; of a SEND that has no receive yet, from before it. */
static void free_in_flight(enum loopback_variant variant)
{
    enum { SIZE = 256, OFFSET = 64 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){.patient = true});
    char *memory = calloc(1, SIZE);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
    MUST(memory && mr);
    struct ibv_sge whole = {(uintptr_t)memory, SIZE, mr->lkey}, part = {(uintptr_t)memory + OFFSET, 64, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &whole, .num_sge = 1};
    struct ibv_send_wr *rest, send = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND};
    send.send_flags = IBV_SEND_SIGNALED;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_send(loopback.qp[0], &send, &rest)); /* buffer-freed neighbour */
    else
        MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad)); /* buffer-freed faulty */
    if (variant == TWIN)
        MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    free(memory);
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* All of it; the second page of two. */
static void unmap_in_flight(enum loopback_variant variant)
{
    enum { PAGE = 4096, PAGES = 2 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, pages, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
    MUST(mr);
    struct ibv_sge piece = {(uintptr_t)pages, PAGES * PAGE, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 9, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    wr.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR)
        MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* buffer-unmapped neighbour */
    else
        MUST(!ibv_post_send(loopback.qp[0], &wr, &bad)); /* buffer-unmapped faulty */
    if (variant == TWIN)
        loopback_poll(&loopback, 1);
    MUST(!munmap(variant == NEIGHBOUR ? pages + PAGE : pages, variant == NEIGHBOUR ? PAGE : PAGES * PAGE));
    if (variant != TWIN)
        loopback_poll(&loopback, 1);
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* Memory of a receive that realloc moves, or that munmap takes away. */
static void move_memory(enum loopback_variant variant)
{
    enum { SIZE = 300, MUCH = 100000, PAGE = 4096, PAGES = 3 };
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    bool mapped = variant == NEIGHBOUR;
    char *memory =
        mapped ? mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : calloc(1, SIZE);
    char *behind = malloc(SIZE);
    struct ibv_mr *mr = ibv_reg_mr(loopback.pd, memory, mapped ? PAGES * PAGE : SIZE, IBV_ACCESS_LOCAL_WRITE);
    MUST(memory && behind && mr);
    struct ibv_sge piece = {(uintptr_t)memory + (mapped ? PAGE : 0), SIZE, mr->lkey};
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad));
    if (variant == TWIN)
        MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    if (mapped)
        MUST(!munmap(memory + PAGE, PAGE));
    else
        MUST(memory = realloc(memory, MUCH));
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    MUST(!ibv_dereg_mr(mr));
    loopback_close(&loopback);
}

/* Two receives; a SEND from where a READ writes. */
static void overlap_buffers(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    unsigned second = variant == TWIN ? 64 : 63;
    struct ibv_sge one = loopback_piece(&loopback, 0, 64), other = loopback_piece(&loopback, second, 64);
    struct ibv_recv_wr *bad, receives[2] = {{.sg_list = &one, .num_sge = 1}, {.sg_list = &other, .num_sge = 1}};
    struct ibv_send_wr *unsent, read = {.sg_list = &one, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
    read.wr.rdma.remote_addr = (uintptr_t)loopback.memory + LOOPBACK_MEMORY / 2;
    read.wr.rdma.rkey = loopback.mr->rkey;
    if (variant == NEIGHBOUR) {
        MUST(!ibv_post_send(loopback.qp[0], &read, &unsent));
        MUST(!WRITE(&loopback, second, 64, IBV_SEND_SIGNALED)); /* buffers-overlap neighbour */
        loopback_poll(&loopback, 1);
    } else {
        MUST(!ibv_post_recv(loopback.qp[0], &receives[0], &bad));
        MUST(!ibv_post_recv(loopback.qp[0], &receives[1], &bad)); /* buffers-overlap faulty */
    }
    loopback_close(&loopback);
}

/* A queue pair; a region. */
static void be_refused(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_qp_init_attr attr = {.send_cq = loopback.cq, .recv_cq = loopback.cq, .qp_type = IBV_QPT_RC};
    attr.cap.max_send_sge = 1 << 20;
    if (variant == FAULTY)
        MUST(!ibv_create_qp(loopback.pd, &attr)); /* refused-call faulty */
    if (variant == NEIGHBOUR)
        MUST(ibv_destroy_cq(loopback.cq) == EBUSY); /* refused-call neighbour */
    loopback_close(&loopback);
}

/* A CQ when its context is closed; a PD of a context that stays open. */
static void leave_behind(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_cq *cq = NULL;
    if (variant == FAULTY)
        cq = ibv_create_cq(loopback.context, 1, NULL, NULL, 0); /* never-destroyed faulty */
    struct ibv_pd *pd = NULL;
    if (variant != FAULTY)
        pd = ibv_alloc_pd(loopback.context); /* never-destroyed neighbour */
    MUST(cq || pd);
    if (variant == TWIN)
        MUST(!ibv_dealloc_pd(pd));
    loopback_close(&loopback);
}

/* -- of no rule by itself: options_test.py */

/* Prints what a program finds that reads before the completion: in the buffer of a receive, and before it. */
static void read_early(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_sge piece = loopback_piece(&loopback, 128, 64);
    struct ibv_recv_wr *bad, receive = {.sg_list = &piece, .num_sge = 1};
    MUST(!ibv_post_recv(loopback.qp[0], &receive, &bad));
    printf("%02x %02x %02x\n", loopback.memory[127] & 0xff, loopback.memory[128] & 0xff, loopback.memory[191] & 0xff);
    MUST(!ibv_modify_qp(loopback.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
    loopback_poll(&loopback, 1);
    loopback_close(&loopback);
}

/* The same mistake at the same place, five times. */
static void repeat_mistake(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    for (int times = 0; times < 5; times++) {
        MUST(!WRITE(&loopback, 0, 64, IBV_SEND_SIGNALED));
        loopback.memory[0]++;
        loopback_poll(&loopback, 1);
    }
    loopback_close(&loopback);
}

static const struct {
    const char *name;
    void (*run)(enum loopback_variant);
} cases[] = {
    {"send-buffer-changed", change_send_buffer},
    {"receive-buffer-written", write_receive_buffer},
    {"inline-missing", post_without_inline},
    {"touched-early", touch_early},
    {"event-unacknowledged", forget_acknowledgement},
    {"event-overacknowledged", acknowledge_twice},
    {"never-armed", wait_unarmed},
    {"event-missed", miss_event},
    {"not-drained", leave_entries},
    {"receive-missing", forget_receive},
    {"awaits-gone", await_gone},
    {"field-not-asked", read_other_field},
    {"failed-field", read_failed_field},
    {"use-after-destroy", use_destroyed},
    {"destroyed-inside", destroy_inside},
    {"single-threaded", poll_in_two_threads},
    {"thread-domain", share_domain},
    {"used-in-child", use_in_child},
    {"signal-handler", call_in_handler},
    {"memlock-exceeded", lock_too_much},
    {"region-in-use", deregister_in_use},
    {"local-write-missing", write_read_only},
    {"file-not-pinned", register_file},
    {"region-given-up", give_up_region},
    {"given-up", give_up_in_each_way},
    {"given-up-rightly", give_up_rightly},
    {"buffer-unmapped", unmap_in_flight},
    {"buffer-freed", free_in_flight},
    {"cq-overrun", overrun_cq},
    {"send-queue-stuck", fill_send_queue},
    {"failed-work", fail_work},
    {"peers-disagree", disagree},
    {"access-differs", allow_less},
    {"hop-limit-zero", address_without_hops},
    {"gid-families", mix_families},
    {"buffers-overlap", overlap_buffers},
    {"receives-ran-out", run_out_of_receives},
    {"srq-limit-passed", pass_limit},
    {"refused-call", be_refused},
    {"rd-atomic-high", connect_deeply},
    {"timeout-zero", connect_without_timeout},
    {"retry-zero", connect_without_retries},
    {"rnr-retry-endless", connect_for_ever},
    {"never-destroyed", leave_behind},
    {"allowed", do_what_is_allowed},
    {"busy", be_too_busy},
    {"peers-write", let_peers_write},
    {"refused", be_refused_often},
    {"behind-arming", post_behind_arming},
    {"xrc", connect_xrc},
    {"fenced", post_fenced},
    {"empty-element", post_empty_element},
    {"handler", handle_faults},
    {"registered-again", register_again},
    {"mapped-over", map_over_receive},
    {"early", read_early},
    {"many", repeat_mistake},
    {"fork", leave_in_both},
    {"waits", wait_rightly},
    {"made-in-child", make_in_child},
    {"locked-queues", lock_queues},
    {"gone", use_what_is_gone},
    {"one-id", share_with_one_id},
    {"wrong-key", name_wrong_region},
    {"never-polled", poll_nothing},
    {"ah-in-use", destroy_address},
    {"psn", number_differently},
    {"moved", move_memory},
    {"post-refused", ignore_refusal},
    {"refused-full", fill_and_ignore},
    {"failed-one", fail_one_of_two},
    {"inline-unasked", post_inline_unasked},
    {"atomic-misaligned", misalign_atomic},
    {"atomic-key-zero", misplace_key},
    {"read-sink-access", read_into_closed_memory},
    {"builder-order", build_out_of_turn},
    {"builders", build_wrongly},
    {"spoilt-address", spoil_address},
    {"ah-domain", use_foreign_address},
    {"failed-receive", receive_too_little},
};

int main(int argc, char **argv)
{
    static const char *const variants[] = {[FAULTY] = "faulty", [TWIN] = "twin", [NEIGHBOUR] = "neighbour"};
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        for (enum loopback_variant variant = FAULTY; variant <= NEIGHBOUR; variant++)
            if (!strcmp(cases[i].name, argv[1]) && !strcmp(variants[variant], argv[2])) {
                cases[i].run(variant);
                return 0;
            }
    fprintf(stderr, "mistakes CASE faulty|twin|neighbour\n");
    return 2;
}
