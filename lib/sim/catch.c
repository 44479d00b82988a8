/* System calls of the program become a SIGSYS by syscall user dispatch (Linux 5.11; prctl(2)), unless their instruction
 * is in this library. The kernel forgets it at exec, and a new thread or child begins without it. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#include "answer.h"
#include "clock.h"
#include "counter.h"
#include "file.h"
#include "raw.h"
#include "signals.h"
#include "token.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH /* Debian 12's headers have it */
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2 /* why there is a SIGSYS; sigaction(2) has SYS_SECCOMP, the other cause */
#endif

enum { CALLS = 512, INSTRUCTION_BYTES = 2, NOT_SIMULATED = 0, CAUGHT = 1 };

static THREAD_LOCAL volatile char selector; /* the kernel reads it at each call */
static volatile char first_selector;        /* of the first thread, until its thread-local variables are set up */
static uintptr_t text_begin, text_bytes;

/* --- the table of calls */

enum traits { POINT = 1, QUIET = 2, LOOKS = 4, COUNTS = 8, IS_UNANSWERED = 16 };

struct rule {
    long (*answer)(struct caught *); /* NULL: the kernel answers */
    unsigned traits;
    unsigned unanswered; /* place in the run's counts */
};

enum {
#define UNANSWERED(name) PLACE_##name,
#include "sim/calls.def"
};

static const struct rule rules[CALLS] = {
#define ANSWERED(name, traits) [SYS_##name] = {answer_##name, traits, 0},
#define PASSED(name, traits) [SYS_##name] = {NULL, traits, 0},
#define UNANSWERED(name) [SYS_##name] = {NULL, IS_UNANSWERED, PLACE_##name},
#include "sim/calls.def"
};

static void log_call(const struct caught *call, long result)
{
    if (token_run->log.wanted && token_run->log.count < SIM_LOGGED)
        token_run->log.calls[token_run->log.count++] =
            (struct sim_logged){token_run->now, result, token_thread()->serial, (uint16_t)call->number};
}

static long answer(struct caught *call)
{
    static const struct rule plain = {0};
    const struct rule *rule = call->number >= 0 && call->number < CALLS ? &rules[call->number] : &plain;
    struct sim_thread *thread = token_thread();
    token_run->counts.calls++;
    if (rule->traits & IS_UNANSWERED)
        token_run->unanswered[rule->unanswered]++;
    if (rule->traits & POINT)
        token_point();
    thread->call = (uint16_t)call->number;
    thread->arguments[0] = (uint64_t)call->argument[0];
    thread->arguments[1] = (uint64_t)call->argument[1];
    const long *argument = call->argument;
    uint64_t before = token_run->now;
    long result = rule->answer ? rule->answer(call)
                               : RAW_CALL(call->number, argument[0], argument[1], argument[2], argument[3], argument[4],
                                          argument[5], 0);
    log_call(call, result);
    if ((rule->traits & LOOKS && result == -EAGAIN) || (rule->traits & COUNTS && !result))
        token_found_nothing(before);
    else if (result >= 0 && !(rule->traits & QUIET))
        token_acted();
    return result;
}

/* --- handlers */

/* The return from a handler that was set before calls were caught. */
static void return_from_handler(uintptr_t stack)
{
    __asm__ volatile("mov %0, %%rsp\n"
                     "mov $15, %%eax\n"
                     "syscall\n"
                     :
                     : "r"(stack)
                     : "memory");
}

/* Where a call ends whose answer read or wrote an address that is not the program's. */
static THREAD_LOCAL void *way_out[5];

static long answer_or_fault(struct caught *call)
{
    if (!__builtin_setjmp(way_out))
        return answer(call);
    file_drop_kept();
    return -EFAULT;
}

