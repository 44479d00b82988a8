/* Where the threads of another process are. */
#ifndef IPC_ELSEWHERE_H
#define IPC_ELSEWHERE_H

#include <stdbool.h>
#include <sys/types.h>

/* Was each thread of the process seen, at some time during this call, outside of this system call: stopped (SIGSTOP, a
 * debugger), ended, frozen before it, or within another one? A thread that runs can't be seen. False too when that
 * can't be told: no /proc, or another's. Thread-safe. */
bool elsewhere_all(pid_t, long call);

/* Is there no process of this number here? Thread-safe. */
bool elsewhere_nobody(pid_t);

#endif
