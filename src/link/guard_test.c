/* Faults: ours end in false, the program's end as if we were not there. Cases that may end the process run in a child.
 */
#include "link/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/guarded.h"

enum { PAGE = 4096, FINE = 0, WRONG = 7 };

static nanos now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (nanos)now.tv_sec * NANOS_SECOND + (nanos)now.tv_nsec;
}

/* Two pages of memory, and a third that is gone. */
enum gone { UNMAPPED, PROTECTED, READ_ONLY, TRUNCATED, GONE_KINDS };

static char *map_before(enum gone gone)
{
    int file = memfd_create("guard test", MFD_CLOEXEC);
    assert_true(file >= 0 && !ftruncate(file, 3 * PAGE));
    char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(memory != MAP_FAILED);
    if (gone == UNMAPPED)
        munmap(memory + 2 * PAGE, PAGE);
    else if (gone == TRUNCATED)
        assert_int_equal(ftruncate(file, 2 * PAGE), 0);
    else
        mprotect(memory + 2 * PAGE, PAGE, gone == PROTECTED ? PROT_NONE : PROT_READ);
    close(file);
    return memory;
}

static void unmap(char *memory)
{
    munmap(memory, 3 * PAGE);
}

static const size_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 31, 33, 63, 64, 65, 128, 129, 1000, 2048, 5000, PAGE * 2};

/* Each length, so that its last byte, its first or any between is the first one that is gone. */
static void expect_no_copy(char *memory, char *other, bool readable, size_t length)
{
    char *gone = memory + 2 * PAGE;
    for (size_t inside = 1; inside <= length && inside <= PAGE; inside += 1 + length / 8) {
        assert_false(guarded_copy(gone + inside - length, other, length));
        assert_int_equal(guarded_copy(other, gone + inside - length, length), readable);
    }
    assert_true(guarded_copy(gone - length, other, length));
    assert_true(guarded_copy(other, gone - length, length));
}

static void a_copy_into_or_out_of_what_is_gone_fails(void **state)
{
    guard_start(); /* cmocka has just set its handlers */
    static char other[3 * PAGE];
    for (enum gone gone = 0; gone < GONE_KINDS; gone++) {
        char *memory = map_before(gone);
        bool opened = guard_begin(now());
        for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
            expect_no_copy(memory, other, gone == READ_ONLY, lengths[i]);
        guard_end(opened);
        unmap(memory);
    }
}

static void words_and_atomics_there_fail(void **state)
{
    guard_start(); /* cmocka has just set its handlers */
    for (enum gone gone = 0; gone < GONE_KINDS; gone++) {
        char *memory = map_before(gone);
        uint64_t *word = (uint64_t *)(void *)(memory + 2 * PAGE), found;
        bool opened = guard_begin(now());
        for (unsigned size = 1; size <= 8; size *= 2) {
            assert_false(guarded_store(word, 1, size));
            assert_int_equal(guarded_load(word, size, &found), gone == READ_ONLY);
        }
        assert_false(guarded_fetch_and_add(word, 1, &found));
        assert_false(guarded_compare_and_swap(word, 0, 1, &found));
        assert_false(guarded_is_writable(memory, 2 * PAGE + 1));
        assert_int_equal(guarded_is_readable(memory, 2 * PAGE + 1), gone == READ_ONLY);
        assert_true(guarded_is_readable(memory, 2 * PAGE) && guarded_is_writable(memory, 2 * PAGE));
        guard_end(opened);
        unmap(memory);
    }
}

/* No possible address: another kind of fault, which reports no address. */
static void an_impossible_address_fails(void **state)
{
    guard_start(); /* cmocka has just set its handlers */
    char byte[8];
    void *nowhere = (void *)(uintptr_t)0x8000000000001000;
    assert_false(guard_copy(byte, nowhere, 8));
    assert_false(guard_copy(nowhere, byte, 8));
    assert_false(guard_copy(byte, (void *)16, 1));
}

/* --- the program's own */

static char *bad; /* one page that is gone */
static sigjmp_buf back;
static volatile sig_atomic_t calls, wrong;

