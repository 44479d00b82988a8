#include "litmus.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <time.h>

#include "base/testing/patience.h"

static const struct loopback_options options = {.entries = 256};

/* Places in the memory, each in a separate line of the cache. */
enum { R = 0, X = 64, Y = 128, WIDE_SOURCE = 4096, WIDE = 8192 };

static volatile uint64_t *at(struct litmus *litmus, unsigned place)
{
    return (volatile uint64_t *)(void *)(litmus->ends.memory + place);
}

static void connect_both(struct litmus *litmus, struct ibv_qp *one, struct ibv_qp *other)
{
    loopback_connect(&litmus->ends, one, other->qp_num, &options);
    loopback_connect(&litmus->ends, other, one->qp_num, &options);
}

static void make_armed(struct litmus *litmus)
{
    struct ibv_cq *cq = litmus->ends.cq;
    MUST(litmus->channel = ibv_create_comp_channel(litmus->ends.context));
    MUST(litmus->armed = ibv_create_cq(litmus->ends.context, 64, NULL, litmus->channel, 0));
    litmus->to_armed = loopback_make_qp(&litmus->ends, &options);
    litmus->ends.cq = litmus->armed;
    litmus->on_armed = loopback_make_qp(&litmus->ends, &options);
    litmus->ends.cq = cq;
    connect_both(litmus, litmus->on_armed, litmus->to_armed);
}

void litmus_open(struct litmus *litmus)
{
    *litmus = (struct litmus){0};
    litmus_open_early(litmus);
    loopback_open(&litmus->ends, &options);
    for (int i = 0; i < 2; i++)
        litmus->more[i] = loopback_make_qp(&litmus->ends, &options);
    connect_both(litmus, litmus->more[0], litmus->more[1]);
    make_armed(litmus);
    litmus->r = at(litmus, R);
    litmus->x = at(litmus, X);
    litmus->y = at(litmus, Y);
    litmus->wide_source = at(litmus, WIDE_SOURCE);
    litmus->wide = at(litmus, WIDE);
}

void litmus_close(struct litmus *litmus)
{
    MUST(!ibv_destroy_qp(litmus->on_armed) && !ibv_destroy_qp(litmus->to_armed));
    MUST(!ibv_destroy_cq(litmus->armed) && !ibv_destroy_comp_channel(litmus->channel));
    MUST(!ibv_destroy_qp(litmus->more[0]) && !ibv_destroy_qp(litmus->more[1]));
    loopback_close(&litmus->ends);
    MUST(!ibv_close_device(litmus->early));
}

void litmus_post(struct ibv_qp *qp, struct litmus *litmus, enum ibv_wr_opcode opcode, volatile uint64_t *local,
                 volatile uint64_t *remote, unsigned length, unsigned flags)
{
    struct ibv_sge piece = {(uintptr_t)local, length, litmus->ends.mr->lkey};
    struct ibv_send_wr *bad, work = {.sg_list = &piece, .num_sge = 1, .opcode = opcode, .send_flags = flags};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        work.wr.atomic.remote_addr = (uintptr_t)remote;
        work.wr.atomic.rkey = litmus->ends.mr->rkey;
        work.wr.atomic.compare_add = 1;
    } else {
        work.wr.rdma.remote_addr = (uintptr_t)remote;
        work.wr.rdma.rkey = litmus->ends.mr->rkey;
    }
    MUST(!ibv_post_send(qp ? qp : litmus->ends.qp[0], &work, &bad));
}

void litmus_receive(struct ibv_qp *qp, struct litmus *litmus, volatile uint64_t *into, unsigned length)
{
    struct ibv_sge piece = {(uintptr_t)into, length, litmus->ends.mr->lkey};
    struct ibv_recv_wr *bad, work = {.sg_list = &piece, .num_sge = length != 0};
    MUST(!ibv_post_recv(qp ? qp : litmus->ends.qp[1], &work, &bad));
}

