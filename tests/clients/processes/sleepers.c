/* Threads that wait in ibv_get_cq_event, where a message from another process wakes them. The requests of that process
 * are never repeated (timeout 0), so that a wake-up that is lost is a hang. Usage: sleepers MODE ROUNDS. Exit status 0,
 * or 1 with a sentence.
 *
 *   moments   messages come at all moments of a thread that falls asleep, wakes up and polls
 *   two       two threads wait, each for its own channel
 *   signals   handlers without SA_RESTART end the wait with EINTR, others and ignored signals do not
 *   handler   while a thread is in a handler that it ran in its wait, the other process reads memory
 *   closed    threads wait while the device is closed: one is cancelled then, and one is ended by a signal
 *   cancel    threads are cancelled while messages come to them; the next one gets what follows */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { WAYS = 2, RECEIVES = 64, BYTES = 4096 };

/* The two processes: the parent receives, the child sends when it is asked to. */
static struct shared {
    atomic_uint stages[2];
    struct address address[2][WAYS];
    atomic_uint wanted[WAYS], reads_wanted, reads;
} * shared;

struct way {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char memory[BYTES];
    unsigned received;
};
static struct way ways[WAYS];

static void meet(int self, unsigned stage)
{
    endpoint_meet(shared->stages, self, stage, PATIENCE_SECONDS);
}

static void open_ways(int self)
{
    for (unsigned i = 0; i < WAYS; i++) {
        endpoint_open(&ways[i].endpoint, RECEIVES);
        ways[i].qp = endpoint_create_qp(&ways[i].endpoint, IBV_QPT_RC, 4, RECEIVES);
        ways[i].mr = endpoint_register(&ways[i].endpoint, ways[i].memory, BYTES);
        shared->address[self][i] = endpoint_address(&ways[i].endpoint, ways[i].qp, ways[i].mr);
    }
    meet(self, 1);
    for (unsigned i = 0; i < WAYS; i++)
        endpoint_connect(ways[i].qp, &shared->address[!self][i], 0);
}

/* --- the child */

static void end_one(struct way *way)
{
    struct ibv_wc wc;
    if (endpoint_wait(&way->endpoint, &wc, 1, PATIENCE_SECONDS) != 1 || wc.status != IBV_WC_SUCCESS)
        die("the sender's request does not end well");
}

