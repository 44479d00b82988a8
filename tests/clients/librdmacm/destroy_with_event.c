/* A thread learns by poll(2) that an event waits, and fetches it some milliseconds later. Meanwhile another thread
 * destroys the identifier. Exit status 0 when the thread has got each event, and when destroying an identifier whose
 * event no thread fetches ends. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/patience.h"

enum { ROUNDS = 20, LATE = 3000, STEP = 1000 /* microseconds */ };

static struct rdma_event_channel *channel;
static atomic_int polled, fetched;

static void check(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void *fetch_late(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct rdma_cm_event *event;
        check(poll(&(struct pollfd){.fd = channel->fd, .events = POLLIN}, 1, -1) == 1, "poll");
        atomic_store(&polled, round + 1);
        usleep(round ? LATE : 0); /* the event is taken late: what is tested */
        check(!rdma_get_cm_event(channel, &event) && !rdma_ack_cm_event(event), "rdma_get_cm_event");
        atomic_store(&fetched, round + 1);
    }
    return unused;
}

static void wait_until(atomic_int *count, int wanted, const char *what)
{
    for (int waited = 0; atomic_load(count) < wanted && waited < PATIENCE; waited += STEP / 1000)
        usleep(STEP);
    check(atomic_load(count) >= wanted, what);
}

/* An identifier with an event that waits. */
static struct rdma_cm_id *resolve(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_id *id;
    check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, PATIENCE), "rdma_resolve_addr");
    return id;
}

int main(void)
{
    pthread_t thread;
    channel = rdma_create_event_channel();
    check(channel && !pthread_create(&thread, NULL, fetch_late, NULL), "rdma_create_event_channel");
    for (int round = 0; round < ROUNDS; round++) {
        struct rdma_cm_id *id = resolve();
        wait_until(round ? &polled : &fetched, round + 1, "poll does not tell of the event");
        check(!rdma_destroy_id(id), "rdma_destroy_id");
        wait_until(&fetched, round + 1, "the event is gone that poll told of");
    }
    check(!pthread_join(thread, NULL), "pthread_join");
    check(!rdma_destroy_id(resolve()), "rdma_destroy_id");
    rdma_destroy_event_channel(channel);
    return 0;
}
