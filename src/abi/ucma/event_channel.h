/* Event channels: the descriptor that a program of librdmacm has as channel->fd, and that librdmacm takes for the
 * device rdma_cm. The descriptor belongs to an event pipe. Its inode identifies the channel, because programs close
 * descriptors unseen and numbers are used again. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/nanos.h"
#include "cm/events.h"
#include "process/event_pipe.h"

struct cm;

struct event_channel {
    struct cm *cm;
    struct event_queue queue; /* under the lock of the connection manager */
    struct event_pipe pipe;
    nanos added_at;      /* when the last event came */
    pthread_t fetcher;   /* the thread that fetched the last event */
    nanos fetched_at;    /* when it did; NANOS_NEVER: no thread has fetched one */
    atomic_uint waiting; /* threads that wait for an event */
    atomic_uint uses;    /* references; the open descriptor has one of them */
    struct event_channel *next;
};

/* Opens a channel and returns its descriptor, or -1 with errno set. All functions here are thread-safe. */
int event_channel_open(int flags);

/* The channel of the descriptor, to be given back by event_channel_put; NULL: the descriptor belongs to no channel. */
struct event_channel *event_channel_find(int fd);
void event_channel_put(struct event_channel *);

/* Call before the program's close of `fd`: destroys all identifiers of the channel. Does nothing if `fd` is only a copy
 * of the descriptor that event_channel_open returned. */
void event_channel_close(struct event_channel *, int fd);

/* Call before an identifier is destroyed. If it has an unfetched event, and another thread fetches this channel's
 * events, waits until that thread has fetched it, at most until 10 ms after the last event came: a thread that has
 * learnt of the event by poll(2) would else wait in rdma_get_cm_event for an event that was purged. Not under a lock.
 */
void event_channel_let_fetch(struct event_channel *, uint32_t number);

/* Waits for an event. Returns 0, EAGAIN (the descriptor is non-blocking and has no event) or EINTR. A cancellation
 * point: its caller puts its reference back by pthread_cleanup_push. The callers of the functions that open, close or
 * let fetch prevent cancellation (base/uncancelled.h). */
int event_channel_wait(struct event_channel *, int fd, struct cm_event *);
