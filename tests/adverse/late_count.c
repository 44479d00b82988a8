/* A program with a race between two threads: the one counts a piece of work after its post, and the other takes it off
 * when it polls the completion. Ends with 1 when a completion arrived that was not counted yet. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/testing/patience.h"
#include "loopback.h"

enum { WORKS = 300 };

static struct loopback ends;
static atomic_int counted;
static atomic_bool seen;

static void *take_off(void *unused)
{
    for (unsigned i = 0; i < WORKS; i++) {
        MUST(!loopback_poll(&ends, 1));
        if (atomic_fetch_sub(&counted, 1) < 1)
            seen = true;
    }
    return unused;
}

static void post_and_count(void)
{
    struct ibv_sge piece = loopback_piece(&ends, 0, 8);
    struct ibv_send_wr work = {.sg_list = &piece,
                               .num_sge = 1,
                               .opcode = IBV_WR_RDMA_WRITE,
                               .send_flags = IBV_SEND_SIGNALED,
                               .wr.rdma = {(uintptr_t)ends.memory + 4096, ends.mr->rkey}},
                       *bad;
    MUST(!ibv_post_send(ends.qp[0], &work, &bad));
    atomic_fetch_add(&counted, 1);
    PATIENTLY_WHILE (atomic_load(&counted))
        sched_yield();
}

int main(void)
{
    pthread_t thread;
    loopback_open(&ends, &(struct loopback_options){});
    MUST(!pthread_create(&thread, NULL, take_off, NULL));
    for (unsigned i = 0; i < WORKS; i++)
        post_and_count();
    MUST(!pthread_join(thread, NULL));
    loopback_close(&ends);
    return seen;
}
