#include "litmus.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <time.h>
#include <unistd.h>

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

/* WRITEs of a trial that are still on their way land before the next: a READ of the same queue pair follows them. */
void litmus_begin_trial(struct litmus *litmus)
{
    litmus_post(NULL, litmus, IBV_WR_RDMA_READ, litmus->r, litmus->x, 8, IBV_SEND_SIGNALED);
    litmus_poll(litmus->ends.cq, 1);
    *litmus->r = *litmus->x = *litmus->y = 0;
    memset((void *)(uintptr_t)litmus->wide, 0, LITMUS_WIDE);
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
    POST(RDMA_READ, litmus->y, litmus->x, SIGNALLED); /* after it everything is in place */
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

/* A look at the memory all the time: by another thread, and by this one whenever a timer interrupts it, also within the
 * library. On a busy machine the other thread may have no processor at the moment that matters. */
struct watch {
    pthread_t thread;
    timer_t timer;
    void (*look)(struct watch *);
    const struct litmus *litmus;
    atomic_bool stop, seen, looks;
    atomic_ullong counted; /* by the look itself */
};

static _Thread_local struct watch *interrupted;

static void on_timer(int signal)
{
    if (interrupted)
        interrupted->look(interrupted);
}

static void interrupt_often(struct watch *watching)
{
    enum { EACH = 20000 }; /* ns; much more frequent interrupts leave a busy processor no time */
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, ._sigev_un._tid = gettid()};
    const struct itimerspec times = {.it_interval.tv_nsec = EACH, .it_value.tv_nsec = EACH};
    interrupted = watching;
    MUST(!sigaction(SIGUSR1, &action, NULL) && !timer_create(CLOCK_MONOTONIC, &event, &watching->timer));
    MUST(!timer_settime(watching->timer, 0, &times, NULL));
}

static void *watch(void *argument)
{
    struct watch *watch = argument;
    while (!watch->stop) {
        watch->look(watch);
        watch->looks = true;
    }
    return NULL;
}

static void begin_watch(struct watch *watching, const struct litmus *litmus, void (*look)(struct watch *))
{
    *watching = (struct watch){.litmus = litmus, .look = look};
    MUST(!pthread_create(&watching->thread, NULL, watch, watching));
    while (!watching->looks) {
    }
    interrupt_often(watching);
}

static bool end_watch(struct watch *watching)
{
    MUST(!timer_delete(watching->timer));
    interrupted = NULL;
    watching->stop = true;
    MUST(!pthread_join(watching->thread, NULL));
    return watching->seen;
}

static void sees_y_without_x(struct watch *watch)
{
    uint64_t y = *watch->litmus->y;
    atomic_thread_fence(memory_order_seq_cst);
    if (y && !*watch->litmus->x)
        watch->seen = true;
}

bool litmus_L11(struct litmus *litmus)
{
    struct watch watching;
    struct ibv_wc none;
    *litmus->r = 1;
    begin_watch(&watching, litmus, sees_y_without_x);
    POST(RDMA_WRITE, litmus->r, litmus->x, 0);
    POST(RDMA_WRITE, litmus->r, litmus->y, SIGNALLED);
    litmus_poll(CQ, 1);
    while (!*litmus->y || !*litmus->x)
        MUST(!ibv_poll_cq(CQ, 1, &none));
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

/* Uses the processor's own atomics. */
static void counts_up(struct watch *watch)
{
    __atomic_fetch_add(watch->litmus->x, 1, __ATOMIC_SEQ_CST);
    watch->counted++;
}

bool litmus_L14(struct litmus *litmus)
{
    enum { ATOMICS = 8 };
    struct watch watching;
    begin_watch(&watching, litmus, counts_up);
    for (unsigned i = 0; i < ATOMICS; i++) {
        POST(ATOMIC_FETCH_AND_ADD, litmus->r, litmus->x, SIGNALLED);
        litmus_poll(CQ, 1);
    }
    end_watch(&watching);
    return *litmus->x != watching.counted + ATOMICS;
}

/* The values that r has until the READ has completed. The target counts between two polls, and needs no other thread,
 * which a busy machine may not let run in between. */
bool litmus_P5(struct litmus *litmus)
{
    struct ibv_wc entry;
    uint64_t first = 0;
    bool two = false;
    *litmus->x = 1;
    POST(RDMA_READ, litmus->r, litmus->x, SIGNALLED);
    while (!ibv_poll_cq(CQ, 1, &entry)) {
        uint64_t now = *litmus->r;
        two |= first && now != first;
        first = first ? first : now;
        ++*litmus->x;
    }
    two |= first && *litmus->r != first;
    MUST(entry.status == IBV_WC_SUCCESS);
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

/* `wait` is in milliseconds. */
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

/* Makes a queue pair whose receives end at once in the queue that is armed. */
static struct ibv_qp *make_failed(struct litmus *litmus)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_init_attr init = {.send_cq = litmus->armed,
                                    .recv_cq = litmus->armed,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp;
    MUST(qp = ibv_create_qp(litmus->ends.pd, &init));
    MUST(!ibv_modify_qp(qp, &error, IBV_QP_STATE));
    return qp;
}

/* A kind adapter raises the event at once, or a little later; the trials that wait in vain are few. */
bool litmus_L17(struct litmus *litmus)
{
    enum { WAIT = 100, TRIALS = 20 };
    static _Atomic unsigned trials;
    if (trials++ >= TRIALS)
        return false;
    while (has_event(litmus, 0)) {
    }
    struct ibv_qp *qp = make_failed(litmus);
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    MUST(!ibv_post_recv(qp, &wr, &bad) && !ibv_req_notify_cq(litmus->armed, 0));
    bool event = has_event(litmus, WAIT);
    MUST(!ibv_destroy_qp(qp));
    return !event;
}

bool litmus_P3(struct litmus *litmus)
{
    return !arm_and_write(litmus);
}

static void sees_the_end_alone(struct watch *watch)
{
    uint64_t last = watch->litmus->wide[LITMUS_WIDE / 8 - 1];
    atomic_thread_fence(memory_order_seq_cst);
    if (last && !watch->litmus->wide[0])
        watch->seen = true;
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

static void sees_a_half(struct watch *watch)
{
    uint64_t x = *watch->litmus->x;
    if (x && x != (1ull << 32 | 1))
        watch->seen = true;
}

bool litmus_P4(struct litmus *litmus)
{
    enum { WRITES = 4 };
    struct watch watching;
    struct ibv_wc none;
    *litmus->r = 1ull << 32 | 1;
    begin_watch(&watching, litmus, sees_a_half);
    for (unsigned i = 0; i < WRITES; i++) {
        *litmus->x = 0;
        POST(RDMA_WRITE, litmus->r, litmus->x, SIGNALLED);
        litmus_poll(CQ, 1);
        while (!*litmus->x)
            MUST(!ibv_poll_cq(CQ, 1, &none));
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
