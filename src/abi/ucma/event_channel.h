/* Event channels: the descriptor that a program of librdmacm has as channel->fd, and that the library behind it takes
 * for the device rdma_cm. It is that of an event pipe. A descriptor's inode identifies its channel, because programs
 * close descriptors unseen and numbers are used again. */
#ifndef ABI_UCMA_EVENT_CHANNEL_H
#define ABI_UCMA_EVENT_CHANNEL_H

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
    pthread_t fetcher;   /* the thread that fetched the last event, */
    nanos fetched_at;    /* and when; NANOS_NEVER: none has yet */
    atomic_uint waiting; /* threads that wait for an event */
    atomic_uint uses;    /* one of them the descriptor's */
    struct event_channel *next;
};

/* A descriptor, or -1 and errno. Thread-safe, as all here. */
int event_channel_open(int flags);

/* The channel that the descriptor is of, to be put back; NULL: of none. */
struct event_channel *event_channel_find(int fd);
void event_channel_put(struct event_channel *);

/* The program closes the descriptor, which the caller then does: all identifiers of the channel are destroyed. Does
 * nothing when the descriptor is only a copy of the one that was given out. */
void event_channel_close(struct event_channel *, int fd);

/* Before the identifier is destroyed: where it has an event that came a moment ago, the thread that fetches the events
 * of this channel, if there is one, is given up to 10 ms to fetch it. A thread that has learnt of the event by poll(2)
 * would wait in rdma_get_cm_event for one that is gone. Not under a lock. */
void event_channel_let_fetch(struct event_channel *, uint32_t number);

/* Waits for an event, unless the descriptor is set not to: EAGAIN; EINTR. A cancellation point, whose caller ensures
 * that its reference is put back (pthread_cleanup_push). All else here is none. */
int event_channel_wait(struct event_channel *, int fd, struct cm_event *);

#endif
