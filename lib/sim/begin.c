/* The beginning of a program in a run: before its main, after the constructors of its libraries. Those see the
 * machine's own clock. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answer.h"
#include "clock.h"
#include "names.h"
#include "signals.h"
#include "stack.h"
#include "token.h"

enum { EXIT_SELF = 125 };

static struct sim_run *map_run(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    struct sim_run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return run == MAP_FAILED || run->layout != SIM_LAYOUT ? NULL : run;
}

static bool is_here(const struct sim_thread *thread)
{
    return __atomic_load_n((const unsigned *)&thread->state, __ATOMIC_ACQUIRE) != SIM_FREE &&
           __atomic_load_n(&thread->pid, __ATOMIC_ACQUIRE) == token_process;
}

/* After an exec the other threads of the process have ended: the one that called it has the token. */
static unsigned find_number(void)
{
    unsigned found = SIM_NONE;
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (is_here(&token_run->threads[i]) && (found == SIM_NONE || token_run->threads[i].state == SIM_RUNNING))
            found = i;
    for (unsigned i = 0; found != SIM_NONE && i < SIM_THREADS; i++)
        if (i != found && is_here(&token_run->threads[i]))
            token_run->threads[i].state = SIM_FREE;
    return found;
}

static void refuse(const char *why)
{
    fprintf(stderr, "softverbs: sim: %s\n", why);
    _exit(EXIT_SELF);
}

static void enter(void)
{
    struct sim_thread *thread = token_thread();
    thread->tid = token_process;
    thread->name[0] = '\0';
    uint64_t before = signals_block();
    if (!answer_prepare())
        refuse(
            "This kernel, or a filter, forbids syscall user dispatch (prctl(2), Linux 5.11 and later), without which "
            "no program can be simulated.");
    if (thread->state != SIM_RUNNING)
        token_await();
    else
        atomic_store(&thread->order, SIM_NO_ORDER);
    answer_begin();
    signals_restore(before);
    signals_admit();
}

static __attribute__((constructor)) void begin(void)
{
    const char *path = getenv(SIM_VARIABLE);
    struct sim_run *run = path ? map_run(path) : NULL;
    if (!run)
        return;
    token_process = getpid();
    token_run = run;
    unsigned number = find_number();
    if (number == SIM_NONE)
        return;
    stack_prepare();
    names_prepare();
    if (!clock_replace_vdso())
        refuse("The kernel does not let a program change its vDSO, so it would read the machine's own clock.");
    token_number = number;
    enter();
}
