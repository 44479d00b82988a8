#include "check/destroyed/callers.h"

#include <pthread.h>
#include <stdlib.h>

#include "check/shadow/shadow.h"

_Thread_local struct caller *caller_own __attribute__((tls_model("initial-exec")));

/* The list is under the shadow's lock; no record is ever removed. */
static SLIST_HEAD(, caller) all = SLIST_HEAD_INITIALIZER(all);
static pthread_key_t at_end; /* its destructor runs at the end of a thread */

static void clear(struct caller *caller)
{
    atomic_store(&caller->object, NULL);
    atomic_store(&caller->beside, NULL);
    for (unsigned at = 0; at < CALLERS_OPEN; at++)
        atomic_store(&caller->open[at], NULL);
}

/* A destructor of the program may run after this one and make calls: the thread joins again then. */
static void leave_thread(void *caller)
{
    caller_own = NULL;
    shadow_lock();
    clear(caller);
    ((struct caller *)caller)->thread = 0;
    shadow_unlock();
}

/* Frees the records of other threads, which the child of a fork does not have. */
static void become_child(void)
{
    struct caller *caller;
    SLIST_FOREACH(caller, &all, siblings)
    {
        if (caller == caller_own)
            continue;
        clear(caller);
        caller->thread = 0;
    }
}

void callers_begin(void)
{
    pthread_key_create(&at_end, leave_thread);
    pthread_atfork(NULL, NULL, become_child);
}

static struct caller *find_unused(void)
{
    struct caller *caller;
    shadow_assert_locked();
    SLIST_FOREACH(caller, &all, siblings)
    if (!caller->thread)
        return caller;
    caller = calloc(1, sizeof *caller);
    if (caller)
        SLIST_INSERT_HEAD(&all, caller, siblings);
    return caller;
}

struct caller *callers_join(void)
{
    shadow_lock();
    struct caller *caller = find_unused();
    if (caller)
        caller->thread = (uintptr_t)pthread_self();
    shadow_unlock();
    if (caller && !pthread_setspecific(at_end, caller))
        caller_own = caller;
    return caller_own;
}

void callers_open(enum callers_open which, const void *object)
{
    struct caller *own = caller_own || !object ? caller_own : callers_join();
    if (own)
        atomic_store_explicit(&own->open[which], object, memory_order_relaxed);
}

static const char *const begun_by[CALLERS_OPEN] = {[CALLERS_BATCH] = "ibv_wr_start", [CALLERS_POLL] = "ibv_start_poll"};

static const char *call_on(struct caller *caller, const void *object)
{
    if (atomic_load(&caller->object) == object || atomic_load(&caller->beside) == object)
        return atomic_load(&caller->call);
    for (unsigned at = 0; at < CALLERS_OPEN; at++)
        if (atomic_load(&caller->open[at]) == object)
            return begun_by[at];
    return NULL;
}

const char *callers_other(const void *object)
{
    struct caller *caller;
    shadow_assert_locked();
    SLIST_FOREACH(caller, &all, siblings)
    {
        const char *call = caller == caller_own ? NULL : call_on(caller, object);
        if (call)
            return call;
    }
    return NULL;
}