static void on_call(int signal, siginfo_t *info, void *context)
{
    if (info->si_code != SYS_USER_DISPATCH)
        return signals_pass_fault(signal, info, context);
    ucontext_t *here = context, *outer = token_context;
    greg_t *registers = here->uc_mcontext.gregs;
    struct caught call = {.number = info->si_syscall,
                          .argument = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX], registers[REG_R10],
                                       registers[REG_R8], registers[REG_R9]},
                          .context = here};
    if (call.number == SYS_rt_sigreturn)
        return_from_handler((uintptr_t)registers[REG_RSP]);
    (void)token_is_simulated(); /* which remembers the number of the first thread */
    token_context = here;
    long result = answer_or_fault(&call);
    token_context = outer;
    registers[REG_RAX] = result == ANSWER_RESTART ? call.number : result;
    if (result == ANSWER_RESTART)
        registers[REG_RIP] -= INSTRUCTION_BYTES;
}

/* A signal that another has sent is the program's, after the call. */
static void put_off(int signal, ucontext_t *context)
{
    sigaddset(&context->uc_sigmask, signal);
    long self = RAW(gettid);
    RAW(tgkill, token_process, self, signal);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    if (token_context && info->si_code <= 0)
        return put_off(signal, context);
    if (token_context)
        __builtin_longjmp(way_out, 1);
    bool may_be_counter = info->si_code == SI_KERNEL && token_is_simulated();
    if (!may_be_counter || !clock_answer_counter(context))
        signals_pass_fault(signal, info, context);
}

/* This thread has run for long without a call: the launcher, the first process of the run, says so. */
static void on_stop(int signal, siginfo_t *info, void *context)
{
    enum { LAUNCHER = 1 };
    if (info->si_pid != LAUNCHER)
        return signals_pass_fault(signal, info, context);
    if (!token_is_simulated() || token_run->current != token_number || token_thread()->state != SIM_RUNNING)
        return;
    token_run->counts.stops++;
    token_thread()->call = TOKEN_MEMORY;
    token_wait(SIM_STOPS, SIM_NEVER, 0);
}

/* --- beginning */

/* The segment with code of this library, by its own headers: the dynamic linker may not be ready for questions. */
static void find_text(void)
{
    extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
    uintptr_t begin = (uintptr_t)&__ehdr_start;
    __asm__("" : "+r"(begin)); /* to the compiler it is the place of the header alone */
    const ElfW(Phdr) *part = (const void *)(begin + ((const ElfW(Ehdr) *)begin)->e_phoff);
    for (int i = 0; i < ((const ElfW(Ehdr) *)begin)->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && part[i].p_flags & PF_X) {
            text_begin = begin + part[i].p_vaddr;
            text_bytes = part[i].p_memsz;
        }
}

void counter_catch(bool catches)
{
    RAW(prctl, PR_SET_TSC, catches ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
}

/* The answer moves the run's clock, which to the compiler the instruction alone does not. */
void counter_look(void)
{
    uint64_t before = token_run->now;
    __asm__ volatile("rdtsc" ::: "rax", "rdx", "memory");
    token_run->counter_is_real = token_run->now == before;
}

bool answer_is_own(uintptr_t address)
{
    return address - text_begin < text_bytes;
}

static bool dispatch(volatile char *by)
{
    return !RAW(prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, text_begin, text_bytes, by);
}

bool answer_prepare(void)
{
    find_text();
    signals_install(SIGSYS, on_call);
    signals_install(SIGSEGV, on_fault);
    signals_install(SIGNALS_STOP, on_stop);
    first_selector = NOT_SIMULATED;
    return dispatch(&first_selector);
}

void answer_begin_first(void)
{
    counter_catch(true);
    first_selector = CAUGHT;
}

void answer_begin(void)
{
    counter_catch(true);
    dispatch(&selector);
    selector = CAUGHT;
}

/* Only the first thread has the other selector, and while it has, no other one begins or shows its stack. */
void answer_pause_catching(void)
{
    selector = first_selector = NOT_SIMULATED;
}

void answer_resume_catching(void)
{
    selector = first_selector = CAUGHT;
}
