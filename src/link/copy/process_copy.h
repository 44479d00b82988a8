/* process_vm_readv(2) and process_vm_writev(2), which return the bytes that were copied or -errno, and leave errno
 * alone. On x86-64 the system call is made here: the function of the C library would add a return, and after a
 * system call each return is mispredicted (docs/evidence/one-sided.md). */
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>

/* The model checker replaces both functions. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(process_vm_readv)
static inline long process_copy(long call, pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count)
{
    register unsigned long fourth __asm__("r10") = (unsigned long)remote;
    register unsigned long fifth __asm__("r8") = remote_count;
    register unsigned long flags __asm__("r9") = 0;
    long done;
    __asm__ volatile("syscall"
                     : "=a"(done)
                     : "0"(call), "D"((long)pid), "S"(local), "d"(local_count), "r"(fourth), "r"(fifth), "r"(flags)
                     : "rcx", "r11", "memory");
    return done;
}
#else
static inline long process_copy(long call, pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count)
{
    int kept = errno;
    ssize_t done = call == SYS_process_vm_readv ? process_vm_readv(pid, local, local_count, remote, remote_count, 0)
                                                : process_vm_writev(pid, local, local_count, remote, remote_count, 0);
    long result = done < 0 ? -errno : done;
    errno = kept;
    return result;
}
#endif
