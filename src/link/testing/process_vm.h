/* Conditions of tests of code that reads or writes the memory of another process, or vouches for one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Skips the test where process_vm_readv does not work: under qemu-user, or where seccomp refuses it. The tests would
 * wait for a transfer that never happens. */
static inline void need_process_vm(void)
{
    char from = 1, to = 0;
    struct iovec source = {&from, 1}, target = {&to, 1};
    if (process_vm_readv(getpid(), &target, 1, &source, 1, 0) != 1)
        skip();
}

/* Returns true if the kernel reports a thread's end (link/voucher.h). False under qemu-user, or where seccomp refuses
 * the call. */
static inline bool has_robust_lists(void)
{
    void *head;
    size_t size;
    return !syscall(SYS_get_robust_list, 0, &head, &size) && !syscall(SYS_set_robust_list, head, size);
}
