/* Functions that are caught by their names: a thread's beginning, locks that make no system call while they are free,
 * clocks, and the rounds of polls, which softverbs reports (abi/simulated.c). */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "answer.h"
#include "clock.h"
#include "names.h"
#include "raw.h"
#include "signals.h"
#include "sim/choose.h"
#include "token.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*lock)(pthread_mutex_t *);
    int (*unlock)(pthread_mutex_t *);
    int (*try_spin)(pthread_spinlock_t *);
} own;

void names_prepare(void)
{
    own.create = dlsym(RTLD_NEXT, "pthread_create");
    own.lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    own.unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    own.try_spin = dlsym(RTLD_NEXT, "pthread_spin_trylock");
}

/* A constructor of another library may call before this library's. */
#define OWN(name) (own.name ? own.name : (names_prepare(), own.name))

/* --- threads */

struct beginning {
    void *(*run)(void *);
    void *argument;
    unsigned number;
};

static void *begin_thread(void *argument)
{
    struct beginning beginning = *(struct beginning *)argument;
    uint64_t before = signals_block();
    token_number = beginning.number;
    token_thread()->tid = (pid_t)RAW(gettid);
    token_await();
    answer_begin();
    signals_restore(before);
    signals_admit();
    free(argument); /* not before: it may take a lock, and its calls must not be caught while signals are blocked */
    return beginning.run(beginning.argument);
}

static int create_simulated(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    struct beginning *beginning = malloc(sizeof *beginning);
    unsigned number = beginning ? sim_add(token_run, token_process, 0) : SIM_NONE;
    if (number == SIM_NONE) {
        free(beginning);
        return 11; /* EAGAIN, as pthread_create(3) has it */
    }
    *beginning = (struct beginning){run, argument, number};
    token_run->threads[number].call = TOKEN_BEGIN;
    answer_pause_catching();
    int error = OWN(create)(thread, attributes, begin_thread, beginning);
    answer_resume_catching();
    if (error) {
        token_run->threads[number].state = SIM_FREE;
        free(beginning);
    }
    token_point_outside();
    return error;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    if (!token_is_simulated())
        return OWN(create)(thread, attributes, run, argument);
    return create_simulated(thread, attributes, run, argument);
}

/* --- locks */

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    token_point_outside();
    return OWN(lock)(mutex);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int error = OWN(unlock)(mutex);
    token_point_outside();
    return error;
}

/* Its holder may have given the token away. */
EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    while (OWN(try_spin)(lock))
        token_spin_outside(TOKEN_SPIN_LOCK);
    return 0;
}

/* --- clocks, where the vDSO can't be changed */

EXPORT int clock_gettime(clockid_t clock, struct timespec *to)
{
    int error = -clock_read(clock, to);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

EXPORT int gettimeofday(struct timeval *to, void *zone)
{
    return clock_read_time_of_day(to, zone);
}

EXPORT time_t time(time_t *to)
{
    return clock_read_seconds(to);
}

/* --- softverbs */

void softverbs_sim_round(unsigned found);
EXPORT void softverbs_sim_round(unsigned found)
{
    if (!token_is_simulated() || token_context)
        return;
    if (!found)
        return token_spin_outside(TOKEN_ROUND);
    token_moved();
    token_point_outside();
}
