/* Reading another process's memory in one copy. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/payload.h"

/* A word in the other process whose value is known here. It is read along with the data, and shows that the process ID
 * is that process's: still, and in this PID namespace. */
struct cma_proof {
    pid_t pid;
    uint64_t address, value;
};

/* Returns true if peers access memory here by themselves (link/direct.h): false under SOFTVERBS_NO_PULL=1,
 * SOFTVERBS_DIRECT=0 or SOFTVERBS_ADVERSE. */
bool cma_is_direct(void);

/* Returns true if this process may and can read the other's memory. False under SOFTVERBS_NO_PULL=1, too, and for
 * process ID 0: a process that is not visible in this PID namespace, or that must not be read. */
bool cma_works(const struct cma_proof *);

/* Copies the bytes from `offset` of the remote pieces on into `to`. False: some byte could not be read; errno is
 * EFAULT where the kernel found a page of either side that it can't copy. */
bool cma_remote(const struct cma_proof *, const struct payload *, uint32_t offset, const struct iovec *to,
                uint32_t count);

/* Does what cma_remote does, for pieces in this process. */
bool cma_local(const struct payload *, uint32_t offset, const struct iovec *to, uint32_t count);

/* Lets the other processes of this user read this one's memory where Yama's ptrace_scope 1 (the default of some
 * distributions) forbids that to siblings, until cma_withdraw. Nothing is opened to other users; but processes of
 * this user may attach as debuggers meanwhile, as Yama knows no lesser right, and what the program had set by
 * PR_SET_PTRACER is lost. So it is called once a peer is there to read. False, and then cma_withdraw must not be
 * called: with SOFTVERBS_NO_PULL=1, and in a program that runs with more rights than its user has (set-uid, file
 * capabilities). Calls are counted. Thread-safe. */
bool cma_permit(void);
void cma_withdraw(void);
