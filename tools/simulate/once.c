#include "simulate/once.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "lab/follow_child.h"
#include "lab/spaces.h"
#include "place.h"
#include "prepare.h"
#include "sim/choose.h"
#include "simulate/space.h"
#include "simulate/standstill.h"
#include "simulate/watch.h"
#include "start/become.h"

static const char memory_path[] = "/dev/shm/softverbs-sim";

/* --- the environment of the programs */

/* Payloads move at events alone: a copy by another process would be seen at a moment that the seed does not choose. */
static int set_standards(const struct sim_choice *choice)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, choice->seed);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv(setting_lines[SETTING_DIR].variable);
    return setenv(setting_lines[SETTING_SEED].variable, seed, 0) ||
           setenv(setting_lines[SETTING_DIRECT].variable, "0", 0) ||
           setenv(setting_lines[SETTING_NO_PULL].variable, "1", 0) || setenv(SIM_VARIABLE, memory_path, 1);
}

static int prepare(const struct command *command, const struct sim_choice *choice)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32], why[512];
    if (set_standards(choice))
        return complain_and(EXIT_SELF, "There is not enough memory to prepare the programs' environment.");
    int status = prepare_environment(command, !choice->without_paths);
    if (status)
        return status;
    if (place_libraries(directory, why, sizeof why))
        return complain_and(EXIT_SELF, "%s", why);
    snprintf(path, sizeof path, "%s/libsoftverbs-sim.so", directory);
    if (access(path, R_OK))
        return complain_and(EXIT_SELF, "sim: \"%s\" can't be read: %s. Build or install softverbs again.", path,
                            strerror(errno));
    return prepare_preload(path);
}

/* --- the run */

static struct sim_run *make_run(const struct sim_choice *choice)
{
    int file = open(memory_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct sim_run *run = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, sizeof *run))
        run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (run == MAP_FAILED) {
        complain("sim: The memory of the run can't be made: %s.", strerror(errno));
        return NULL;
    }
    sim_begin(run, choice->seed, choice->strategy, choice->every);
    run->log.wanted = choice->logs;
    if (choice->turns) {
        run->plan.replays = true;
        run->turns.count = choice->turn_count;
        memcpy(run->turns.list, choice->turns, choice->turn_count * sizeof *run->turns.list);
    }
    return run;
}

/* Becomes the program when its parent has written its number down. */
static void become_program(const struct sim_thread *thread, char **words, const struct streams *streams)
{
    while (!__atomic_load_n(&thread->pid, __ATOMIC_ACQUIRE))
        sched_yield();
    streams_take(streams);
    _exit(become(words));
}

static void start(struct sim_run *run, const struct sim_program *program, const struct streams *streams)
{
    struct sim_thread *thread = &run->threads[sim_add(run, 0, program->from)];
    pid_t pid = fork();
    if (!pid)
        become_program(thread, program->words, streams);
    __atomic_store_n(&thread->pid, pid, __ATOMIC_RELEASE);
}

/* All threads of a run share one processor: then giving the token on needs no other to wake up. */
static void use_one_processor(void)
{
    cpu_set_t set, one;
    if (sched_getaffinity(0, sizeof set, &set))
        return;
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &set)) {
            CPU_ZERO(&one);
            CPU_SET(i, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
}

static void keep(const struct sim_run *run, const struct sim_choice *choice, struct once *once)
{
    once->stops = run->counts.stops;
    once->logged = run->log.count;
    memcpy(once->log, run->log.calls, run->log.count * sizeof *run->log.calls);
    if (choice->turns)
        return;
    once->turns_lost = run->turns.lost;
    once->turn_count = run->turns.count;
    memcpy(once->turns, run->turns.list, run->turns.count * sizeof *run->turns.list);
}

static int simulate(const struct command *command, const struct sim_choice *choice, struct once *once)
{
    struct streams streams;
    if (!space_furnish())
        return EXIT_SELF;
    int status = prepare(command, choice);
    struct sim_run *run = status ? NULL : make_run(choice);
    if (!run)
        return status ? status : EXIT_SELF;
    if (!streams_make(&streams))
        return complain_and(EXIT_SELF, "sim: The files for the programs' output can't be made: %s.", strerror(errno));
    use_one_processor();
    personality(ADDR_NO_RANDOMIZE);
    for (unsigned i = 0; i < choice->count; i++)
        start(run, &choice->programs[i], &streams);
    once->end = watch_run(run, choice, &streams);
    standstill_name_unanswered(run);
    once->has_run = true;
    keep(run, choice, once);
    return once->end.status;
}

/* --- from outside */

struct once *once_make(void)
{
    struct once *once = mmap(NULL, sizeof *once, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (once != MAP_FAILED)
        return once;
    complain("sim: The memory of the run can't be made: %s.", strerror(errno));
    return NULL;
}

static void be_quiet(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
}

static int enter(const struct command *command, const struct sim_choice *choice, struct once *once, bool quiet)
{
    if (!spaces_enter(command->name, false))
        return EXIT_SELF;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a new user namespace clears it */
    pid_t child = fork();
    if (!child) {
        if (quiet)
            be_quiet();
        _exit(simulate(command, choice, once));
    }
    return child < 0 ? complain_and(EXIT_SELF, "sim: fork(2): %s.", strerror(errno)) : follow_child(child);
}

pid_t once_begin(const struct command *command, const struct sim_choice *choice, struct once *once, bool quiet)
{
    char self[PLACE_PATH_MAX];
    (void)place_self(self); /* while the path is the one outside */
    once->has_run = false;
    pid_t child = fork();
    if (!child)
        _exit(enter(command, choice, once, quiet));
    if (child < 0)
        complain("sim: fork(2): %s.", strerror(errno));
    return child;
}

int once_run(const struct command *command, const struct sim_choice *choice, struct once *once, bool quiet)
{
    pid_t child = once_begin(command, choice, once, quiet);
    return child < 0 ? EXIT_SELF : follow_child(child);
}

void once_sum_up(const struct sim_choice *choice, const struct once *once)
{
    complain("sim: Seed %" PRIu64 ": %.6f virtual seconds, %" PRIu64 " decisions, %" PRIu64
             " loops stopped, hash %016" PRIx64 ".",
             choice->seed, (double)once->end.now * 1e-9, once->end.decisions, once->stops, once->end.hash);
}
