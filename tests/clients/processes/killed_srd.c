/* Two processes exchange SENDs, READs and WRITEs over SRD, the queue pairs of EFA; one of them is killed at a random
 * moment, and a new one takes its place: the other goes on with the queue pair that it has. Usage, under a profile of
 * EFA that has WRITEs: killed_srd [ROUNDS [SEED [HOST HOST]]]. With two hosts, which are names for ip-netns(8), a
 * process is also stopped, so that its host is silent, before it has answered anything or later.
 *
 * In each round each work request of the survivor must end once, well or with EFA's code for what happened, and in
 * time; what the dead one knew as done was done, once; the queue pair stays in RTS, and no descriptor is left.
 * Prints a summary; exit status 1 when a survivor hung, or saw something else. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "srd_side.h"

enum {
    LATEST_KILL = 60, /* ms after the beginning */
    OLD_LIFE = 64,    /* one round of these kills the process that lives for long */
    SETTLED = 4,      /* rounds after which a process has what it needs, */
    SOCKETS = 16,     /* and more sockets that it may open between hosts */
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* ---- a round ---- */

/* Waits for the next process of the other chair. False: it is killed before both can talk, or there is no other. */
static bool meet(struct side *side)
{
    struct chair *theirs = side->theirs;
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    while (!shared->end && (theirs->life == side->life || (theirs->ready != theirs->life && !theirs->dead))) {
        side_take(side, 0.001);
        if (now_seconds() > deadline)
            die("no other process comes");
    }
    side->life = theirs->life;
    return !shared->end && theirs->ready == side->life;
}

/* Answers the other one's READs and WRITEs from now on, and waits until it does the same. */
static void greet(struct side *side)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = side->theirs->address.gid}};
    memset(side->arrived, 0, sizeof side->arrived);
    memset((void *)side->mine->succeeded, 0, sizeof side->mine->succeeded);
    side->sequence = 0;
    side->heard = side->failed = false;
    side->reused = side->used[side->theirs->address.qp_num];
    side->used[side->theirs->address.qp_num] = true;
    for (double deadline = now_seconds() + PATIENCE_SECONDS; !side->ah && now_seconds() < deadline;)
        side->ah = ibv_create_ah(side->endpoint.pd, &attr); /* the interface is new, and its address may not be ready */
    if (!side->ah)
        die("no address handle");
    side->mine->met = side->life;
    while (side->theirs->met != side->mine->life && !side->theirs->dead)
        side_take(side, 0.001);
}

/* Until work fails. Where the other is killed just as all is done, what is posted next fails. */
static void talk(struct side *side)
{
    double deadline = 0;
    while (!side->failed) {
        while (side->outstanding < DEPTH)
            side_post(side);
        int found = side_take(side, PATIENCE_SECONDS);
        if (!found && !side->theirs->dead)
            die("hangs: no completion, and the other lives");
        if (side->theirs->dead && !deadline)
            deadline = now_seconds() + PATIENCE_SECONDS;
        if (deadline && now_seconds() > deadline)
            die("nothing fails, and the other is dead");
    }
}

static void end_all(struct side *side)
{
    double deadline = now_seconds() + PATIENCE_SECONDS;
    while (side->outstanding) {
        side_take(side, 0.1);
        if (now_seconds() > deadline)
            die("%u work requests never end", side->outstanding);
    }
    while (side_take(side, 0)) /* what had arrived */
        ;
}

static void judge(const struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (ibv_query_qp(side->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_RTS)
        die("the queue pair left RTS");
    bool met = side->theirs->met == side->mine->life; /* otherwise it sent to another one */
    for (uint32_t number = 0; number < KNOWN; number++)
        if (met && side->theirs->succeeded[number] && side->arrived[number] != 1)
            die("message %u arrived %u times, and its sender was told that it arrived", number, side->arrived[number]);
}

static unsigned count_descriptors(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2)
        die("no /proc/self/statm");
    fclose(file);
    return resident;
}

/* The helper thread has a file open now and then, so what is too much is counted again. */
static unsigned count_settled(unsigned most)
{
    double deadline = now_seconds() + PATIENCE_SECONDS;
    unsigned descriptors = count_descriptors();
    while (descriptors > most && now_seconds() < deadline) {
        usleep(1000);
        descriptors = count_descriptors();
    }
    return descriptors;
}

/* Rings of the dead are given back, at the latest when the next one comes: a survivor has descriptors as
 * after its first rounds. Its memory grows by what it knows of the numbers that it sent to, and of those that sent. */
static void count_what_is_left(struct side *side)
{
    long pages = resident_pages(), grown;
    if (++side->rounds == SETTLED) {
        side->descriptors = count_descriptors();
        side->pages = pages;
    }
    if (side->rounds < SETTLED)
        return;
    unsigned most = side->descriptors + (shared->hosts[0] ? SOCKETS : 0), descriptors = count_settled(most);
    if (descriptors > most)
        die("%u descriptors after %u rounds, and %u after %d", descriptors, side->rounds, side->descriptors, SETTLED);
    grown = (pages - side->pages) * sysconf(_SC_PAGESIZE) / 1024;
    if (side->rounds > shared->longest) {
        shared->longest = side->rounds;
        shared->grown = grown;
    }
}

