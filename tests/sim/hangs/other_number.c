/* A process says a number as its own that another one has here, as a process of another container does; that other one
 * is stopped by a debugger. The first takes nothing any more, as its helper stays in a signal handler, and a
 * third process writes to it: the WRITE ends when the library's patience with it is over, after half a minute. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { LENGTH = 64, CONNECTED = 2, TIMEOUT = 12 };

static const double longest = 120; /* virtual seconds, four times the library's patience */

static struct shared {
    struct meeting meeting;
    atomic_int number; /* of the one that is stopped */
    atomic_bool rests, deaf, ended;
} * shared;

static bool other_container;

/* In place of the C library's, also for the library. */
__attribute__((visibility("default"))) pid_t getpid(void)
{
    return other_container ? atomic_load(&shared->number) : (pid_t)syscall(SYS_getpid);
}

static void rest(void)
{
    for (;;)
        pause();
}

static void hear_nothing(int signal)
{
    atomic_store(&shared->deaf, true);
    rest();
}

/* SIGBUS is the signal that the helper does not block. */
static void deafen_helper(void)
{
    pid_t process = (pid_t)syscall(SYS_getpid);
    signal(SIGBUS, hear_nothing);
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads && (entry = readdir(threads));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != process)
            syscall(SYS_tgkill, process, atoi(entry->d_name), SIGBUS);
    closedir(threads);
}

/* It says its number when it opens its first device. */
static void join_as_another(void)
{
    struct endpoint first;
    other_container = true;
    endpoint_open(&first, 1);
    other_container = false;
}

static void be_written(void)
{
    struct side side;
    join_as_another();
    side_open(&side, &shared->meeting, RECEIVER, NULL, LENGTH, 4);
    side_connect(&side, TIMEOUT);
    side_meet(&side, CONNECTED);
    deafen_helper();
    rest();
}

static void write_one(void)
{
    struct side side;
    struct ibv_wc wc;
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
    side_open(&side, &shared->meeting, SENDER, NULL, LENGTH, 4);
    side_connect(&side, TIMEOUT);
    side_meet(&side, CONNECTED);
    while (!atomic_load(&shared->deaf))
        usleep(100);
    wr.wr.rdma.remote_addr = side_peer(&side)->memory;
    wr.wr.rdma.rkey = side_peer(&side)->rkey;
    if (ibv_post_send(side.qp, &wr, &bad))
        die("ibv_post_send");
    if (endpoint_wait(&side.endpoint, &wc, 1, 2 * longest) == 1)
        atomic_store(&shared->ended, true);
    rest();
}

static pid_t start(void (*live)(void))
{
    pid_t child = fork();
    if (!child)
        live();
    return child;
}

static void end(pid_t process)
{
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

static void say_and_rest(void)
{
    atomic_store(&shared->rests, true);
    rest();
}

static pid_t start_stopped(void)
{
    pid_t stopped = start(say_and_rest);
    while (!atomic_load(&shared->rests))
        usleep(100);
    if (ptrace(PTRACE_SEIZE, stopped, 0, 0) || ptrace(PTRACE_INTERRUPT, stopped, 0, 0))
        die("ptrace");
    return stopped;
}

/* The one that is stopped ends first: under softverbs sim it would have a turn when another one ends. */
int main(void)
{
    shared = pair_share(sizeof *shared);
    pid_t stopped = start_stopped();
    atomic_store(&shared->number, stopped);
    pid_t written = start(be_written), writer = start(write_one);
    double until = now_seconds() + longest;
    while (!atomic_load(&shared->ended) && now_seconds() < until)
        usleep(100000);
    end(stopped);
    end(written);
    end(writer);
    return !atomic_load(&shared->ended);
}
