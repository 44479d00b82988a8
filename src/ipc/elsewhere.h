/* Where the threads of another process are, and whether they go on. */
#ifndef IPC_ELSEWHERE_H
#define IPC_ELSEWHERE_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if each thread of the process was seen, at some time during this call, outside of this system call:
 * stopped (SIGSTOP, a debugger), ended, frozen before it, or within another one. A running thread can't be seen. False
 * too when this can't be found out: no /proc, or a process of another user. Thread-safe. */
bool elsewhere_all(pid_t, long call);

/* A running thread cannot be seen outside of a call as a waiting or stopped one can. But the kernel counts what it
 * executes in user mode, so when that grows it has been outside. True: each thread of the process was outside of this
 * call at some time while this function ran, which takes some 120 ms. The kernel's count is exact for a whole process
 * only: for a thread, /proc computes it from samples, and it grows by a tick now and then while the thread is in the
 * kernel. So the count is used where it grew while all threads but one slept in other calls. False where others ran
 * each time that it grew, or the count can't be read. Thread-safe. */
bool elsewhere_runs(pid_t, long call);

/* Returns true if there is no process of this number here. Thread-safe. */
bool elsewhere_nobody(pid_t);

/* Returns true if the process is stopped (SIGSTOP, a debugger). False without /proc, and for a process that is not seen
 * here. Thread-safe. */
bool elsewhere_is_stopped(pid_t);

#endif
