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
#include "simulate/debug.h"
#include "simulate/space/hosts.h"
#include "simulate/space/space.h"
#include "simulate/standstill.h"
#include "simulate/watch.h"
#include "start/become.h"

enum { HOSTS_FROM = 1000000 /* ns: the frames are carried before the programs begin */ };

static const char *memory_path(const struct sim_choice *choice)
{
    return choice->network ? HOSTS_MEMORY : "/dev/shm/softverbs-sim";
}

/* --- the environment of the programs */

/* Payloads move at events alone: a copy by another process would be seen at a moment that the seed does not choose.
 * Numbers by the seed are refused on a network, where the chance that makes them is the seed's, too. */
static int set_standards(const struct sim_choice *choice)
{
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, choice->seed);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv(setting_lines[SETTING_DIR].variable);
    return (!choice->network && setenv(setting_lines[SETTING_SEED].variable, seed, 0)) ||
           setenv(setting_lines[SETTING_DIRECT].variable, "0", 0) ||
           setenv(setting_lines[SETTING_DOORBELLS].variable, "signal", 0) || /* a fault would wait with the token */
           setenv(setting_lines[SETTING_NO_PULL].variable, "1", 0) || setenv(SIM_VARIABLE, memory_path(choice), 1);
}

static int prepare(const struct command *command, const struct sim_choice *choice)
{
    char directory[PLACE_PATH_MAX], path[PLACE_PATH_MAX + 32], why[512];
    if (set_standards(choice))
        return complain_and(EXIT_SELF, "There is not enough memory to prepare the programs' environment.");
    /* Programs on hosts are prepared where they run. */
    int status = choice->network ? 0 : prepare_environment(command, !choice->without_paths);
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
    int file = open(memory_path(choice), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
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
    debug_want(run, choice);
    if (choice->turns) {
        run->plan.replays = true;
        run->turns.count = choice->turn_count;
        memcpy(run->turns.list, choice->turns, choice->turn_count * sizeof *run->turns.list);
    }
    return run;
}

/* The parts of a run that its programs need. */
struct stage {
    struct sim_run *run;
    const struct lab_plan *plan; /* NULL: one host */
    struct streams streams;
};

static int fail_again(int error)
{
    return complain_and(EXIT_SELF, "sim: This command can't be run again: %s.", strerror(error));
}

/* softverbs on, which is simulated itself, as it draws numbers of its host. */
static int become_program(const struct stage *stage, const struct sim_program *program)
{
    enum { BEFORE = 4 };
    unsigned count = 0;
    while (program->words[count])
        count++;
    char **words = stage->plan ? calloc(count + BEFORE + 1, sizeof *words) : NULL;
    if (!words)
        return become(program->words);
    words[0] = "softverbs";
    words[1] = "on";
    words[2] = (char *)stage->plan->hosts[program->host];
    words[3] = "--";
    memcpy(words + BEFORE, program->words, count * sizeof *words);
    return fail_again(place_execute(words));
}

/* Starts a process, which becomes its program when its number has been written down. NULL: the carrier of frames. */
static void start(struct stage *stage, const struct sim_program *program)
{
    uint64_t from = !program ? 0 : program->from + (stage->plan ? HOSTS_FROM : 0);
    struct sim_thread *thread = &stage->run->threads[sim_add(stage->run, 0, from)];
    pid_t pid = fork();
    if (!pid) {
        while (!__atomic_load_n(&thread->pid, __ATOMIC_ACQUIRE))
            sched_yield();
        streams_take(&stage->streams);
        _exit(program ? become_program(stage, program) : fail_again(hosts_become_carrier(stage->plan)));
    }
    if (!program)
        stage->run->carrier = pid;
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
    once->counter_is_real = run->counter_is_real;
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
    static struct stage stage;
    struct joined hosts = {0};
    stage.plan = choice->network ? choice->network->plan : NULL;
    if (choice->network ? !hosts_make(&hosts, choice->network) : !space_furnish())
        return EXIT_SELF;
    debug_keep(choice);
    int status = prepare(command, choice);
    struct sim_run *run = stage.run = status ? NULL : make_run(choice);
    if (!run)
        return status ? status : EXIT_SELF;
    if (!streams_make(&stage.streams))
        return complain_and(EXIT_SELF, "sim: The files for the programs' output can't be made: %s.", strerror(errno));
    use_one_processor();
    personality(ADDR_NO_RANDOMIZE);
    if (stage.plan)
        start(&stage, NULL);
    for (unsigned i = 0; i < choice->count; i++)
        start(&stage, &choice->programs[i]);
    once->end = watch_run(run, choice, &stage.streams);
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
    int status = child < 0 ? EXIT_SELF : follow_child(child);
    if (choice->gdb)
        debug_take_terminal();
    return status;
}

void once_sum_up(const struct sim_choice *choice, const struct once *once)
{
    complain("sim: Seed %" PRIu64 ": %.6f virtual seconds, %" PRIu64 " decisions, %" PRIu64
             " loops stopped, hash %016" PRIx64 ".%s",
             choice->seed, (double)once->end.now * 1e-9, once->end.decisions, once->stops, once->end.hash,
             once->counter_is_real
                 ? " This machine does not let a program catch reads of the time stamp counter: a run of programs that "
                   "read it need not repeat."
                 : "");
}
