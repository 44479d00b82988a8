/* The memory of a simulated run (`softverbs sim`), which its launcher makes and the library in each program maps
 * (lib/sim). The programs' threads share one token, and only its holder writes here; while no thread has it, the
 * launcher does. So there are no locks, and only the words by which the token goes on are atomic. All programs of a
 * run belong to the user who runs it and can change each other by it, so nothing here is checked against them.
 *
 * Times are virtual nanoseconds since the run began. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SIM_LAYOUT 2
#define SIM_NEVER UINT64_MAX
#define SIM_VARIABLE "SOFTVERBS_SIM" /* of the environment: the path of the memory */

enum {
    SIM_THREADS = 512,
    SIM_NONE = SIM_THREADS, /* in place of the number of a thread */
    SIM_TIMERS = 256,
    SIM_KEPT = 16,         /* descriptors that a waiting thread keeps open */
    SIM_NAME = 16,         /* as prctl(2) has it */
    SIM_TURNS = 1 << 20,   /* choices that are written down */
    SIM_LOGGED = 1 << 20,  /* calls that are logged */
    SIM_UNANSWERED = 64,   /* calls that the library passes on though they may wait */
    SIM_EXIT_DEADLOCK = 3, /* exit statuses of the command */
    SIM_EXIT_LIVELOCK = 4,
    SIM_EXIT_LIMIT = 124,
};

enum sim_state { SIM_FREE, SIM_READY, SIM_RUNNING, SIM_WAITING };

/* When a thread that waits runs again, besides its deadline and signals. */
enum sim_wait {
    SIM_TRIES,  /* as soon as a thread has acted: it tries its call again */
    SIM_SPINS,  /* likewise, or where a poll found something */
    SIM_SLEEPS, /* when it is woken */
    SIM_STOPS,  /* in a loop over memory: when another thread has run */
};

/* Of a debugger: no process is to be seen; it has not begun; it has begun, and waits until the debugger is attached; it
 * would go on, as the debugger has let it; it goes on. */
enum sim_debug { SIM_NO_DEBUG, SIM_DEBUG_WANTED, SIM_DEBUG_BEGUN, SIM_DEBUG_ATTACHED, SIM_DEBUG_ASKS, SIM_DEBUGGED };

/* The launcher's orders to a thread that waits for the token. */
enum sim_order { SIM_NO_ORDER, SIM_RUN, SIM_SHOW_STACK };

struct sim_thread {
    _Atomic uint32_t order; /* enum sim_order; a futex */
    enum sim_state state;
    enum sim_wait wait;
    uint32_t serial; /* the number of threads that began before it, plus 1 */
    pid_t pid, tid;  /* tid 0: it has not begun */
    uint64_t deadline;
    uint64_t since; /* when it began to wait */
    uint64_t seen;  /* the count that SIM_TRIES, SIM_SPINS and SIM_STOPS compare: sim_count() when it began to wait */
    uint64_t key;   /* of the futex for which it sleeps; 0: no futex */
    bool woken, signalled;
    uint32_t clock_reads; /* in a row, with no call between */
    uint32_t fruitless;   /* polls and yields in a row */
    uint64_t priority;    /* SIM_PRIORITIES: the highest runs */
    int kept[SIM_KEPT];   /* second descriptors of the files for which it waits; 0: no descriptor */
    uint16_t call;        /* in the table of sim/calls.def */
    uint64_t arguments[2];
    char name[SIM_NAME];
};

struct sim_timer {
    pid_t pid;          /* 0: free */
    int descriptor;     /* -1: SIGALRM */
    uint64_t at, every; /* `every` 0: once */
};

/* A choice that another thread got than the one that comes first without a seed. */
struct sim_turn {
    uint32_t choice; /* the number of choices before it */
    uint32_t serial; /* of the thread */
};

/* A call that was answered. */
struct sim_logged {
    uint64_t now;
    int64_t result;
    uint32_t serial;
    uint16_t call;
};

enum sim_strategy { SIM_UNIFORM, SIM_PRIORITIES, SIM_STARVATION, SIM_STRATEGIES };

/* How the seed chooses; sim_begin draws it. */
struct sim_plan {
    enum sim_strategy strategy;
    uint32_t every;       /* at one in so many scheduling points the token goes on; 0: at no point */
    uint64_t next_change; /* SIM_PRIORITIES: the running thread gets the lowest priority at this point; */
    uint32_t changes;     /* so many changes are left */
    uint32_t starved;     /* SIM_STARVATION: serial of the thread that does not run */
    uint64_t starved_until;
    bool replays; /* the turns are read instead of drawn */
};

struct sim_counts {
    uint64_t decisions, switches, calls, points, jumps, stops, forced;
};

struct sim_run {
    uint32_t layout;
    uint64_t seed, dice, hash, now;
    struct sim_plan plan;
    uint64_t acts;                     /* what was done to descriptors, locks of files and processes */
    uint64_t moves;                    /* what memory saw: a poll that found something, a thread that was woken */
    uint64_t turns_run;                /* decisions for threads that do not loop over memory */
    uint64_t quiet_count, quiet_since; /* acts and moves, and since when they are so many */
    uint32_t current, serials;
    bool over;                 /* no thread can run, and nothing is due */
    _Atomic uint32_t launcher; /* a futex: the launcher is wanted */
    pid_t carrier;             /* the process that carries frames between hosts, which does not end; 0: one host */
    struct {
        pid_t pid, tid;    /* tid 0: a process */
    } ended;               /* ends, and the launcher gives the token on afterwards; pid 0: none does */
    _Atomic bool thawed;   /* the run is over, and threads that are told to go on need no token */
    bool counter_is_real;  /* the machine lets no program catch reads of the time stamp counter */
    bool unsettled;        /* a process has ended, whose connections may still end */
    uint64_t draws, ports; /* how often numbers and ports were drawn */
    struct sim_counts counts;
    struct sim_thread threads[SIM_THREADS];
    struct sim_timer timers[SIM_TIMERS];
    struct {
        _Atomic uint32_t state; /* enum sim_debug; a futex */
        pid_t process;          /* 0: the first with a program of this name */
        char name[SIM_NAME];
    } debug;
    uint32_t choices;
    struct {
        uint32_t count, next; /* the next one that is read */
        bool lost;            /* there were more than SIM_TURNS */
        struct sim_turn list[SIM_TURNS];
    } turns;
    uint32_t unanswered[SIM_UNANSWERED]; /* by the place in sim/calls.def's list of UNANSWERED */
    struct {
        bool wanted;
        uint32_t count; /* at most SIM_LOGGED */
        struct sim_logged calls[SIM_LOGGED];
    } log;
};
