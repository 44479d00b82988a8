/* Where the threads of another process are seen. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/peer_threads.h"

enum { COMPUTES = 1, LOOKS = 2 }; /* priorities: who looks, and who dozes, waits for nobody who computes */

/* Programs of this machine take the processor from a thread that has no priority of this kind. Where the kernel refuses
 * it, a test waits longer for a moment in which two threads run. */
static void take_priority(int priority)
{
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){priority});
}

static pid_t start(void (*what)(void))
{
    pid_t child = fork();
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    what();
    _exit(0);
}

static void end(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void spin(void)
{
    for (volatile uint64_t i = 0;; i++)
        ;
}

static void compute(void)
{
    take_priority(COMPUTES);
    spin();
}

static void sleep_long(void)
{
    for (;;)
        syscall(SYS_ppoll, NULL, 0L, NULL, NULL, 0L);
}

static bool comes_to_be(pid_t child, long call)
{
    for (int i = 0; i < 2000; i++, nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL))
        if (peer_threads_all(child, call))
            return true;
    return false;
}

static void who_runs_is_not_seen_and_who_is_stopped_is(void **state)
{
    int status;
    pid_t child = start(spin);
    for (int i = 0; i < 100; i++)
        assert_false(peer_threads_all(child, SYS_process_vm_writev));
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(peer_threads_all(child, SYS_process_vm_writev));
    end(child);
}

static void who_waits_in_the_call_is_not_elsewhere(void **state)
{
    pid_t child = start(sleep_long);
    assert_true(comes_to_be(child, SYS_process_vm_writev));
    for (int i = 0; i < 100; i++)
        assert_false(peer_threads_all(child, SYS_ppoll));
    end(child);
}

static void nothing_is_known_of_a_process_that_is_not_there(void **state)
{
    pid_t child = start(spin);
    end(child);
    assert_false(peer_threads_all(child, SYS_process_vm_writev));
    assert_false(peer_threads_all(0, SYS_process_vm_writev));
}

/* --- a thread that runs */

static bool is_seen_in_user_mode(pid_t child, int looks)
{
    bool seen = false;
    for (int i = 0; i < looks && !seen; i++)
        seen = peer_threads_runs(child, SYS_process_vm_writev);
    return seen;
}

/* A look fails where the child is not on a processor meanwhile. */
static bool comes_to_be_seen(pid_t child)
{
    bool seen = false;
    struct timespec start, now;
    take_priority(LOOKS);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        seen = is_seen_in_user_mode(child, 10);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!seen && (double)(now.tv_sec - start.tv_sec) < PATIENCE_SECONDS);
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    return seen;
}

static void *sleep_in_a_thread(void *argument)
{
    sleep_long();
    return NULL;
}

static void *spin_in_a_thread(void *argument)
{
    spin();
    return NULL;
}

static void spin_beside_one_that_sleeps(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_in_a_thread, NULL);
    compute();
}

/* Sleeps as a thread does that waits for a lock. */
static void *doze_in_a_thread(void *argument)
{
    take_priority(LOOKS);
    while (!argument)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    return NULL;
}

static void spin_beside_one_that_dozes(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, doze_in_a_thread, NULL);
    compute();
}

static void spin_in_two_threads(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, spin_in_a_thread, NULL);
    spin();
}

static void who_computes_is_seen_in_user_mode(void **state)
{
    void (*const these[])(void) = {compute, spin_beside_one_that_sleeps, spin_beside_one_that_dozes};
    for (unsigned i = 0; i < 3; i++) {
        pid_t child = start(these[i]);
        assert_true(comes_to_be_seen(child));
        end(child);
    }
}

/* Nothing shows which of the two threads has executed what. */
static void of_two_that_run_nothing_is_said(void **state)
{
    pid_t child = start(spin_in_two_threads);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* nothing outside shows that both threads run */
    assert_false(is_seen_in_user_mode(child, 10));
    end(child);
}

static atomic_uint *stage; /* odd: in the call, or about to enter or leave it */

/* Makes a call that takes seconds, in which the thread runs all the time. */
static void write_long(void)
{
    enum { SIZE = 16 << 20, PIECES = 256 };
    static char from[SIZE], to[SIZE];
    static struct iovec local[PIECES], remote[PIECES];
    for (unsigned i = 0; i < PIECES; i++) {
        local[i] = (struct iovec){from, SIZE};
        remote[i] = (struct iovec){to, SIZE};
    }
    for (;;) {
        atomic_fetch_add(stage, 1);
        /* A sanitizer's function of this name reads the gigabytes in user mode before the call. */
        if (syscall(SYS_process_vm_writev, getpid(), local, PIECES, remote, PIECES, 0UL) < 0)
            _exit(1);
        atomic_fetch_add(stage, 1);
    }
}

/* Wakes up all the time, and executes something. */
static void *wake_often(void *argument)
{
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
        for (volatile unsigned i = 0; i < 10000; i++)
            ;
    }
    return NULL;
}

static void write_long_beside_one_that_wakes(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wake_often, NULL);
    write_long();
}

/* A look counts that began and ended within one call. */
static void ensure_unseen(void (*within_the_call)(void), int looks)
{
    struct iovec none = {NULL, 0};
    if (process_vm_writev(getpid(), &none, 1, &none, 1, 0) < 0)
        skip();
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = start(within_the_call);
    int within = 0;
    for (int i = 0; i < 20 * looks && within < looks; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        unsigned before = atomic_load(stage);
        bool seen = peer_threads_runs(child, SYS_process_vm_writev);
        if (before % 2 == 0 || atomic_load(stage) != before)
            continue;
        assert_false(seen);
        within++;
    }
    assert_true(within > 0);
    end(child);
    munmap(stage, sizeof *stage);
}

static void who_runs_within_the_call_is_not_seen_in_user_mode(void **state)
{
    ensure_unseen(write_long, 10);
}

static void others_that_wake_are_not_taken_for_who_is_in_the_call(void **state)
{
    ensure_unseen(write_long_beside_one_that_wakes, 50);
}

static void nobody_is_seen_in_user_mode_who_is_not_there(void **state)
{
    pid_t child = start(spin);
    end(child);
    assert_false(peer_threads_runs(child, SYS_process_vm_writev));
    assert_false(peer_threads_runs(0, SYS_process_vm_writev));
}

TESTS(who_runs_is_not_seen_and_who_is_stopped_is, who_waits_in_the_call_is_not_elsewhere,
      who_computes_is_seen_in_user_mode, of_two_that_run_nothing_is_said,
      who_runs_within_the_call_is_not_seen_in_user_mode, others_that_wake_are_not_taken_for_who_is_in_the_call,
      nobody_is_seen_in_user_mode_who_is_not_there, nothing_is_known_of_a_process_that_is_not_there)
