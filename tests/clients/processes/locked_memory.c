/* A program that locks all its memory, as real-time programs do, with the limits of an ordinary user: 8 MiB locked, and
 * threads of 8 MiB of stack. It opens a device and sends itself a message. Usage: locked. Exit status 0, or 1 with a
 * sentence. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { LIMIT = 8 << 20 };

/* Drops the capability to lock memory without limit, which root has. */
static void give_up_privileges(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capset, &header, none))
        die("capset");
}

static void limit(int what, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(what, &now))
        die("getrlimit");
    now.rlim_cur = most;
    now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
    if (now.rlim_max < most || setrlimit(what, &now))
        die("a limit can't be %lu", (unsigned long)most);
}

int main(void)
{
    static char memory[128];
    struct endpoint endpoint;
    struct ibv_wc wc;
    limit(RLIMIT_STACK, LIMIT);
    limit(RLIMIT_MEMLOCK, LIMIT);
    give_up_privileges();
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        die("mlockall");
    endpoint_open(&endpoint, 8);
    struct ibv_qp *qp = endpoint_create_qp(&endpoint, IBV_QPT_RC, 4, 4);
    struct ibv_mr *mr = endpoint_register(&endpoint, memory, sizeof memory);
    struct address self = endpoint_address(&endpoint, qp, mr);
    endpoint_connect(qp, &self, 14);
    struct ibv_sge from = {(uintptr_t)memory, 64, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = self.memory + 64;
    wr.wr.rdma.rkey = self.rkey;
    memset(memory, 1, 64);
    if (ibv_post_send(qp, &wr, &bad) || endpoint_wait(&endpoint, &wc, 1, PATIENCE_SECONDS) != 1 || wc.status ||
        !memory[127])
        die("nothing is written");
    return 0;
}