static void end_round(struct side *side)
{
    shared->during[side->theirs->how]++;
    shared->reused += side->reused;
    judge(side);
    count_what_is_left(side);
}

static int live(unsigned self)
{
    static struct side side;
    if (shared->hosts[self])
        endpoint_go_to(shared->hosts[self]);
    side_open(&side, self);
    if (side.mine->how == NEVER_ANSWERS)
        raise(SIGSTOP); /* it is called ready once it is silent */
    side.mine->ready = side.mine->life;
    while (!shared->end) {
        bool met = meet(&side);
        if (met) {
            greet(&side);
            talk(&side);
            end_all(&side);
            end_round(&side);
        }
        shared->before += !met && !shared->end;
        side.mine->done = side.life;
    }
    side_close(&side);
    return 0;
}

/* ---- the parent ---- */

static pid_t processes[2]; /* 0: there is none */

static void begin(unsigned chair, enum how how)
{
    struct chair *place = &shared->chairs[chair];
    if (processes[chair])
        return;
    place->dead = 0;
    place->met = place->done = 0;
    memset((void *)place->succeeded, 0, sizeof place->succeeded);
    place->how = how == NEVER_ANSWERS ? how : KILLED;
    place->life++;
    processes[chair] = fork();
    if (!processes[chair])
        exit(live(chair));
}

/* False: it ended in another way. */
static bool bury(unsigned chair)
{
    int status = 0;
    kill(processes[chair], SIGKILL);
    waitpid(processes[chair], &status, 0);
    processes[chair] = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* At a random moment of its traffic, or as soon as it has a number. */
static void strike(unsigned victim, enum how how, uint64_t *random)
{
    struct chair *chair = &shared->chairs[victim];
    int status;
    if (how == NEVER_ANSWERS)
        waitpid(processes[victim], &status, WUNTRACED);
    else
        usleep((useconds_t)(next_random(random) % (LATEST_KILL * 1000)));
    chair->how = how;
    chair->dead = now_seconds();
    if (how == NEVER_ANSWERS)
        chair->ready = chair->life;
    else
        kill(processes[victim], how == KILLED ? SIGKILL : SIGSTOP);
}

/* False: the survivor has ended, or hangs. */
static bool await_survivor(unsigned survivor)
{
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    for (int status; shared->chairs[survivor].done != shared->chairs[!survivor].life; usleep(500))
        if (waitpid(processes[survivor], &status, WNOHANG) || now_seconds() > deadline)
            return false;
    return true;
}

static bool play_round(uint64_t *random)
{
    enum how how = shared->hosts[0] ? (enum how)(next_random(random) % HOWS) : KILLED;
    unsigned fresh = processes[1] ? 0 : 1, oldest = next_random(random) % OLD_LIFE == 0;
    unsigned victim = how == NEVER_ANSWERS ? fresh : !oldest;
    if (processes[0] && processes[1])
        die("nobody is missing");
    begin(!fresh, KILLED);
    begin(fresh, how);
    strike(victim, how, random);
    bool well = await_survivor(!victim);
    if (!well)
        bury(!victim);
    return bury(victim) && well;
}

/* The next process that joins sweeps what the dead have left. */
static void sweep(unsigned chair)
{
    struct endpoint endpoint;
    pid_t process = fork();
    if (process)
        return (void)waitpid(process, NULL, 0);
    if (shared->hosts[chair])
        endpoint_go_to(shared->hosts[chair]);
    endpoint_open(&endpoint, 1);
    endpoint_close(&endpoint);
    exit(0);
}

static bool end_survivors(void)
{
    bool well = true;
    shared->end = true;
    for (unsigned chair = 0; chair < 2; chair++) {
        int status = 0;
        if (processes[chair])
            waitpid(processes[chair], &status, 0);
        well &= !status;
        sweep(chair);
    }
    return well;
}

static void report(int rounds, int wrong, uint64_t seed)
{
    static const char *const names[] = {"killed", "stopped", "that never answered"};
    printf("%d rounds: %d wrong, %u before both were ready", rounds, wrong, shared->before);
    for (int how = 0; how < HOWS; how++)
        if (shared->during[how])
            printf("; %u %s, the last end %.3f s after its post", shared->during[how], names[how],
                   shared->slowest[how]);
    printf("; ends:");
    for (int code = 0; code < CODES; code++)
        if (shared->ends[code])
            printf(" %lu of %d", shared->ends[code], code);
    printf("; %u numbers used again; %ld KiB more after %u rounds of one process; seed %llu\n", shared->reused,
           shared->grown, shared->longest, (unsigned long long)seed);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, wrong = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)getpid(), random = seed;
    setlinebuf(stdout); /* nothing in the buffer when a process is forked */
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("no shared memory");
    if (argc == 5)
        shared->hosts[0] = argv[3], shared->hosts[1] = argv[4];
    for (int round = 0; round < rounds; round++)
        if (!play_round(&random)) {
            printf("round %d of seed %llu is wrong\n", round, (unsigned long long)seed);
            wrong++;
        }
    wrong += !end_survivors();
    report(rounds, wrong, seed);
    return wrong != 0;
}
