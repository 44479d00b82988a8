/* One sender and many receivers, each a process that sleeps until something arrives; some of them are stopped. Messages
 * to the others reach them nevertheless, whether they were sent to before or not; the sender does not take processor
 * time for those that don't read; and once those continue they get their messages. Usage: sleeping_receivers
 * [RECEIVERS]. Exit status 0 when all was right. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { MOST = 1000, ROUNDS = 2, TIMEOUT = 16 /* 268 ms, for many processes on few processors */ };
static const double observed = 1; /* s */

struct receiver {
    pid_t process;
    struct address address;
    atomic_bool ready, connected;
    atomic_uint received;
};

struct crowd {
    struct address sender[MOST]; /* the queue pair for each */
    atomic_uint introduced;
    struct receiver receivers[MOST];
};

static struct crowd *crowd;
static unsigned members;

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void post_receive(struct ibv_qp *qp)
{
    struct ibv_recv_wr wr = {.wr_id = 0}, *bad;
    if (ibv_post_recv(qp, &wr, &bad))
        die("no receive");
}

static void receive_for_ever(struct receiver *self)
{
    struct endpoint endpoint;
    struct ibv_wc wc;
    unsigned number = (unsigned)(self - crowd->receivers);
    endpoint_open(&endpoint, 16);
    struct ibv_qp *qp = endpoint_create_qp(&endpoint, IBV_QPT_RC, 1, ROUNDS);
    for (unsigned i = 0; i < ROUNDS; i++)
        post_receive(qp);
    self->address = endpoint_address(&endpoint, qp, NULL);
    atomic_store(&self->ready, true);
    while (atomic_load(&crowd->introduced) < members)
        usleep(10000);
    endpoint_connect(qp, &crowd->sender[number], TIMEOUT);
    atomic_store(&self->connected, true);
    for (;;) {
        struct ibv_cq *cq;
        void *context;
        if (ibv_req_notify_cq(endpoint.cq, 0))
            die("no notification");
        while (ibv_poll_cq(endpoint.cq, 1, &wc) > 0)
            self->received += wc.status == IBV_WC_SUCCESS;
        if (ibv_get_cq_event(endpoint.channel, &cq, &context))
            die("no event");
        ibv_ack_cq_events(cq, 1);
    }
}

static void start_all(void)
{
    for (unsigned i = 0; i < members; i++) {
        pid_t process = fork();
        if (process < 0)
            die("no process");
        if (!process) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            receive_for_ever(&crowd->receivers[i]);
        }
        crowd->receivers[i].process = process;
    }
}

static void connect_all(struct endpoint *endpoint, struct ibv_qp **qps)
{
    for (unsigned i = 0; i < members; i++) {
        struct receiver *receiver = &crowd->receivers[i];
        while (!atomic_load(&receiver->ready))
            usleep(10000);
        qps[i] = endpoint_create_qp(endpoint, IBV_QPT_RC, ROUNDS, 1);
        endpoint_connect(qps[i], &receiver->address, TIMEOUT);
        crowd->sender[i] = endpoint_address(endpoint, qps[i], NULL);
        atomic_fetch_add(&crowd->introduced, 1);
    }
    for (unsigned i = 0; i < members; i++)
        while (!atomic_load(&crowd->receivers[i].connected))
            usleep(10000);
}

static void send_to_all(struct ibv_qp **qps)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    for (unsigned i = 0; i < members; i++)
        if (ibv_post_send(qps[i], &wr, &bad))
            die("ibv_post_send fails");
}

/* Stops the receivers before `behind`, or lets them continue. */
static void signal_some(unsigned behind, int signal)
{
    for (unsigned i = 0; i < behind; i++)
        kill(crowd->receivers[i].process, signal);
    usleep(50000); /* they stop, or fall asleep again */
}

static unsigned count_received(unsigned from, unsigned round)
{
    unsigned count = 0;
    for (unsigned i = from; i < members; i++)
        count += crowd->receivers[i].received >= round;
    return count;
}

/* Waits until the receivers from `from` on have what was sent in this round. */
static double await_received(unsigned from, unsigned round)
{
    double begun = now_seconds();
    while (count_received(from, round) < members - from) {
        if (now_seconds() - begun > PATIENCE_SECONDS)
            die("round %u, %u are stopped: %u of the other %u never get theirs", round, from,
                members - from - count_received(from, round), members - from);
        usleep(10000);
    }
    return now_seconds() - begun;
}

static double observe_processor(void)
{
    double before = processor_seconds();
    usleep((useconds_t)(observed * 1e6));
    double used = processor_seconds() - before;
    if (used > observed / 2)
        die("the sender works for %.2f s in %.2f s while others don't read", used, observed);
    return used;
}

static void play_round(struct ibv_qp **qps, unsigned stopped, unsigned round)
{
    signal_some(stopped, SIGSTOP);
    send_to_all(qps);
    double others = await_received(stopped, round), used = observe_processor();
    signal_some(stopped, SIGCONT);
    double all = await_received(0, round);
    printf(
        "%u of %u stopped: the others have theirs after %.2f s, all %.2f s after they go on; the sender uses %.2f of a "
        "processor meanwhile\n",
        stopped, members, others, all, used / observed);
}

/* The next process that joins sweeps what the dead have left. */
static void end(struct endpoint *endpoint)
{
    for (unsigned i = 0; i < members; i++)
        kill(crowd->receivers[i].process, SIGKILL);
    while (wait(NULL) > 0)
        ;
    ibv_close_device(endpoint->context);
    endpoint_open(endpoint, 1);
    endpoint_close(endpoint);
}

int main(int argc, char **argv)
{
    static struct ibv_qp *qps[MOST];
    struct endpoint endpoint;
    struct ibv_wc wc;
    members = argc > 1 ? (unsigned)atoi(argv[1]) : 400;
    members = members < MOST ? members : MOST;
    setlinebuf(stdout);
    crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crowd == MAP_FAILED)
        die("no shared memory");
    start_all();
    endpoint_open(&endpoint, (int)(2 * ROUNDS * members));
    connect_all(&endpoint, qps);
    play_round(qps, members * 2 / 5, 1); /* to receivers that have no ring yet */
    play_round(qps, members * 9 / 10, 2);
    for (unsigned i = 0; i < ROUNDS * members; i++)
        if (!endpoint_wait(&endpoint, &wc, 1, PATIENCE_SECONDS) || wc.status != IBV_WC_SUCCESS)
            die("a message ends in %s, reason %u", ibv_wc_status_str(wc.status), wc.vendor_err);
    end(&endpoint);
    return 0;
}