static bool fails(void)
{
    char byte;
    return !guard_copy(&byte, bad, 1);
}

static void touch(void)
{
    *(volatile char *)bad = 1;
}

static void handle(int number, siginfo_t *info, void *context)
{
    calls = calls + 1;
    wrong = wrong + (info->si_addr != bad || number != SIGSEGV || !context);
    siglongjmp(back, 1);
}

static void handle_plainly(int number)
{
    calls = calls + 1;
    wrong = wrong + (number != SIGSEGV);
    siglongjmp(back, 1);
}

static void handle_again(int number, siginfo_t *info, void *context)
{
    handle(number, info, context);
}

static void set(void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, NULL);
}

/* The program faults once, which its handler sees once, and no other handler does. */
static bool is_handled(void)
{
    int before = calls;
    if (!sigsetjmp(back, 1))
        touch();
    return calls == before + 1 && !wrong;
}

/* Runs it in a child, which has a clean slate; its exit status, or the signal that ended it + 1000. */
static int run(int (*body)(void))
{
    int status;
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        bad = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _exit(body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void wait_for_a_look(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL); /* longer than the time between two looks */
}

static int set_before(void)
{
    set(handle, 0);
    guard_start();
    return fails() && !calls && is_handled() && fails() && is_handled() ? FINE : WRONG;
}

static void a_handler_that_was_set_before_sees_its_own_faults_only(void **state)
{
    assert_int_equal(run(set_before), FINE);
}

static int set_after(void)
{
    guard_start();
    set(handle, 0);
    wait_for_a_look();
    return fails() && !calls && is_handled() && fails() && is_handled() ? FINE : WRONG;
}

static void one_that_is_set_afterwards_does_too(void **state)
{
    assert_int_equal(run(set_after), FINE);
}

/* The handler that it found and restores is the one that was in charge then. */
static int restore(void)
{
    struct sigaction found, mine = {.sa_sigaction = handle_again, .sa_flags = SA_SIGINFO};
    set(handle, 0);
    guard_start();
    for (int i = 0; i < 50; i++) {
        sigaction(SIGSEGV, &mine, &found);
        wait_for_a_look();
        if (!fails() || !is_handled())
            return WRONG;
        sigaction(SIGSEGV, &found, NULL);
        if (!fails() || !is_handled())
            return WRONG;
    }
    return calls == 100 ? FINE : WRONG;
}

static void a_program_may_restore_what_it_found(void **state)
{
    assert_int_equal(run(restore), FINE);
}

static int plain_handler(void)
{
    signal(SIGSEGV, handle_plainly);
    guard_start();
    return fails() && !calls && is_handled() && fails() ? FINE : WRONG;
}

static void a_handler_without_siginfo_is_called_so(void **state)
{
    assert_int_equal(run(plain_handler), FINE);
}

static char *stack;
static volatile sig_atomic_t place;

static void handle_on_a_stack(int number, siginfo_t *info, void *context)
{
    char *here = __builtin_frame_address(0); /* AddressSanitizer puts variables elsewhere */
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    place = here >= stack && here < stack + SIGSTKSZ;
    wrong = wrong + (!sigismember(&blocked, SIGUSR1) || !sigismember(&blocked, SIGSEGV));
    handle(number, info, context);
}

static bool is_handled_on(bool alternate)
{
    return fails() && is_handled() && place == alternate;
}

static int alternate_stack(void)
{
    stack = malloc(SIGSTKSZ);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = SIGSTKSZ}, NULL);
    set(handle_on_a_stack, SA_ONSTACK);
    guard_start();
    if (!is_handled_on(true))
        return WRONG;
    set(handle_on_a_stack, 0);
    wait_for_a_look();
    return is_handled_on(false) ? FINE : WRONG;
}

static void it_runs_on_the_stack_and_with_the_mask_that_it_asked_for(void **state)
{
    assert_int_equal(run(alternate_stack), FINE);
}

static int reset_hand(void)
{
    set(handle, (int)SA_RESETHAND);
    guard_start();
    if (!fails() || !is_handled() || !fails())
        return WRONG;
    touch();
    return WRONG;
}

