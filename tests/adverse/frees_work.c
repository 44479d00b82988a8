/* A thread posts work requests, each in a page of memory, and another one unmaps the page when it polls the completion:
 * as programs do whose requests belong to the thread that completes them. The call may still be inside. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/testing/patience.h"
#include "loopback.h"

enum { WORKS = 3000, PAGE = 4096 };

struct item {
    struct ibv_send_wr wr;
    struct ibv_sge piece;
};

static struct loopback ends;
static struct item *_Atomic posted;

static void *complete(void *unused)
{
    for (unsigned i = 0; i < WORKS; i++) {
        MUST(!loopback_poll(&ends, 1));
        MUST(!munmap(atomic_exchange(&posted, NULL), PAGE));
    }
    return unused;
}

static void post(void)
{
    struct item *item = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_send_wr *bad;
    MUST(item != MAP_FAILED);
    item->piece = loopback_piece(&ends, 0, 8);
    item->wr = (struct ibv_send_wr){.sg_list = &item->piece,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_RDMA_WRITE,
                                    .send_flags = IBV_SEND_SIGNALED,
                                    .wr.rdma = {(uintptr_t)ends.memory + PAGE, ends.mr->rkey}};
    atomic_store(&posted, item);
    MUST(!ibv_post_send(ends.qp[0], &item->wr, &bad));
    PATIENTLY_WHILE (atomic_load(&posted))
        sched_yield();
}

int main(void)
{
    pthread_t thread;
    loopback_open(&ends, &(struct loopback_options){});
    MUST(!pthread_create(&thread, NULL, complete, NULL));
    for (unsigned i = 0; i < WORKS; i++)
        post();
    MUST(!pthread_join(thread, NULL));
    loopback_close(&ends);
    return 0;
}