static bool poll_one(struct ibv_cq *cq)
{
    enum { LOOKS = 1024 }; /* polls between two looks at the clock */
    struct ibv_wc entry;
    time_t begun = time(NULL);
    int count;
    for (unsigned polls = 1; !(count = ibv_poll_cq(cq, 1, &entry)); polls++)
        MUST(polls % LOOKS || (double)(time(NULL) - begun) < PATIENCE_SECONDS);
    if (entry.status != IBV_WC_SUCCESS)
        fprintf(stderr, "%s, reason %u\n", ibv_wc_status_str(entry.status), entry.vendor_err);
    return count == 1 && entry.status == IBV_WC_SUCCESS;
}

void litmus_poll(struct ibv_cq *cq, unsigned count)
{
    while (count--)
        MUST(poll_one(cq));
}

/* --- the programs */

#define CQ litmus->ends.cq
#define POST(opcode, local, remote, flags) litmus_post(NULL, litmus, IBV_WR_##opcode, local, remote, 8, flags)

bool litmus_L1(struct litmus *litmus)
{
    *litmus->r = 1;
    POST(RDMA_WRITE, litmus->r, litmus->x, SIGNALLED);
    *litmus->r = 2;
    litmus_poll(CQ, 1);
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED); /* behind it everything is in place */
    litmus_poll(CQ, 1);
    return *litmus->y == 2;
}

