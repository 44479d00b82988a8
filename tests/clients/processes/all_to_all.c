/* Many processes, each talking to each of them (itself too), over RC and then over UD; every byte is checked.
 * Usage: all_to_all [PROCESSES]. Prints what was exchanged; exit status 0 when all of it was right. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { MOST = 128, LONGEST = 20000, GRH = 40 };
static const unsigned rc_sizes[] = {1, 17, 4096, LONGEST};
static const unsigned ud_sizes[] = {1, 17, 1024};

/* The memory that the processes share. */
struct meeting {
    pthread_barrier_t barrier;
    struct address rc[MOST][MOST]; /* [of][towards] */
    struct address ud[MOST];
};

/* One of the processes. */
struct rank {
    struct meeting *meeting;
    unsigned self, all;
    struct endpoint endpoint;
    struct ibv_qp *rc[MOST], *ud;
    struct ibv_ah *ah[MOST];
    struct ibv_mr *out, *in;
};

static unsigned char *out_slot(const struct rank *rank, unsigned peer)
{
    return (unsigned char *)rank->out->addr + (size_t)peer * LONGEST;
}

static unsigned char *in_slot(const struct rank *rank, unsigned slot)
{
    return (unsigned char *)rank->in->addr + (size_t)slot * (LONGEST + GRH);
}

static unsigned char expected_byte(unsigned from, unsigned to, unsigned size, unsigned place)
{
    return (unsigned char)((from * 131 + to * 31 + size * 7 + place) * 2654435761u >> 24);
}

static void fill(const struct rank *rank, unsigned size)
{
    for (unsigned peer = 0; peer < rank->all; peer++)
        for (unsigned place = 0; place < size; place++)
            out_slot(rank, peer)[place] = expected_byte(rank->self, peer, size, place);
}

static void verify(const struct rank *rank, const unsigned char *data, unsigned from, unsigned size)
{
    for (unsigned place = 0; place < size; place++)
        if (data[place] != expected_byte(from, rank->self, size, place))
            die("process %u: byte %u of %u from %u is wrong", rank->self, place, size, from);
}