static void one_that_asked_to_be_called_once_is_called_once(void **state)
{
    assert_int_equal(run(reset_hand), 1000 + SIGSEGV);
}

static int by_default(void)
{
    guard_start();
    if (fails())
        touch();
    return WRONG;
}

static int by_default_when_sent(void)
{
    guard_start();
    if (fails())
        kill(getpid(), SIGBUS);
    return WRONG;
}

static void without_a_handler_the_signal_ends_the_process(void **state)
{
    assert_int_equal(run(by_default), 1000 + SIGSEGV);
    assert_int_equal(run(by_default_when_sent), 1000 + SIGBUS);
}

static int ignored(void)
{
    signal(SIGSEGV, SIG_IGN);
    guard_start();
    kill(getpid(), SIGSEGV);
    if (fails() && !raise(SIGSEGV))
        touch();
    return WRONG;
}

static void what_is_ignored_is_ignored_but_for_faults(void **state)
{
    assert_int_equal(run(ignored), 1000 + SIGSEGV);
}

/* --- what a debugger, or the writer of a core file, sees of the program's own fault */

enum { UNTRACED = 77 };

static void traced(void)
{
    bad = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, SIG_DFL);
    guard_start();
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(UNTRACED);
    raise(SIGSTOP);
    touch();
    _exit(WRONG);
}

/* The child's instruction, on machines where we know how to ask for it. */
static uint64_t instruction_of(pid_t child)
{
#ifdef __x86_64__
    struct user_regs_struct registers;
    assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
    return registers.rip;
#else
    return 0;
#endif
}

static void the_signal_that_ends_it_tells_the_fault(void **state)
{
    int status, seen = 0;
    uint64_t at = 0;
    siginfo_t info;
    pid_t child = fork();
    if (!child)
        traced();
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == UNTRACED)
        skip(); /* an emulator of processors */
    ptrace(PTRACE_CONT, child, NULL, NULL);
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        assert_int_equal(ptrace(PTRACE_GETSIGINFO, child, NULL, &info), 0);
        assert_int_equal(WSTOPSIG(status), SIGSEGV);
        assert_int_equal(info.si_code, SEGV_ACCERR);
        assert_true(info.si_addr && (uintptr_t)info.si_addr % PAGE == 0);
        if (!seen++)
            at = instruction_of(child);
        assert_int_equal(instruction_of(child), at);
        ptrace(PTRACE_CONT, child, NULL, WSTOPSIG(status));
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(seen, 2); /* the fault's signal, and the one that our handler sent */
}

/* --- threads that block */

static bool blocks(void)
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS);
}

static void *fail_blocked(void *argument)
{
    bool *fine = argument, opened, nested;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    *fine = fails() && blocks() && fails() && blocks();
    opened = guard_begin(now());
    nested = guard_begin(now());
    *fine = *fine && fails();
    guard_end(nested);
    *fine = *fine && fails() && !blocks();
    guard_end(opened);
    *fine = *fine && blocks();
    return NULL;
}

static int in_a_thread_that_blocks(void)
{
    pthread_t thread;
    bool fine;
    guard_start();
    pthread_create(&thread, NULL, fail_blocked, &fine);
    pthread_join(thread, NULL);
    return fine ? FINE : WRONG;
}

static void a_thread_that_blocks_the_signal_is_opened_meanwhile(void **state)
{
    assert_int_equal(run(in_a_thread_that_blocks), FINE);
}

TESTS(a_copy_into_or_out_of_what_is_gone_fails,
      words_and_atomics_there_fail,
      an_impossible_address_fails,
      a_handler_that_was_set_before_sees_its_own_faults_only,
      one_that_is_set_afterwards_does_too,
      a_program_may_restore_what_it_found,
      a_handler_without_siginfo_is_called_so,
      it_runs_on_the_stack_and_with_the_mask_that_it_asked_for,
      one_that_asked_to_be_called_once_is_called_once,
      without_a_handler_the_signal_ends_the_process,
      what_is_ignored_is_ignored_but_for_faults,
      the_signal_that_ends_it_tells_the_fault,
      a_thread_that_blocks_the_signal_is_opened_meanwhile)
