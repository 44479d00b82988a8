/* Where the threads of another process are, and whether they run. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Returns true if each thread of the process was seen outside of this system call at some time during this function:
 * stopped (SIGSTOP, a debugger), ended, frozen before the call, or within another call. A running thread can't be seen.
 * False, too, if this can't be found out: no /proc, or a process of another user. Thread-safe. */
bool peer_threads_all(pid_t, long call);

/* Returns true if each thread of the process was outside of this call at some time while this function ran, which takes
 * some 120 ms. It is for running threads, which can't be seen as waiting or stopped ones can. But the kernel counts the
 * time in user mode, and when that grows a thread has been outside. The count is exact for a whole process only: for a
 * thread, /proc computes it from samples, and it grows by a tick now and then while the thread is in the kernel. So it
 * is used only if it grew while all threads but one slept in other calls. False if others ran each time that it grew,
 * or the count can't be read. Thread-safe. */
bool peer_threads_runs(pid_t, long call);

/* Returns true if no process has this number here. Thread-safe. */
bool peer_threads_nobody(pid_t);

/* Returns true if the process is stopped (SIGSTOP, a debugger). False without /proc, and for a process that is not
 * visible here. Thread-safe. */
bool peer_threads_is_stopped(pid_t);
