/* The beginning of a program in a run: when the dynamic linker has relocated this library, before it relocates the
 * program and before the constructors of all libraries, which read clocks. The way in is the resolver of an indirect
 * function. No function of the C library that makes a call is ready then, and variables of threads have no values yet.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "answer.h"
#include "clock.h"
#include "counter.h"
#include "debug.h"
#include "names.h"
#include "raw.h"
#include "signals.h"
#include "stack.h"
#include "token.h"

enum { EXIT_SELF = 125, PATH = 256, STANDARD_ERROR = 2, ENVIRONMENT = 4096 };

/* --- the environment, as the kernel has it */

/* Takes the next letter of the environment. Returns whether `path` is whole: the value of SIM_VARIABLE. */
struct reader {
    size_t matched, length; /* letters of the name that matched, SIZE_MAX: another name; letters of the value */
    char path[PATH];
};

static bool take_letter(struct reader *reader, char letter)
{
    static const char name[] = SIM_VARIABLE "=";
    if (reader->matched == sizeof name - 1) {
        reader->path[reader->length] = letter;
        reader->length += reader->length < PATH - 1;
        return !letter;
    }
    if (!letter)
        reader->matched = 0;
    else if (reader->matched != SIZE_MAX)
        reader->matched = letter == name[reader->matched] ? reader->matched + 1 : SIZE_MAX;
    return false;
}

static bool read_path(struct reader *reader)
{
    char piece[ENVIRONMENT];
    bool found = false;
    long file = RAW(open, "/proc/self/environ", O_RDONLY | O_CLOEXEC), length;
    *reader = (struct reader){0};
    while (file >= 0 && !found && (length = RAW(read, file, piece, sizeof piece)) > 0)
        for (long i = 0; i < length && !found; i++)
            found = take_letter(reader, piece[i]);
    if (file >= 0)
        RAW(close, file);
    return found;
}

/* --- the run */

static struct sim_run *map_run(const char *path)
{
    long file = RAW(open, path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    long memory = RAW(mmap, 0, sizeof(struct sim_run), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    RAW(close, file);
    struct sim_run *run = memory < 0 && memory > -4096 ? NULL : (struct sim_run *)memory;
    return run && run->layout == SIM_LAYOUT ? run : NULL;
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
    RAW(write, STANDARD_ERROR, why, strlen(why));
    RAW(exit_group, EXIT_SELF);
}

static void enter(void)
{
    struct sim_thread *thread = token_thread();
    thread->tid = token_process;
    thread->name[0] = '\0';
    uint64_t before = signals_block();
    clock_replace_vdso();
    if (!answer_prepare())
        refuse(
            "softverbs: sim: This kernel, or a filter, forbids syscall user dispatch (prctl(2), Linux 5.11 and later), "
            "without which no program can be simulated.\n");
    if (thread->state != SIM_RUNNING)
        token_await();
    else
        atomic_store(&thread->order, SIM_NO_ORDER);
    debug_begin(false);
    answer_begin_first();
    signals_restore(before);
    signals_admit();
    counter_look();
}

static void begin_early(void)
{
    struct reader reader;
    token_run = read_path(&reader) ? map_run(reader.path) : NULL;
    if (!token_run)
        return;
    token_process = (pid_t)RAW(getpid);
    token_number = token_first = find_number();
    if (token_number != SIM_NONE)
        enter();
}

/* --- ways in */

static void nothing(void)
{
}

static void (*resolve(void))(void)
{
    begin_early();
    return nothing;
}

static void way_in(void) __attribute__((ifunc("resolve")));
static void (*volatile kept)(void) = way_in; /* so that the dynamic linker resolves it */

/* Thread-local variables are set up, and functions of the C library can be called. */
static __attribute__((constructor)) void begin(void)
{
    kept();
    if (!token_is_simulated())
        return;
    token_first = SIM_NONE;
    stack_prepare();
    names_prepare();
    answer_begin();
}
