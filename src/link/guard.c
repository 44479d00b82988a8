#include "link/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/read_clock.h"
#include "base/static_lock.h"
#include "wire/guarded.h"

enum { SIGNALS = 2, ENTRIES = 8, REGIONS = 16, PROTECTORS = 2 };

/* A signal that is guarded, and what the program had set each time that we took it. An entry is written before the
 * kernel knows of it, and only its own handler writes it again. */
static struct guarded_signal {
    int number;
    unsigned taken; /* entries in use; under `looking` */
    struct sigaction program[ENTRIES];
} guarded_signals[SIGNALS] = {{.number = SIGSEGV}, {.number = SIGBUS}};

LOCK_STATIC(looking, LOCK_INNERMOST);
static _Atomic uint32_t looked; /* tick of the last look */
static struct guard_region *_Atomic regions[REGIONS];
static const struct guard_protector *_Atomic protectors[PROTECTORS]; /* of the checker, of queues in memory; or NULL */
_Thread_local struct guard_thread guard_thread __attribute__((tls_model("initial-exec"))) = {.looked = UINT32_MAX};

/* --- faults */

/* A signal that a process sends has a code of 0 or less; a machine check that asks for no action may interrupt any
 * instruction. */
static bool is_fault(int number, const siginfo_t *info)
{
    return info->si_code > 0 && !(number == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* Uses the bare system call: ThreadSanitizer would take mmap(3) for a write that races with users of the memory. */
static bool replace(struct guard_region *region)
{
    enum { PROTECTION = PROT_READ | PROT_WRITE, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
#ifdef SYS_mmap2
    enum { MAP_CALL = SYS_mmap2 };
#else
    enum { MAP_CALL = SYS_mmap };
#endif
    int saved = errno;
    bool replaced = syscall(MAP_CALL, region->start, region->length, PROTECTION, FLAGS, -1, 0) != -1;
    if (replaced)
        region->lost(region);
    errno = saved;
    return replaced;
}

/* A thread that faults in a region uses it, so the region is not removed meanwhile. */
static bool replace_region(int number, const siginfo_t *info)
{
    for (unsigned i = 0; number == SIGBUS && i < REGIONS; i++) {
        struct guard_region *region = atomic_load(&regions[i]);
        if (region && (uintptr_t)info->si_addr - (uintptr_t)region->start < region->length)
            return replace(region);
    }
    return false;
}

#ifdef GUARDED_BY_JUMP

/* Clears the top byte of an address on arm64: it is the program's, and the address of a fault does not have it. */
static uintptr_t guard_untagged(uintptr_t at)
{
#ifdef __aarch64__
    return at & UINTPTR_MAX >> 8;
#else
    return at;
#endif
}

/* For an address that no memory can have, the processor reports a fault without an address (SI_KERNEL). */
static bool is_accessed(const struct guarded_section *section, const siginfo_t *info)
{
    uintptr_t at = guard_untagged((uintptr_t)info->si_addr);
    return info->si_code == SI_KERNEL || at - guard_untagged(section->at[0]) < section->length[0] ||
           at - guard_untagged(section->at[1]) < section->length[1];
}

static const void *program_instruction(const siginfo_t *info, const ucontext_t *context)
{
    if (guarded_section && is_accessed(guarded_section, info))
        return NULL;
#if defined __aarch64__
    return (const void *)context->uc_mcontext.pc;
#elif defined __x86_64__
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#else
    return (const void *)1; /* not known */
#endif
}

static bool recover(const siginfo_t *info, ucontext_t *context)
{
    struct guarded_section *section = guarded_section;
    if (!section || !is_accessed(section, info))
        return false;
    guarded_section = NULL;
    pthread_sigmask(SIG_SETMASK, &context->uc_sigmask, NULL);
    siglongjmp(section->leave, 1);
}

#else

static const void *program_instruction(const siginfo_t *info, const ucontext_t *context)
{
    uintptr_t instruction = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return guarded_go_on_at(instruction) ? NULL : (const void *)instruction;
}

static bool recover(const siginfo_t *info, ucontext_t *context)
{
    greg_t *instruction = &context->uc_mcontext.gregs[REG_RIP];
    uintptr_t go_on = guarded_go_on_at((uintptr_t)*instruction);
    if (!go_on)
        return false;
    *instruction = (greg_t)go_on;
    return true;
}

#endif

/* Sends the signal again, with all that was known about it. It waits until our handler returns, and then ends the
 * process at the instruction where it happened. */
static void end_by_default(int number, siginfo_t *info)
{
    int saved = errno;
    sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), number, info);
    errno = saved;
}

/* Ignoring a fault is not possible, ignoring what a process sent is. */
static void call_program(struct sigaction *program, int number, siginfo_t *info, void *context)
{
    struct sigaction action = *program;
    if (action.sa_flags & (int)SA_RESETHAND)
        program->sa_handler = SIG_DFL;
    if (action.sa_handler == SIG_DFL || (action.sa_handler == SIG_IGN && is_fault(number, info)))
        end_by_default(number, info);
    else if (action.sa_handler == SIG_IGN)
        return;
    else if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
}

static bool is_opened(int number, const siginfo_t *info, const ucontext_t *context)
{
    bool opened = false;
    for (unsigned i = 0; i < PROTECTORS && !opened && number == SIGSEGV && info->si_code == SEGV_ACCERR; i++) {
        const struct guard_protector *protector = atomic_load(&protectors[i]);
        opened = protector && protector->open(info->si_addr, program_instruction(info, context));
    }
    return opened;
}

static void guard_enter(unsigned entry, int number, siginfo_t *info, void *context)
{
    if (!is_fault(number, info) ||
        !(is_opened(number, info, context) || replace_region(number, info) || recover(info, context)))
        call_program(&guarded_signals[number == SIGBUS].program[entry], number, info, context);
}

#define ENTRY(index)                                                                                                   \
    static void enter_##index(int number, siginfo_t *info, void *context)                                              \
    {                                                                                                                  \
        guard_enter(index, number, info, context);                                                                     \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)

static void (*const entries[ENTRIES])(int, siginfo_t *, void *) = {enter_0, enter_1, enter_2, enter_3,
                                                                   enter_4, enter_5, enter_6, enter_7};

/* --- taking the signals */

static bool is_ours(const struct sigaction *action)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == entries[i])
            return true;
    return false;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

