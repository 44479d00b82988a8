/* Where the threads of another process are, and whether they go on. */
#ifndef IPC_ELSEWHERE_H
#define IPC_ELSEWHERE_H

#include <stdbool.h>
#include <sys/types.h>

/* Was each thread of the process seen, at some time during this call, outside of this system call: stopped (SIGSTOP, a
 * debugger), ended, frozen before it, or within another one? A thread that runs can't be seen. False too when that
 * can't be told: no /proc, or another's. Thread-safe. */
bool elsewhere_all(pid_t, long call);

/* A thread that runs cannot be seen outside of a call as one that waits or is stopped can. But the kernel counts what
 * it executes in user mode, so when that grows it has been outside. True: each thread of the process was outside of
 * this call at some time while this function ran, which takes some 120 ms.
 *
 * The kernel tells that time exactly for a whole process only: for a thread, /proc computes it from samples, and it
 * grows by a tick now and then while the thread is in the kernel. So it is believed where it grew while all threads but
 * one slept in other calls. False where others ran each time that it grew, or it cannot be told. Thread-safe. */
bool elsewhere_runs(pid_t, long call);

/* Is there no process of this number here? Thread-safe. */
bool elsewhere_nobody(pid_t);

/* Is the process stopped (SIGSTOP, a debugger)? No, without /proc, and of a process that is not seen here. Thread-safe.
 */
bool elsewhere_is_stopped(pid_t);

#endif