static void request(unsigned which, enum ibv_wr_opcode opcode)
{
    struct way *way = &ways[which];
    struct ibv_sge to = {(uintptr_t)way->memory, 8, way->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &to, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.remote_addr = shared->address[0][which].memory;
    wr.wr.rdma.rkey = shared->address[0][which].rkey;
    if (ibv_post_send(way->qp, &wr, &bad))
        die("ibv_post_send fails");
    end_one(way);
}

static void send_for_ever(void)
{
    unsigned sent[WAYS] = {0}, reads = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_ways(1);
    meet(1, 2);
    for (;;) {
        bool worked = false;
        for (unsigned i = 0; i < WAYS; i++)
            for (; sent[i] != atomic_load(&shared->wanted[i]); sent[i]++, worked = true)
                request(i, IBV_WR_SEND);
        for (; reads != atomic_load(&shared->reads_wanted); reads++, worked = true) {
            request(0, IBV_WR_RDMA_READ);
            atomic_store(&shared->reads, reads + 1);
        }
        if (!worked)
            sched_yield();
    }
}

/* --- the parent */

static void post_receive(struct way *way)
{
    struct ibv_sge to = {(uintptr_t)way->memory, BYTES, way->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;
    if (ibv_post_recv(way->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static void ask(unsigned which)
{
    atomic_fetch_add(&shared->wanted[which], 1);
}

static bool poll_one(struct way *way)
{
    struct ibv_wc wc;
    int found = ibv_poll_cq(way->endpoint.cq, 1, &wc);
    if (found < 0 || (found && wc.status != IBV_WC_SUCCESS))
        die("a receive fails");
    if (found)
        post_receive(way);
    way->received += (unsigned)found;
    return found;
}

/* Waits for an event. False: errno says why not. */
static bool sleep_for_event(struct way *way)
{
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(way->endpoint.channel, &cq, &context))
        return false;
    ibv_ack_cq_events(cq, 1);
    return true;
}

static void receive(struct way *way)
{
    while (!poll_one(way)) {
        if (ibv_req_notify_cq(way->endpoint.cq, 0))
            die("ibv_req_notify_cq fails");
        if (poll_one(way))
            return;
        if (!sleep_for_event(way))
            die("ibv_get_cq_event fails");
    }
}

static void pause_at_random(unsigned *seed, unsigned most)
{
    unsigned span = (unsigned)rand_r(seed) % most;
    if (span % 2)
        usleep(span);
}

static void moments(unsigned rounds)
{
    unsigned seed = 5;
    for (unsigned i = 0; i < rounds; i++) {
        ask(0);
        pause_at_random(&seed, 100);
        receive(&ways[0]);
    }
}

static unsigned both_rounds;

static void *receive_all(void *argument)
{
    unsigned seed = (unsigned)((struct way *)argument - ways);
    for (unsigned i = 0; i < both_rounds; i++) {
        ask(seed % WAYS == 0 ? 0 : 1);
        receive(argument);
    }
    return NULL;
}

static void two(unsigned rounds)
{
    pthread_t threads[WAYS];
    both_rounds = rounds;
    for (unsigned i = 0; i < WAYS; i++)
        if (pthread_create(&threads[i], NULL, receive_all, &ways[i]))
            die("no thread");
    for (unsigned i = 0; i < WAYS; i++)
        pthread_join(threads[i], NULL);
}

/* --- signals */

static atomic_uint handled;
static atomic_bool in_handler, handler_may_end;

static void count(int number)
{
    atomic_fetch_add(&handled, 1);
}

static void stay(int number)
{
    atomic_store(&in_handler, true);
    while (!atomic_load(&handler_may_end))
        usleep(100);
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    if (sigaction(number, &action, NULL))
        die("sigaction fails");
}

struct waiter {
    pthread_t thread;
    struct way *way;
    int blocked;       /* a signal that the thread blocks; or 0 */
    atomic_int number; /* of the thread; 0: it has not begun */
    atomic_int result; /* errno of the wait; -1: it lasts */
};

static void *wait_once(void *argument)
{
    struct waiter *waiter = argument;
    sigset_t set;
    sigemptyset(&set);
    if (waiter->blocked)
        sigaddset(&set, waiter->blocked);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    atomic_store(&waiter->number, gettid());
    bool taken = sleep_for_event(waiter->way);
    atomic_store(&waiter->result, taken ? 0 : errno);
    return NULL;
}

static bool sleeps(int thread)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = thread ? fopen(path, "re") : NULL;
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    const char *state = read ? strrchr(text, ')') : NULL;
    return state && state[2] == 'S';
}

static void begin_to_wait_with(struct waiter *waiter, struct way *way, int blocked)
{
    *waiter = (struct waiter){.way = way, .result = -1, .blocked = blocked};
    if (ibv_req_notify_cq(way->endpoint.cq, 0))
        die("ibv_req_notify_cq fails");
    if (pthread_create(&waiter->thread, NULL, wait_once, waiter))
        die("no thread");
    PATIENTLY_WHILE(!sleeps(waiter->number));
}

static void begin_to_wait(struct waiter *waiter, struct way *way)
{
    begin_to_wait_with(waiter, way, 0);
}

static void expect_end(struct waiter *waiter, int result, const char *what)
{
    pthread_join(waiter->thread, NULL);
    if (waiter->result != result)
        die("%s: ibv_get_cq_event ends with %d, not with %d", what, waiter->result, result);
}

static void signal_handled(struct waiter *waiter, int number)
{
    unsigned before = atomic_load(&handled);
    pthread_kill(waiter->thread, number);
    PATIENTLY_WHILE(atomic_load(&handled) == before);
}

static void take_message(struct waiter *waiter, const char *what)
{
    ask(0);
    expect_end(waiter, 0, what);
    PATIENTLY_WHILE(!poll_one(&ways[0]));
}

static void signals(unsigned rounds)
{
    struct waiter waiter;
    handle(SIGUSR1, count, SA_RESTART);
    handle(SIGUSR2, count, 0);
    handle(SIGWINCH, SIG_IGN, 0);
    for (unsigned i = 0; i < rounds; i++) {
        begin_to_wait(&waiter, &ways[0]);
        signal_handled(&waiter, SIGUSR1);
        pthread_kill(waiter.thread, SIGWINCH);
        pthread_kill(waiter.thread, SIGCHLD);
        usleep(1000); /* the wait would end meanwhile */
        if (waiter.result != -1)
            die("a handler with SA_RESTART, or a signal that is ignored, ends ibv_get_cq_event with %d", waiter.result);
        take_message(&waiter, "after handlers with SA_RESTART");
        begin_to_wait(&waiter, &ways[0]);
        signal_handled(&waiter, SIGUSR2);
        PATIENTLY_WHILE(waiter.result == -1);
        expect_end(&waiter, EINTR, "a handler without SA_RESTART");
        begin_to_wait_with(&waiter, &ways[0], SIGUSR2);
        pthread_kill(waiter.thread, SIGUSR2);
        take_message(&waiter, "with a signal that the thread blocks");
    }
}

static void handler(unsigned rounds)
{
    struct waiter waiter;
    handle(SIGUSR1, stay, SA_RESTART);
    for (unsigned i = 0; i < rounds; i++) {
        atomic_store(&in_handler, false);
        atomic_store(&handler_may_end, false);
        begin_to_wait(&waiter, &ways[0]);
        pthread_kill(waiter.thread, SIGUSR1);
        PATIENTLY_WHILE(!atomic_load(&in_handler));
        unsigned reads = atomic_fetch_add(&shared->reads_wanted, 1) + 1;
        PATIENTLY_WHILE(atomic_load(&shared->reads) != reads);
        atomic_store(&handler_may_end, true);
        take_message(&waiter, "after a handler");
    }
}

/* --- threads that end */

static void *wait_for_ever(void *argument)
{
    for (;;)
        if (!sleep_for_event(argument))
            return NULL;
}

static void cancel(unsigned rounds)
{
    unsigned seed = 3;
    struct pollfd fd = {.fd = ways[1].endpoint.channel->fd, .events = POLLIN};
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t thread;
        if (ibv_req_notify_cq(ways[0].endpoint.cq, 0) || ibv_req_notify_cq(ways[1].endpoint.cq, 0) ||
            pthread_create(&thread, NULL, wait_for_ever, &ways[0]))
            die("no thread waits");
        pause_at_random(&seed, 200);
        ask(1);
        pause_at_random(&seed, 100);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        if (poll(&fd, 1, PATIENCE) != 1)
            die("no event after a thread was cancelled");
        if (!sleep_for_event(&ways[1]))
            die("ibv_get_cq_event fails");
        PATIENTLY_WHILE(!poll_one(&ways[1]));
    }
}

static void closed(unsigned rounds)
{
    struct waiter waiters[WAYS];
    handle(SIGUSR2, count, 0);
    for (unsigned i = 0; i < WAYS; i++)
        begin_to_wait(&waiters[i], &ways[i]);
    for (unsigned i = 0; i < WAYS; i++) {
        if (ibv_destroy_qp(ways[i].qp) || ibv_dereg_mr(ways[i].mr))
            die("objects are left");
        endpoint_close(&ways[i].endpoint);
    }
    pthread_cancel(waiters[0].thread);
    pthread_join(waiters[0].thread, NULL);
    signal_handled(&waiters[1], SIGUSR2);
    PATIENTLY_WHILE(waiters[1].result == -1);
    expect_end(&waiters[1], EINTR, "a handler after the device was closed");
}

static const struct {
    const char *name;
    void (*play)(unsigned rounds);
} modes[] = {{"moments", moments}, {"two", two},       {"signals", signals},
             {"handler", handler}, {"cancel", cancel}, {"closed", closed}};

static void play(const char *name, unsigned rounds)
{
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].name, name)) {
            modes[i].play(rounds);
            return;
        }
    die("no such mode");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        die("usage: sleepers MODE ROUNDS");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("no shared memory");
    pid_t child = fork();
    if (!child)
        send_for_ever();
    open_ways(0);
    for (unsigned i = 0; i < WAYS; i++)
        for (unsigned j = 0; j < RECEIVES / 2; j++)
            post_receive(&ways[i]);
    meet(0, 2);
    play(argv[1], (unsigned)atoi(argv[2]));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
