/* A peer that lives, is not stopped, and takes nothing: its helper waits in a signal handler of the program, and its
 * program calls no verbs. A message to it must end in RETRY_EXC_ERR after half a minute, and say why (reason 116).
 * Exit status 0 when it does; prints how long it took. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { LENGTH = 64, TIMEOUT = 12, SOON = 10, EARLIEST = 29, LATEST = 45, STALLED = 116 };

struct run {
    struct meeting meeting;
    atomic_uint deaf;
};

static struct run *run;

static void hear_nothing(int number)
{
    atomic_store(&run->deaf, 1);
    for (;;)
        pause();
}

/* The thread that is named "softverbs" gets the signal, which its own accesses may cause and which it leaves open. */
static void deafen_helper(void)
{
    char path[300], name[32];
    struct sigaction action = {.sa_handler = hear_nothing};
    DIR *threads = opendir("/proc/self/task");
    sigaction(SIGBUS, &action, NULL);
    for (struct dirent *entry; threads && (entry = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *comm = fopen(path, "r");
        if (comm && fgets(name, sizeof name, comm) && !strcmp(name, "softverbs\n"))
            syscall(SYS_tgkill, getpid(), atoi(entry->d_name), SIGBUS);
        if (comm)
            fclose(comm);
    }
    closedir(threads);
    for (int i = 0; i < 1000 * SOON && !atomic_load(&run->deaf); i++)
        usleep(1000);
    if (!atomic_load(&run->deaf))
        die("the helper does not take the signal");
}

/* Posts a WRITE of no bytes: others the sender could write by itself, without the peer. */
static void post(struct side *side)
{
    struct ibv_send_wr send = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
    send.wr.rdma.remote_addr = side_peer(side)->memory;
    send.wr.rdma.rkey = side_peer(side)->rkey;
    if (ibv_post_send(side->qp, &send, &bad))
        die("nothing can be posted");
}

static void expect_first(struct side *side)
{
    struct ibv_wc wc;
    post(side);
    if (endpoint_wait(&side->endpoint, &wc, 1, SOON) != 1 || wc.status != IBV_WC_SUCCESS)
        die("the first message does not arrive");
}

static void expect_patience(struct side *side)
{
    struct ibv_wc wc;
    double begun = now_seconds();
    post(side);
    if (endpoint_wait(&side->endpoint, &wc, 1, LATEST) != 1)
        die("nobody says that the peer takes nothing");
    double took = now_seconds() - begun;
    if (wc.status != IBV_WC_RETRY_EXC_ERR || wc.vendor_err != STALLED || took < EARLIEST)
        die("after %.1f s: %s, reason %u", took, ibv_wc_status_str(wc.status), wc.vendor_err);
    printf("%s, reason %u, after %.1f s\n", ibv_wc_status_str(wc.status), wc.vendor_err, took);
}

static void live(int self)
{
    struct side side;
    side_open(&side, &run->meeting, self, NULL, LENGTH, 4);
    side_connect(&side, TIMEOUT);
    side_meet(&side, 2);
    if (self == SENDER)
        expect_first(&side);
    side_meet(&side, 3);
    if (self == RECEIVER)
        deafen_helper();
    side_meet(&side, 4);
    if (self == SENDER)
        expect_patience(&side);
    else
        for (;;)
            pause();
}

int main(void)
{
    run = pair_share(sizeof *run);
    pid_t receiver = fork();
    if (!receiver) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        live(RECEIVER);
    }
    live(SENDER);
    kill(receiver, SIGKILL);
    return waitpid(receiver, NULL, 0) != receiver;
}
