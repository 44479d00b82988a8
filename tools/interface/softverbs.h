/* Faults from inside a program, or from a test beside it: rules of scripts for a process that runs under softverbs, and
 * waiting for what happens in it. For C and C++; nothing is linked. Without softverbs each function does nothing and
 * returns ENOSYS at once, so that a program may keep its calls where there are adapters.
 *
 *     softverbs_inject(0, "when ibv_reg_mr, nth 3: error ENOMEM", NULL, 0);
 *
 *     softverbs_watch(server, "work, opcode RDMA_WRITE, nth 3");
 *     softverbs_wait(server, "work, opcode RDMA_WRITE, nth 3", 1, 5000);
 *
 * docs/reference/scripts.md of softverbs has the language of rules. A process is named by its number; 0 is this
 * process. It must have opened a device, or the answer is ESRCH; rules that are to hold sooner are for `softverbs run
 * --script`. Thread-safe; not for signal handlers. */
#ifndef SOFTVERBS_H
#define SOFTVERBS_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of the library, by the name softverbs_interface_1. Use the functions below. */
struct softverbs_interface {
    int (*inject)(long pid, const char *rules, char *why, size_t size);
    int (*clear)(long pid);
    int (*watch)(long pid, const char *event);
    int (*count)(long pid, const char *event, unsigned long long *times);
    int (*wait)(long pid, const char *event, unsigned long long times, int milliseconds);
};

static inline const struct softverbs_interface *softverbs_find(void)
{
    static const struct softverbs_interface none = {NULL, NULL, NULL, NULL, NULL}, *found;
    const struct softverbs_interface *now = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (!now) {
        void *library = dlopen("libsoftverbs-test.so.1", RTLD_NOW | RTLD_LOCAL);
        now = library ? (const struct softverbs_interface *)dlsym(library, "softverbs_interface_1") : NULL;
        now = now ? now : &none;
        __atomic_store_n(&found, now, __ATOMIC_RELEASE);
    }
    return now == &none ? NULL : now;
}

/* 1: this process runs under softverbs (`softverbs run` or `env`); 0: the functions below do nothing. */
static inline int softverbs_is_here(void)
{
    return softverbs_find() != NULL;
}

/* Adds rules, with line ends between them, to the process's rules; they hold when it returns. 0; EINVAL: not rules, and
 * `why`, if it is not NULL, is a sentence that says what is wrong; E2BIG: more than 1000 bytes; ENOSPC: the process has
 * had 256 rules; ESRCH: it has no device open; ETIMEDOUT: it does not answer; ENOSYS. */
static inline int softverbs_inject(long pid, const char *rules, char *why, size_t size)
{
    const struct softverbs_interface *interface = softverbs_find();
    return interface ? interface->inject(pid, rules, why, size) : ENOSYS;
}

/* Takes all rules of the process back, with the events that were watched. */
static inline int softverbs_clear(long pid)
{
    const struct softverbs_interface *interface = softverbs_find();
    return interface ? interface->clear(pid) : ENOSYS;
}

/* Counts such events from now on. `event` is the part of a rule between "when" and its colon, such as "completion, on
 * qp 0x12". Errors as of softverbs_inject; E2BIG: more than 100 bytes. */
static inline int softverbs_watch(long pid, const char *event)
{
    const struct softverbs_interface *interface = softverbs_find();
    return interface ? interface->watch(pid, event) : ENOSYS;
}

/* *times: how often the event has happened. ENOENT: it is not watched. */
static inline int softverbs_count(long pid, const char *event, unsigned long long *times)
{
    const struct softverbs_interface *interface = softverbs_find();
    return interface ? interface->count(pid, event, times) : ENOSYS;
}

/* Waits until the event has happened `times` times. ETIMEDOUT: it has not in time; ESRCH: the process ended. */
static inline int softverbs_wait(long pid, const char *event, unsigned long long times, int milliseconds)
{
    const struct softverbs_interface *interface = softverbs_find();
    return interface ? interface->wait(pid, event, times, milliseconds) : ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
