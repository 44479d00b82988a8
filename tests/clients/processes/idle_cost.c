/* Two connected processes with armed completion channels do nothing: the processor time that they spend on it.
 * Usage: idle [SECONDS [MILLISECONDS]]. Exit status 1 when either spends more than MILLISECONDS (10 in 10 s).
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"

static double processor_milliseconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
}

static void swap(int fd, const void *mine, void *theirs, size_t size)
{
    if (write(fd, mine, size) != (ssize_t)size || read(fd, theirs, size) != (ssize_t)size)
        die("the other process is gone");
}

/* Some messages each way, so that everything that is made on first use has been made. */
static void talk(struct endpoint *endpoint, struct ibv_qp *qp, int count)
{
    for (int i = 0; i < count; i++) {
        struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
        if (ibv_post_send(qp, &send, &bad))
            die("ibv_post_send fails");
        for (int done = 0; done < 2; done++) {
            struct ibv_wc wc;
            if (!endpoint_wait(endpoint, &wc, 1, 10) || wc.status != IBV_WC_SUCCESS)
                die("the messages before the pause do not arrive");
        }
    }
}

/* A completion that was found between arming and waiting has raised its event all the same, perhaps a moment later. */
static void take_late_events(struct endpoint *endpoint)
{
    struct pollfd channel = {.fd = endpoint->channel->fd, .events = POLLIN};
    while (poll(&channel, 1, 100) > 0) {
        struct ibv_cq *cq;
        void *context;
        if (ibv_get_cq_event(endpoint->channel, &cq, &context))
            die("ibv_get_cq_event fails");
        ibv_ack_cq_events(cq, 1);
    }
}

/* Armed by endpoint_wait's rule: arm, then look once more. */
static double be_idle(struct endpoint *endpoint, int seconds)
{
    struct ibv_wc wc;
    take_late_events(endpoint);
    if (ibv_req_notify_cq(endpoint->cq, 0) || ibv_poll_cq(endpoint->cq, 1, &wc))
        die("something comes in after the last message");
    double before = processor_milliseconds();
    struct pollfd channel = {.fd = endpoint->channel->fd, .events = POLLIN};
    if (poll(&channel, 1, seconds * 1000))
        die("the channel wakes without a completion");
    return processor_milliseconds() - before;
}

static int live(int fd, const char *name, int seconds, double most)
{
    struct endpoint endpoint;
    endpoint_open(&endpoint, 256);
    struct ibv_qp *qp = endpoint_create_qp(&endpoint, IBV_QPT_RC, 128, 128);
    for (int i = 0; i < 100; i++) {
        struct ibv_recv_wr receive = {.wr_id = 0}, *bad;
        if (ibv_post_recv(qp, &receive, &bad))
            die("ibv_post_recv fails");
    }
    struct address mine = endpoint_address(&endpoint, qp, NULL), theirs;
    swap(fd, &mine, &theirs, sizeof mine);
    endpoint_connect(qp, &theirs, 14);
    char ready = 1;
    swap(fd, &ready, &ready, 1);
    talk(&endpoint, qp, 100);
    swap(fd, &ready, &ready, 1);
    double spent = be_idle(&endpoint, seconds);
    swap(fd, &ready, &ready, 1);
    printf("%s: %.3f ms of processor time in %d s of idling\n", name, spent, seconds);
    if (ibv_destroy_qp(qp))
        die("the queue pair is still in use");
    endpoint_close(&endpoint);
    return spent > most;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 10, fds[2], bad = 0;
    double most = argc > 2 ? atof(argv[2]) : 10.0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
        die("no socket pair");
    for (int side = 0; side < 2; side++) {
        if (fork())
            continue;
        close(fds[!side]);
        exit(live(fds[side], side ? "client" : "server", seconds, most));
    }
    close(fds[0]);
    close(fds[1]);
    for (int status; wait(&status) > 0;)
        bad |= status != 0;
    return bad;
}
