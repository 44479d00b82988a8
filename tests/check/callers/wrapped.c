/* Posts through functions of the program, each in another chain, and the same mistake after it: a buffer that changes
 * before the completion. KEPT calls are no tail calls. */
#include <alloca.h>
#include <pthread.h>

#include "mistakes.h"

#define FUNCTION __attribute__((noinline, noclone)) static int
#define KEPT(call)                                                                                                     \
    __extension__({                                                                                                    \
        int kept = (call);                                                                                             \
        __asm__ volatile("" : "+r"(kept));                                                                             \
        kept;                                                                                                          \
    })

FUNCTION post(struct loopback *loopback)
{
    return KEPT(WRITE(loopback, 0, 64, IBV_SEND_SIGNALED));
}

static void spoil(struct loopback *loopback)
{
    loopback->memory[0]++;
    loopback_poll(loopback, 1);
}

FUNCTION inner(struct loopback *loopback)
{
    return KEPT(post(loopback));
}

FUNCTION outer(struct loopback *loopback)
{
    return KEPT(inner(loopback));
}

/* Its frame has no size that the compiler knows. */
FUNCTION post_roomy(struct loopback *loopback, size_t room)
{
    volatile char *memory = alloca(room);
    memory[0] = memory[room - 1] = 1;
    return KEPT(WRITE(loopback, 0, 64, IBV_SEND_SIGNALED)) + memory[0] - 1;
}

FUNCTION roomy(struct loopback *loopback, size_t room)
{
    return KEPT(post_roomy(loopback, room));
}

FUNCTION roomier(struct loopback *loopback, size_t room)
{
    return KEPT(roomy(loopback, room));
}

FUNCTION recursive(struct loopback *loopback, unsigned depth)
{
    return KEPT(depth ? recursive(loopback, depth - 1) : post(loopback));
}

FUNCTION by_builder(struct loopback *loopback)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(loopback->qp[0]);
    ibv_wr_start(qp);
    qp->wr_id = 8;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qp, loopback->mr->rkey, (uintptr_t)loopback->memory + LOOPBACK_MEMORY / 2);
    ibv_wr_set_sge(qp, loopback->mr->lkey, (uintptr_t)loopback->memory, 64);
    return KEPT(ibv_wr_complete(qp));
}

/* The compiler puts it into `container`: one frame for both. */
static inline __attribute__((always_inline)) int contained(struct loopback *loopback)
{
    return KEPT(post(loopback));
}

FUNCTION container(struct loopback *loopback)
{
    return KEPT(contained(loopback));
}

FUNCTION build(struct loopback *loopback)
{
    return KEPT(by_builder(loopback));
}

FUNCTION post_in_thread(struct loopback *loopback)
{
    return KEPT(post(loopback));
}

static void *run_thread(void *unused)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!post_in_thread(&loopback));
    spoil(&loopback);
    loopback_close(&loopback);
    return unused;
}

int main(void)
{
    struct loopback loopback;
    pthread_t thread;
    loopback_open(&loopback, &(struct loopback_options){0});
    MUST(!outer(&loopback));
    spoil(&loopback);
    MUST(!roomier(&loopback, 80));
    spoil(&loopback);
    MUST(!recursive(&loopback, 5));
    spoil(&loopback);
    MUST(!build(&loopback));
    spoil(&loopback);
    MUST(!container(&loopback));
    spoil(&loopback);
    MUST(!pthread_create(&thread, NULL, run_thread, NULL));
    MUST(!pthread_join(thread, NULL));
    loopback_close(&loopback);
    return 0;
}