bool litmus_L2(struct litmus *litmus)
{
    *litmus->r = 1;
    POST(RDMA_WRITE, litmus->r, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    *litmus->r = 2;
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return *litmus->y == 2;
}

bool litmus_L3(struct litmus *litmus)
{
    *litmus->r = 1;
    POST(RDMA_WRITE, litmus->r, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return *litmus->x == 0;
}

bool litmus_L4(struct litmus *litmus)
{
    litmus_receive(NULL, litmus, NULL, 0);
    *litmus->r = 1;
    POST(RDMA_WRITE, litmus->r, litmus->x, 0);
    litmus_post(NULL, litmus, IBV_WR_SEND, litmus->r, NULL, 0, 0);
    litmus_poll(CQ, 1);
    bool old = *litmus->x == 0;
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return old;
}

bool litmus_L5(struct litmus *litmus)
{
    *litmus->y = 1;
    POST(RDMA_WRITE, litmus->y, litmus->x, 0);
    POST(RDMA_READ, litmus->r, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return *litmus->r == 0;
}

bool litmus_L6(struct litmus *litmus)
{
    *litmus->y = 1;
    POST(RDMA_WRITE, litmus->y, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    litmus_post(litmus->more[0], litmus, IBV_WR_RDMA_READ, litmus->r, litmus->x, 8, SIGNALLED);
    litmus_poll(CQ, 1);
    return *litmus->r == 0;
}

static bool forward(struct litmus *litmus, unsigned fence)
{
    *litmus->x = 1;
    POST(RDMA_READ, litmus->r, litmus->x, 0);
    POST(RDMA_WRITE, litmus->r, litmus->y, SIGNALLED | fence);
    litmus_poll(CQ, 1);
    POST(RDMA_READ, litmus->r, litmus->y, SIGNALLED);
    litmus_poll(CQ, 1);
    return *litmus->r == 0;
}

bool litmus_L7(struct litmus *litmus)
{
    return forward(litmus, 0);
}

bool litmus_L8(struct litmus *litmus)
{
    return forward(litmus, FENCED);
}

static bool reuse(struct litmus *litmus, unsigned fence)
{
    *litmus->y = 5;
    POST(RDMA_READ, litmus->r, litmus->x, 0);
    POST(RDMA_WRITE, litmus->y, litmus->x, SIGNALLED | fence);
    litmus_poll(CQ, 1);
    return *litmus->r == 5;
}

bool litmus_L9(struct litmus *litmus)
{
    return reuse(litmus, 0);
}

bool litmus_L10(struct litmus *litmus)
{
    return reuse(litmus, FENCED);
}

/* Whether it was so at any moment, by another thread that looks all the time. */
struct watch {
    pthread_t thread;
    bool (*sees)(const struct litmus *);
    const struct litmus *litmus;
    atomic_bool stop, seen, looks;
};

static void *watch(void *argument)
{
    struct watch *watch = argument;
    while (!watch->stop) {
        if (watch->sees(watch->litmus))
            watch->seen = true;
        watch->looks = true;
    }
    return NULL;
}

static void begin_watch(struct watch *watching, const struct litmus *litmus, bool (*sees)(const struct litmus *))
{
    watching->litmus = litmus;
    watching->sees = sees;
    watching->stop = watching->seen = watching->looks = false;
    MUST(!pthread_create(&watching->thread, NULL, watch, watching));
    while (!watching->looks) {
    }
}

static bool end_watch(struct watch *watching)
{
    watching->stop = true;
    MUST(!pthread_join(watching->thread, NULL));
    return watching->seen;
}

static bool sees_y_without_x(const struct litmus *litmus)
{
    uint64_t y = *litmus->y;
    atomic_thread_fence(memory_order_seq_cst);
    return y && !*litmus->x;
}

bool litmus_L11(struct litmus *litmus)
{
    struct watch watching;
    *litmus->r = 1;
    begin_watch(&watching, litmus, sees_y_without_x);
    POST(RDMA_WRITE, litmus->r, litmus->x, 0);
    POST(RDMA_WRITE, litmus->r, litmus->y, SIGNALLED);
    litmus_poll(CQ, 1);
    while (!*litmus->y || !*litmus->x) {
    }
    return end_watch(&watching);
}

bool litmus_L12(struct litmus *litmus)
{
    bool old = false;
    litmus_receive(NULL, litmus, NULL, 0);
    for (unsigned i = 0; i < LITMUS_WIDE / 8; i++)
        litmus->wide_source[i] = i + 1;
    litmus_post(NULL, litmus, IBV_WR_RDMA_WRITE_WITH_IMM, litmus->wide_source, litmus->wide, LITMUS_WIDE, 0);
    litmus_poll(CQ, 1);
    for (unsigned i = 0; i < LITMUS_WIDE / 8; i++)
        old |= litmus->wide[i] != i + 1;
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return old;
}

bool litmus_L13(struct litmus *litmus)
{
    POST(ATOMIC_FETCH_AND_ADD, litmus->r, litmus->x, SIGNALLED);
    litmus_post(litmus->more[0], litmus, IBV_WR_ATOMIC_FETCH_AND_ADD, litmus->y, litmus->x, 8, SIGNALLED);
    litmus_poll(CQ, 2);
    return *litmus->x == 1;
}

/* As fast as it can, by the processor's own atomics. */
struct counting {
    volatile uint64_t *x;
    atomic_bool stop, counts;
    uint64_t counted;
};

static void *count_up(void *argument)
{
    struct counting *counting = argument;
    while (!counting->stop) {
        __atomic_fetch_add(counting->x, 1, __ATOMIC_SEQ_CST);
        counting->counted++;
        counting->counts = true;
    }
    return NULL;
}

bool litmus_L14(struct litmus *litmus)
{
    enum { ATOMICS = 8 };
    pthread_t thread;
    struct counting counting = {.x = litmus->x};
    MUST(!pthread_create(&thread, NULL, count_up, &counting));
    while (!counting.counts) {
    }
    for (unsigned i = 0; i < ATOMICS; i++) {
        POST(ATOMIC_FETCH_AND_ADD, litmus->r, litmus->x, SIGNALLED);
        litmus_poll(CQ, 1);
    }
    counting.stop = true;
    MUST(!pthread_join(thread, NULL));
    return *litmus->x != counting.counted + ATOMICS;
}

/* The values that r has until the READ has completed. */
bool litmus_P5(struct litmus *litmus)
{
    pthread_t thread;
    struct counting counting = {.x = litmus->x};
    struct ibv_wc entry;
    uint64_t first = 0;
    bool two = false;
    *litmus->x = 1;
    MUST(!pthread_create(&thread, NULL, count_up, &counting));
    while (!counting.counts) {
    }
    POST(RDMA_READ, litmus->r, litmus->x, SIGNALLED);
    while (!ibv_poll_cq(CQ, 1, &entry)) {
        uint64_t now = *litmus->r;
        two |= first && now != first;
        first = first ? first : now;
    }
    two |= first && *litmus->r != first;
    counting.stop = true;
    MUST(!pthread_join(thread, NULL) && entry.status == IBV_WC_SUCCESS);
    return two;
}

static void read_two(struct litmus *litmus, unsigned flags, volatile uint64_t *first, volatile uint64_t *second)
{
    *litmus->x = 1;
    *litmus->y = 2;
    POST(RDMA_READ, first, litmus->x, flags);
    POST(RDMA_READ, second, litmus->y, SIGNALLED);
    litmus_poll(CQ, 1 + (flags == SIGNALLED));
}

bool litmus_L15(struct litmus *litmus)
{
    read_two(litmus, 0, litmus->r, litmus->r);
    return *litmus->r == 1;
}

bool litmus_P8(struct litmus *litmus)
{
    read_two(litmus, SIGNALLED, litmus->r, litmus->r);
    return *litmus->r != 2;
}

bool litmus_P9(struct litmus *litmus)
{
    *litmus->wide = 0;
    read_two(litmus, 0, litmus->r, litmus->wide);
    return *litmus->r != 1 || *litmus->wide != 2;
}

/* In milliseconds. */
static bool has_event(struct litmus *litmus, int wait)
{
    struct pollfd file = {.fd = litmus->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    if (poll(&file, 1, wait) <= 0)
        return false;
    MUST(!ibv_get_cq_event(litmus->channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    return true;
}

static bool arm_and_write(struct litmus *litmus)
{
    while (has_event(litmus, 0)) {
    }
    MUST(!ibv_req_notify_cq(litmus->armed, 0));
    litmus_post(litmus->on_armed, litmus, IBV_WR_RDMA_WRITE, litmus->r, litmus->x, 8, SIGNALLED);
    bool event = has_event(litmus, PATIENCE);
    litmus_poll(litmus->armed, 1);
    return event;
}

bool litmus_L16(struct litmus *litmus)
{
    MUST(arm_and_write(litmus));
    return has_event(litmus, 1);
}

bool litmus_P3(struct litmus *litmus)
{
    return !arm_and_write(litmus);
}

static bool sees_the_end_alone(const struct litmus *litmus)
{
    uint64_t last = litmus->wide[LITMUS_WIDE / 8 - 1];
    atomic_thread_fence(memory_order_seq_cst);
    return last && !litmus->wide[0];
}

static void send_wide(struct litmus *litmus)
{
    litmus_receive(NULL, litmus, litmus->wide, LITMUS_WIDE);
    for (unsigned i = 0; i < LITMUS_WIDE / 8; i++)
        litmus->wide_source[i] = i + 1;
    litmus_post(NULL, litmus, IBV_WR_SEND, litmus->wide_source, NULL, LITMUS_WIDE, SIGNALLED);
    litmus_poll(CQ, 2);
}

bool litmus_P1(struct litmus *litmus)
{
    struct watch watching;
    begin_watch(&watching, litmus, sees_the_end_alone);
    send_wide(litmus);
    return end_watch(&watching);
}

static bool sees_a_half(const struct litmus *litmus)
{
    uint64_t x = *litmus->x;
    return x && x != (1ull << 32 | 1);
}

bool litmus_P4(struct litmus *litmus)
{
    struct watch watching;
    *litmus->r = 1ull << 32 | 1;
    begin_watch(&watching, litmus, sees_a_half);
    POST(RDMA_WRITE, litmus->r, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    while (!*litmus->x) {
    }
    return end_watch(&watching);
}

bool litmus_P6(struct litmus *litmus)
{
    struct ibv_wc entry[2];
    litmus_receive(NULL, litmus, litmus->y, 8);
    POST(SEND, litmus->r, NULL, 0);
    while (!ibv_poll_cq(CQ, 1, entry)) {
    }
    MUST(entry->status == IBV_WC_SUCCESS && entry->opcode == IBV_WC_RECV);
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED);
    litmus_poll(CQ, 1);
    return entry->imm_data != 0;
}

bool litmus_P7(struct litmus *litmus)
{
    return litmus->ends.mr->lkey != litmus->ends.mr->rkey;
}

bool litmus_P2(struct litmus *litmus)
{
    bool old = false;
    send_wide(litmus);
    for (unsigned i = 0; i < LITMUS_WIDE / 8; i++)
        old |= litmus->wide[i] != i + 1;
    return old;
}