static void post_receive(struct rank *rank, struct ibv_qp *qp, unsigned slot, unsigned room)
{
    struct ibv_sge sge = {(uintptr_t)in_slot(rank, slot), room, rank->in->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    errno = ibv_post_recv(qp, &wr, &bad);
    if (errno)
        die("process %u: ibv_post_recv fails", rank->self);
}

static void post_send(struct rank *rank, struct ibv_qp *qp, unsigned peer, unsigned size)
{
    struct ibv_sge sge = {(uintptr_t)out_slot(rank, peer), size, rank->out->lkey};
    struct ibv_send_wr wr = {.wr_id = MOST, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = rank->self; /* both ends are this machine: no byte order */
    if (qp == rank->ud) {
        wr.wr.ud.ah = rank->ah[peer];
        wr.wr.ud.remote_qpn = rank->meeting->ud[peer].qp_num;
        wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
    }
    errno = ibv_post_send(qp, &wr, &bad);
    if (errno)
        die("process %u: ibv_post_send fails", rank->self);
}

static void take_message(struct rank *rank, const struct ibv_wc *wc, unsigned size, bool *heard)
{
    unsigned from = wc->imm_data, header = wc->qp_num == rank->ud->qp_num ? GRH : 0;
    if (!(wc->wc_flags & IBV_WC_WITH_IMM) || from >= rank->all || heard[from] || wc->byte_len != size + header)
        die("process %u: a message that nobody sent, of %u bytes from %u", rank->self, wc->byte_len, from);
    if (!header && wc->wr_id != from)
        die("process %u: the message of %u came over the queue pair to %u", rank->self, from, (unsigned)wc->wr_id);
    heard[from] = true;
    verify(rank, in_slot(rank, (unsigned)wc->wr_id) + header, from, size);
}

/* Waits until everything sent has completed and every process has been heard once. */
static void hear_all(struct rank *rank, unsigned size)
{
    bool heard[MOST] = {false};
    struct ibv_wc wc[32];
    for (unsigned done = 0; done < 2 * rank->all;) {
        int found = endpoint_wait(&rank->endpoint, wc, 32, PATIENCE_MANY_SECONDS);
        if (!found)
            die("process %u: nothing comes, %u of %u completions are missing", rank->self, 2 * rank->all - done,
                2 * rank->all);
        for (int i = 0; i < found; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                die("process %u: %s", rank->self, ibv_wc_status_str(wc[i].status));
            if (wc[i].opcode & IBV_WC_RECV)
                take_message(rank, &wc[i], size, heard);
        }
        done += (unsigned)found;
    }
}

static void exchange(struct rank *rank, bool datagrams, unsigned size)
{
    fill(rank, size);
    for (unsigned peer = 0; peer < rank->all; peer++)
        post_receive(rank, datagrams ? rank->ud : rank->rc[peer], peer, datagrams ? size + GRH : size);
    pthread_barrier_wait(&rank->meeting->barrier);
    for (unsigned step = 0; step < rank->all; step++) {
        unsigned peer = (rank->self + step) % rank->all;
        post_send(rank, datagrams ? rank->ud : rank->rc[peer], peer, size);
    }
    hear_all(rank, size);
}

static struct ibv_mr *allocate(struct rank *rank, size_t size)
{
    void *memory = calloc(rank->all, size);
    if (!memory)
        die("no memory");
    return endpoint_register(&rank->endpoint, memory, rank->all * size);
}

static void connect_all(struct rank *rank)
{
    struct meeting *meeting = rank->meeting;
    for (unsigned peer = 0; peer < rank->all; peer++) {
        rank->rc[peer] = endpoint_create_qp(&rank->endpoint, IBV_QPT_RC, 2, 2);
        meeting->rc[rank->self][peer] = endpoint_address(&rank->endpoint, rank->rc[peer], NULL);
    }
    rank->ud = endpoint_create_qp(&rank->endpoint, IBV_QPT_UD, rank->all, rank->all);
    endpoint_connect(rank->ud, NULL, 0);
    meeting->ud[rank->self] = endpoint_address(&rank->endpoint, rank->ud, NULL);
    pthread_barrier_wait(&meeting->barrier);
    for (unsigned peer = 0; peer < rank->all; peer++) {
        endpoint_connect(rank->rc[peer], &meeting->rc[peer][rank->self], 18);
        rank->ah[peer] = endpoint_reach(&rank->endpoint, &meeting->ud[peer]);
    }
    pthread_barrier_wait(&meeting->barrier);
}

static void leave(struct rank *rank)
{
    pthread_barrier_wait(&rank->meeting->barrier);
    for (unsigned peer = 0; peer < rank->all; peer++)
        if (ibv_destroy_qp(rank->rc[peer]) || ibv_destroy_ah(rank->ah[peer]))
            die("a queue pair or address handle is still in use");
    void *out = rank->out->addr, *in = rank->in->addr;
    if (ibv_destroy_qp(rank->ud) || ibv_dereg_mr(rank->out) || ibv_dereg_mr(rank->in))
        die("something is still in use");
    endpoint_close(&rank->endpoint);
    free(out);
    free(in);
}

static void live(struct meeting *meeting, unsigned self, unsigned all)
{
    struct rank rank = {.meeting = meeting, .self = self, .all = all};
    endpoint_open(&rank.endpoint, (int)(4 * all));
    rank.out = allocate(&rank, LONGEST);
    rank.in = allocate(&rank, LONGEST + GRH);
    connect_all(&rank);
    for (unsigned i = 0; i < sizeof rc_sizes / sizeof *rc_sizes; i++)
        exchange(&rank, false, rc_sizes[i]);
    for (unsigned i = 0; i < sizeof ud_sizes / sizeof *ud_sizes; i++)
        exchange(&rank, true, ud_sizes[i]);
    leave(&rank);
}

static struct meeting *arrange_meeting(unsigned all)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (meeting == MAP_FAILED || pthread_barrier_init(&meeting->barrier, &shared, all))
        die("no shared memory");
    return meeting;
}

/* A process that fails would leave the others waiting for it. */
static int await(unsigned all, const pid_t *pids)
{
    for (unsigned ended = 0; ended < all; ended++) {
        int status;
        if (wait(&status) < 0 || status == 0)
            continue;
        for (unsigned i = 0; i < all; i++)
            kill(pids[i], SIGKILL);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned all = argc > 1 ? (unsigned)atoi(argv[1]) : 64;
    if (all < 1 || all > MOST)
        die("from 1 to %d processes", MOST);
    struct meeting *meeting = arrange_meeting(all);
    pid_t pids[MOST];
    for (unsigned self = 0; self < all; self++) {
        pids[self] = fork();
        if (pids[self] == 0) {
            live(meeting, self, all);
            exit(0);
        }
    }
    if (await(all, pids))
        return 1;
    printf("%u processes, all to all: %u messages over RC and %u over UD, all bytes right\n", all,
           all * all * (unsigned)(sizeof rc_sizes / sizeof *rc_sizes),
           all * all * (unsigned)(sizeof ud_sizes / sizeof *ud_sizes));
    return 0;
}
