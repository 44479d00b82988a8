/* Queues that a program drives by its driver's library, past libibverbs. What libmlx5 and libefa make for a program
 * passes the layers as the call of libibverbs that makes such an object. Where they give it the memory of a queue, the
 * layers see no work there any more: the log says so once for each queue, and the checker follows it no longer. */
#pragma once

#include "around/library/frame.h"
#include "calls/calls.h"
#include "check/shadow/shadow.h"

/* Puts the functions that make such objects into the bottom, before adopt_begin. Once. */
void driven_begin(struct calls *bottom);

/* Leads the names of these libraries to the functions in front of them, if the process has the libraries by now:
 * libibverbs loads them with its drivers. For programs that find them by dlsym(3). NULL: nothing does yet. Thread-safe.
 */
extern void (*driven_lead)(void);

/* A function of a driver's library that a thread has called. */
struct driven_asked {
    void *own;
    uint32_t number;
    enum frame_call instead; /* the call of libibverbs */
    const char *function;
    void *(*make)(void *object, void *attr, const struct driven_asked *);
};

/* The next object that this thread makes by `instead` is made by this function; NULL: by libibverbs. */
void driven_ask(const struct driven_asked *);

/* A queue of this address was destroyed. */
void driven_end(const void *handle);

/* The function has given the program the memory of this queue, unless `handle` is NULL. Thread-safe. */
void driven_give(enum shadow_kind, void *handle, uint32_t number, const char *function);
