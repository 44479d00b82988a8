/* A process loses the right to read its peer's memory while they are connected: by a filter of system calls, or because
 * it becomes another user. Payloads that it was to fetch go through the ring then, and nothing fails or is lost. Usage:
 * lost_rights filter|user. Two processes that poll; the one that receives is the one that loses. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { ROUNDS = 4, SENDER = 0, RECEIVER = 1, LONGEST = (3 << 20) + 5, STRANGER = 65534 };

/* Messages of 64 KiB and more are sent by reference, in parts of 1 MiB. All of a round are posted at once. */
static const uint32_t lengths[] = {100000, 64, LONGEST, 70000, 8};

enum { MESSAGES = sizeof lengths / sizeof *lengths, WITH_IMMEDIATE = 3 };

struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
};

static struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *memory; /* for each message its own */
    int self;
} side;

static unsigned char *memory_of(unsigned message)
{
    return side.memory + (size_t)message * (LONGEST + 64);
}

static void meet(unsigned stage)
{
    double deadline = now_seconds() + PATIENCE_SECONDS;
    side.meeting->stages[side.self] = stage;
    while (side.meeting->stages[!side.self] < stage) {
        if (now_seconds() > deadline)
            die("the other side does not come");
        usleep(100);
    }
}

static void lose(const char *how)
{
    if (!strcmp(how, "filter"))
        endpoint_refuse(SYS_process_vm_readv);
    else if (setresuid(STRANGER, STRANGER, STRANGER))
        die("setresuid");
}

static unsigned char byte_of(unsigned round, unsigned message, uint32_t at)
{
    return (unsigned char)(round * 31 + message * 7 + at + (at >> 8) + (at >> 16));
}

static void post_receive(unsigned message)
{
    struct ibv_sge sge = {(uintptr_t)memory_of(message), lengths[message], side.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = message, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side.qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static void post_send(unsigned round, unsigned message)
{
    const struct address *to = &side.meeting->addresses[RECEIVER];
    struct ibv_sge sge = {(uintptr_t)memory_of(message), lengths[message], side.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    if (message == WITH_IMMEDIATE) {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.rdma.rkey = to->rkey;
        wr.wr.rdma.remote_addr = to->memory + (uint64_t)(memory_of(message) - side.memory);
    }
    for (uint32_t at = 0; at < lengths[message]; at++)
        memory_of(message)[at] = byte_of(round, message, at);
    if (ibv_post_send(side.qp, &wr, &bad))
        die("ibv_post_send fails");
}

static void complete(unsigned round)
{
    struct ibv_wc wc;
    double deadline = now_seconds() + PATIENCE_SECONDS;
    for (unsigned done = 0; done < MESSAGES;) {
        int found = ibv_poll_cq(side.endpoint.cq, 1, &wc);
        if (found < 0 || (found && wc.status))
            die("round %u: %s", round, found < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
        if (now_seconds() > deadline)
            die("round %u: nothing completes", round);
        done += (unsigned)found;
    }
}

static void compare(unsigned round)
{
    for (unsigned message = 0; message < MESSAGES; message++)
        for (uint32_t at = 0; at < lengths[message]; at++)
            if (memory_of(message)[at] != byte_of(round, message, at))
                die("round %u: byte %u of message %u is wrong", round, at, message);
}

/* The first round is before the loss, so that both know that the memory can be read. */
static void talk(const char *how)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned message = 0; message < MESSAGES && side.self == RECEIVER; message++)
            post_receive(message);
        if (round == 1 && side.self == RECEIVER)
            lose(how);
        meet(2 + round);
        for (unsigned message = 0; message < MESSAGES && side.self == SENDER; message++)
            post_send(round, message);
        complete(round);
        if (side.self == RECEIVER)
            compare(round);
    }
    meet(2 + ROUNDS);
}

static void live(struct meeting *meeting, int self, const char *how)
{
    size_t size = (size_t)MESSAGES * (LONGEST + 64);
    side.meeting = meeting;
    side.self = self;
    side.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (side.memory == MAP_FAILED)
        die("no memory");
    endpoint_open(&side.endpoint, 2 * MESSAGES);
    side.mr = endpoint_register(&side.endpoint, side.memory, size);
    side.qp = endpoint_create_qp(&side.endpoint, IBV_QPT_RC, MESSAGES, MESSAGES);
    meeting->addresses[self] = endpoint_address(&side.endpoint, side.qp, side.mr);
    meet(1);
    endpoint_connect(side.qp, &meeting->addresses[!self], 14);
    talk(how);
}

int main(int argc, char **argv)
{
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    if (argc != 2 || (strcmp(argv[1], "filter") && strcmp(argv[1], "user")) || meeting == MAP_FAILED)
        die("Usage: lost_rights filter|user");
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        live(meeting, RECEIVER, argv[1]);
        return 0;
    }
    live(meeting, SENDER, argv[1]);
    return waitpid(child, &status, 0) != child || status;
}
