/* One thread sends more than the way to the other process holds, another waits for events of the completions; each of
 * these comes soon after the one before. Usage: room [MESSAGES] */
#include <pthread.h>
#include <stdlib.h>

#include "pair.h"

enum { LENGTH = 1 << 16, DEPTH = 16, TIMEOUT = 18, CONNECTED = 2, DONE = 3 };

static const double still = 0.03; /* seconds; a process without a word looks after 0.05 */
static struct meeting *meeting;
static unsigned messages = 200;
static atomic_uint done;

static void *send_all(void *argument)
{
    struct side *side = argument;
    struct ibv_sge sge = {(uintptr_t)side->memory, LENGTH, side->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    for (unsigned i = 0; i < messages; i++) {
        while (i - atomic_load(&done) >= DEPTH)
            sched_yield();
        if (ibv_post_send(side->qp, &wr, &bad))
            die("ibv_post_send");
    }
    return NULL;
}

static void await_all(struct side *side)
{
    struct ibv_wc wc[DEPTH];
    for (double before = now_seconds(); atomic_load(&done) < messages; before = now_seconds()) {
        int found = endpoint_wait(&side->endpoint, wc, DEPTH, 10);
        for (int i = 0; i < found; i++)
            if (wc[i].status)
                die("a send ends with %s", ibv_wc_status_str(wc[i].status));
        atomic_fetch_add(&done, (unsigned)found);
        if (now_seconds() - before > still)
            die("nothing moved for %.3f s", now_seconds() - before);
    }
}

static void live_sender(struct side *side)
{
    pthread_t other;
    if (pthread_create(&other, NULL, send_all, side))
        die("no thread");
    await_all(side);
    pthread_join(other, NULL);
}

static void live_receiver(struct side *side)
{
    struct ibv_wc wc;
    for (unsigned i = 0; i < messages; i++) {
        if (endpoint_wait(&side->endpoint, &wc, 1, 10) != 1 || wc.status)
            die("no message");
        side_receive(side);
    }
}

static void live(int self, void *argument)
{
    struct side side;
    (void)argument;
    side_open(&side, meeting, self, NULL, LENGTH, DEPTH);
    side_connect(&side, TIMEOUT);
    for (int i = 0; self == RECEIVER && i < DEPTH; i++)
        side_receive(&side);
    side_meet(&side, CONNECTED);
    (self == SENDER ? live_sender : live_receiver)(&side);
    side_meet(&side, DONE);
}

int main(int argc, char **argv)
{
    meeting = pair_share(sizeof *meeting);
    messages = argc > 1 ? (unsigned)atoi(argv[1]) : messages;
    return pair_run(live, NULL);
}
