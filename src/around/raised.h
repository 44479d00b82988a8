/* Asynchronous events of contexts that have a descriptor in front of the library's (library/front.h): those that rules
 * raise, and the library's own, which a thread takes. Functions that call the library hold no lock meanwhile.
 * Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "calls/calls.h"

struct raised_context;
struct raised_event;
TAILQ_HEAD(raised_list, raised_event);

/* An object that is being destroyed: the library waits for the acknowledgement of its events, which come no more. */
struct raised_leaving {
    SLIST_ENTRY(raised_leaving) next;
    const void *object;
    struct raised_list lost; /* these events, without those of the device */
};

/* The functions of the library. Before the others here. */
void raised_begin(const struct calls *library);

/* The context is the program's from now on; NULL: nothing to do. Without a descriptor or memory no rule raises events
 * there, and the log says so. */
void raised_adopt(struct ibv_context *);

/* Around the call that closes it. NULL: it has no descriptor of ours. */
struct raised_context *raised_begin_close(const struct ibv_context *);
void raised_end_close(struct raised_context *, bool closed);

/* Between these two the library finds its own descriptor. NULL as above. */
struct raised_context *raised_lend(const struct ibv_context *);
void raised_return(struct raised_context *);

/* Raises an event in each context of the device, or for an object. */
void raised_of_device(const struct ibv_device *, enum ibv_event_type);
void raised_of_object(const struct ibv_context *, const struct ibv_async_event *);

/* The devices that are open meet the rules from the place `from` on (script/decide.h). */
void raised_meet_open(unsigned from);

/* As ibv_get_async_event(3) and ibv_ack_async_event(3). Waiting is a cancellation point. */
int raised_get(struct ibv_context *, struct ibv_async_event *);
void raised_acknowledge(struct ibv_async_event *);

/* Around the call that destroys `object` of the struct. The first waits until the program has acknowledged the events
 * that were made up; false: the context has no descriptor of ours, and the second is not called. Where the object
 * stays, what it has lost meanwhile comes. */
bool raised_begin_leaving(const struct ibv_context *, struct raised_leaving *);
void raised_end_leaving(const struct ibv_context *, struct raised_leaving *, bool stays);