static bool is_function(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Returns the entry that has this action, or a free one for it; ENTRIES: all are taken. A program that sets one
 * handler after another and restores them needs only a few. */
static unsigned choose(struct guarded_signal *signal, const struct sigaction *found)
{
    unsigned entry = 0;
    while (entry < signal->taken && !is_same(&signal->program[entry], found))
        entry++;
    if (entry == signal->taken && entry < ENTRIES)
        signal->program[signal->taken++] = *found;
    return entry;
}

/* The program's handler is called within ours, so ours has its mask and its stack. Where the program has no handler,
 * ours uses the thread's alternate stack, on which some runtimes (Go) insist. */
static void guard_take(struct guarded_signal *signal, const struct sigaction *found)
{
    enum { KEPT = SA_ONSTACK | SA_NODEFER | SA_RESTART };
    unsigned entry = choose(signal, found);
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
    if (entry == ENTRIES)
        return;
    if (is_function(found)) {
        ours.sa_flags = SA_SIGINFO | (found->sa_flags & (int)KEPT);
        ours.sa_mask = found->sa_mask;
    }
    ours.sa_sigaction = entries[entry];
    if (!sigaction(signal->number, &ours, &before) && !is_ours(&before) && !is_same(&before, found))
        signal->program[entry] = before; /* set just now */
}

static void look(void)
{
    struct sigaction found;
    for (unsigned i = 0; i < SIGNALS; i++)
        if (!sigaction(guarded_signals[i].number, NULL, &found) && !is_ours(&found))
            guard_take(&guarded_signals[i], &found);
}

void guard_start(void)
{
    lock_take(&looking);
    look();
    lock_release(&looking);
}

void guard_protect_by(const struct guard_protector *by)
{
    bool added = false;
    for (unsigned i = 0; i < PROTECTORS && !added; i++) {
        const struct guard_protector *none = NULL;
        added = atomic_compare_exchange_strong(&protectors[i], &none, by) || none == by;
    }
    guard_start();
}

uintptr_t guard_protected_end(uintptr_t at)
{
    uintptr_t end = 0;
    for (unsigned i = 0; i < PROTECTORS && !end; i++) {
        const struct guard_protector *protector = atomic_load(&protectors[i]);
        end = protector ? protector->end(at) : 0;
    }
    return end;
}

/* --- regions */

static bool exchange(struct guard_region *from, struct guard_region *to)
{
    for (unsigned i = 0; i < REGIONS; i++) {
        struct guard_region *found = from;
        if (atomic_compare_exchange_strong(&regions[i], &found, to))
            return true;
    }
    return false;
}

bool guard_region_add(struct guard_region *region)
{
    guard_start();
    return exchange(NULL, region);
}

void guard_region_remove(struct guard_region *region)
{
    exchange(region, NULL);
}

/* --- threads */

/* A look of another thread that is under way does as well. */
bool guard_begin_anew(uint32_t tick)
{
    sigset_t open, before;
    if (guard_thread.closes)
        return false;
    if (atomic_exchange_explicit(&looked, tick, memory_order_relaxed) != tick && lock_try(&looking)) {
        look();
        lock_release(&looking);
    }
    sigemptyset(&open);
    for (unsigned i = 0; i < SIGNALS; i++)
        sigaddset(&open, guarded_signals[i].number);
    pthread_sigmask(SIG_UNBLOCK, &open, &before);
    for (unsigned i = 0; i < SIGNALS; i++)
        guard_thread.closes |= (uint8_t)(sigismember(&before, guarded_signals[i].number) << i);
    if (!guard_thread.closes)
        guard_thread.looked = tick;
    return guard_thread.closes;
}

void guard_end_opened(void)
{
    sigset_t closed;
    sigemptyset(&closed);
    for (unsigned i = 0; i < SIGNALS; i++)
        if (guard_thread.closes & 1 << i)
            sigaddset(&closed, guarded_signals[i].number);
    guard_thread.closes = 0;
    pthread_sigmask(SIG_BLOCK, &closed, NULL);
}

/* The coarse clock is up to 4 ms behind the clock of the other calls. A thread that makes both kinds of calls would
 * find the tick changed each time, so a look in the next tick counts as well. */
bool guard_begin_now(void)
{
    uint32_t tick = (uint32_t)(read_clock(CLOCK_MONOTONIC_COARSE) >> GUARD_TICK);
    return guard_thread.looked - tick > 1 && guard_begin_anew(tick);
}

bool guard_copy(void *to, const void *from, size_t length)
{
    bool opened = guard_begin_now();
    bool copied = guarded_copy(to, from, length);
    guard_end(opened);
    return copied;
}
