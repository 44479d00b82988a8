#include "sim/choose.h"

#include "sim/dice.h"

enum {
    DECISION = 200,    /* ns of virtual time, so that loops end */
    EVERY_LEAST = 4,   /* SIM_UNIFORM */
    EVERY_MOST = 1024, /* also how far apart the changes of SIM_PRIORITIES are at most, in points */
    EVERY_CHANGE = 64,
    CHANGES = 4,
};

#define STARVED_LEAST 1000ull      /* 1 us */
#define STARVED_MOST 2000000000ull /* 2 s */
#define LIVELOCK 300000000000ull   /* 300 s in which all spin and nothing is due */
#define HASH_START 14695981039346656037ull

static uint64_t draw_priority(struct sim_run *run)
{
    return CHANGES + 1 + sim_draw(&run->dice) / 2;
}

void sim_begin(struct sim_run *run, uint64_t seed, enum sim_strategy strategy, uint32_t every)
{
    run->layout = SIM_LAYOUT;
    run->seed = seed;
    run->dice = seed * 0x9e3779b97f4a7c15ull;
    run->hash = HASH_START;
    run->acts = 1;
    run->current = SIM_NONE;
    struct sim_plan *plan = &run->plan;
    plan->strategy = strategy == SIM_STRATEGIES ? (enum sim_strategy)(seed % SIM_STRATEGIES) : strategy;
    plan->every = every ? every : (uint32_t)sim_draw_span(&run->dice, EVERY_LEAST, EVERY_MOST);
    plan->changes = CHANGES;
    plan->next_change = sim_draw_span(&run->dice, 1, EVERY_CHANGE * EVERY_MOST);
}

unsigned sim_add(struct sim_run *run, pid_t pid, uint64_t from)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state == SIM_FREE) {
            run->threads[i] = (struct sim_thread){.state = SIM_READY,
                                                  .pid = pid,
                                                  .serial = ++run->serials,
                                                  .deadline = from,
                                                  .priority = draw_priority(run)};
            return i;
        }
    return SIM_NONE;
}

void sim_remove(struct sim_run *run, pid_t pid, pid_t tid)
{
    for (unsigned i = 0; i < SIM_THREADS; i++) {
        struct sim_thread *thread = &run->threads[i];
        if (thread->pid == pid && (!tid || thread->tid == tid))
            thread->state = SIM_FREE;
        thread->signalled = true;                           /* its parent may have a SIGCHLD */
        thread->woken |= thread->pid == pid && thread->key; /* it may have had a robust mutex */
    }
    for (unsigned i = 0; i < SIM_TIMERS && !tid; i++)
        if (run->timers[i].pid == pid)
            run->timers[i].pid = 0;
    run->unsettled |= !tid;
    run->acts++;
}

uint64_t sim_count(const struct sim_run *run, enum sim_wait wait)
{
    if (wait == SIM_STOPS)
        return run->turns_run;
    return wait == SIM_SPINS ? run->acts + run->moves : run->acts;
}

bool sim_timer_is_due(const struct sim_run *run, pid_t pid)
{
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (run->timers[i].pid == pid && run->timers[i].at <= run->now)
            return true;
    return false;
}

static bool waits_no_longer(const struct sim_run *run, const struct sim_thread *thread)
{
    bool tries = thread->wait != SIM_SLEEPS && thread->seen != sim_count(run, thread->wait);
    return tries || thread->woken || thread->signalled || thread->deadline <= run->now;
}

static bool is_candidate(const struct sim_run *run, const struct sim_thread *thread)
{
    if (thread->state == SIM_READY)
        return thread->deadline <= run->now;
    return thread->state == SIM_WAITING && (waits_no_longer(run, thread) || sim_timer_is_due(run, thread->pid));
}

/* The candidates, in the order of their numbers. */
struct candidates {
    unsigned count;
    uint16_t list[SIM_THREADS];
};

static void find_candidates(const struct sim_run *run, struct candidates *found)
{
    found->count = 0;
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state != SIM_FREE && is_candidate(run, &run->threads[i]))
            found->list[found->count++] = (uint16_t)i;
}

/* --- strategies: each picks one of at least two candidates */

static unsigned pick_uniform(struct sim_run *run, const struct candidates *found)
{
    return found->list[sim_draw(&run->dice) % found->count];
}

static unsigned pick_priority(struct sim_run *run, const struct candidates *found)
{
    unsigned best = found->list[0];
    for (unsigned i = 1; i < found->count; i++)
        if (run->threads[found->list[i]].priority > run->threads[best].priority)
            best = found->list[i];
    return best;
}

static void starve_another(struct sim_run *run)
{
    run->plan.starved = 1 + (uint32_t)(sim_draw(&run->dice) % run->serials);
    run->plan.starved_until = run->now + sim_draw_span(&run->dice, STARVED_LEAST, STARVED_MOST);
}

static unsigned pick_unstarved(struct sim_run *run, const struct candidates *found)
{
    if (run->plan.starved_until <= run->now)
        starve_another(run);
    unsigned picked = pick_uniform(run, found);
    for (unsigned i = 0; i < found->count && run->threads[picked].serial == run->plan.starved; i++)
        picked = found->list[i];
    return picked;
}

/* --- scheduling points: whether the running thread gives the token on */

static bool goes_on_uniformly(struct sim_run *run)
{
    return sim_draw(&run->dice) % run->plan.every != 0;
}

/* As PCT: the running thread gets the lowest priority of all at points that were drawn. */
static bool goes_on_by_priority(struct sim_run *run)
{
    struct sim_plan *plan = &run->plan;
    if (plan->changes && run->counts.points >= plan->next_change) {
        run->threads[run->current].priority = plan->changes--;
        plan->next_change += sim_draw_span(&run->dice, 1, EVERY_CHANGE * EVERY_MOST);
    }
    return false;
}

static const struct strategy {
    unsigned (*pick)(struct sim_run *, const struct candidates *);
    bool (*goes_on)(struct sim_run *);
} strategies[SIM_STRATEGIES] = {
    [SIM_UNIFORM] = {pick_uniform, goes_on_uniformly},
    [SIM_PRIORITIES] = {pick_priority, goes_on_by_priority},
    [SIM_STARVATION] = {pick_unstarved, goes_on_uniformly},
};

/* --- turns */

/* Fair: the next in the order in which threads began. */
static unsigned first_in_turn(const struct sim_run *run, const struct candidates *found)
{
    uint32_t last = run->current == SIM_NONE ? 0 : run->threads[run->current].serial;
    unsigned lowest = SIM_NONE, next = SIM_NONE;
    for (unsigned i = 0; i < found->count; i++) {
        unsigned at = found->list[i];
        uint32_t serial = run->threads[at].serial;
        if (lowest == SIM_NONE || serial < run->threads[lowest].serial)
            lowest = at;
        if (serial > last && (next == SIM_NONE || serial < run->threads[next].serial))
            next = at;
    }
    return next == SIM_NONE ? lowest : next;
}

static void write_turn(struct sim_run *run, uint32_t choice, uint32_t serial)
{
    if (run->turns.count < SIM_TURNS)
        run->turns.list[run->turns.count++] = (struct sim_turn){choice, serial};
    else
        run->turns.lost = true;
}

/* 0: the file has no turn for this choice. */
static uint32_t read_turn(struct sim_run *run, uint32_t choice)
{
    while (run->turns.next < run->turns.count && run->turns.list[run->turns.next].choice < choice)
        run->turns.next++;
    bool here = run->turns.next < run->turns.count && run->turns.list[run->turns.next].choice == choice;
    return here ? run->turns.list[run->turns.next].serial : 0;
}

/* A turn whose thread can't run, in a run that went another way than the one written down, is left out. */
static unsigned replay_turn(struct sim_run *run, const struct candidates *found, uint32_t choice, unsigned usual)
{
    uint32_t serial = read_turn(run, choice);
    for (unsigned i = 0; serial && i < found->count; i++)
        if (run->threads[found->list[i]].serial == serial)
            return found->list[i];
    return usual;
}

/* `usual` has the token without a seed. */
static unsigned take_turn(struct sim_run *run, const struct candidates *found, unsigned usual)
{
    uint32_t choice = run->choices++;
    if (run->plan.replays)
        return replay_turn(run, found, choice, usual);
    unsigned chosen = strategies[run->plan.strategy].pick(run, found);
    if (chosen != usual)
        write_turn(run, choice, run->threads[chosen].serial);
    return chosen;
}

static unsigned decide(struct sim_run *run, unsigned chosen, unsigned among)
{
    struct sim_thread *thread = &run->threads[chosen];
    run->now += DECISION;
    run->counts.decisions++;
    run->counts.forced += among == 1;
    run->counts.switches += chosen != run->current;
    run->turns_run += thread->state != SIM_WAITING || thread->wait != SIM_STOPS;
    run->hash = (run->hash ^ run->now ^ (uint64_t)thread->serial << 48 ^ (uint64_t)among << 40) * 1099511628211ull;
    return chosen;
}

unsigned sim_at_point(struct sim_run *run, unsigned here)
{
    run->counts.points++;
    if (run->plan.replays ? !read_turn(run, run->choices) : strategies[run->plan.strategy].goes_on(run)) {
        run->choices++;
        return here;
    }
    run->threads[here].state = SIM_READY;
    run->threads[here].deadline = 0;
    struct candidates found;
    find_candidates(run, &found);
    unsigned chosen = take_turn(run, &found, here);
    return chosen == here ? here : decide(run, chosen, found.count);
}

/* --- time */

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* The next moment at which something is due; SIM_NEVER: no such moment. */
static uint64_t next_moment(const struct sim_run *run)
{
    uint64_t next = SIM_NEVER;
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state == SIM_READY || run->threads[i].state == SIM_WAITING)
            next = earlier(next, run->threads[i].deadline);
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (run->timers[i].pid)
            next = earlier(next, run->timers[i].at);
    return next;
}

/* A process without a thread that waits, as its only one begins, can't serve its timer. */
static void drop_due_timers(struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (run->timers[i].pid && run->timers[i].at <= run->now)
            run->timers[i].pid = 0;
}

/* A wait with a deadline that began anew meanwhile is one of a thread that looks from time to time. */
static bool only_looks(const struct sim_run *run)
{
    for (unsigned i = 0; i < SIM_THREADS; i++) {
        const struct sim_thread *thread = &run->threads[i];
        bool looks = thread->wait == SIM_SPINS || thread->wait == SIM_STOPS || thread->deadline == SIM_NEVER ||
                     thread->since > run->quiet_since;
        if (thread->state != SIM_FREE && (thread->state != SIM_WAITING || !looks))
            return false;
    }
    for (unsigned i = 0; i < SIM_TIMERS; i++)
        if (run->timers[i].pid)
            return false;
    return true;
}

/* Each thread has looked again and again, and no thread did anything that another can see. */
static bool is_livelock(struct sim_run *run)
{
    uint64_t done = run->acts + run->moves;
    if (done != run->quiet_count) {
        run->quiet_count = done;
        run->quiet_since = run->now;
    }
    return run->now - run->quiet_since > LIVELOCK && only_looks(run);
}

static bool pass_time(struct sim_run *run)
{
    uint64_t next = next_moment(run);
    if (next == SIM_NEVER || is_livelock(run))
        return false;
    if (next <= run->now)
        drop_due_timers(run);
    run->counts.jumps += next > run->now;
    run->now = next > run->now ? next : run->now;
    return true;
}

/* A loop over memory may be a computation that ends by itself: it goes on where no other thread can. */
static void find_stopped(struct sim_run *run, struct candidates *found)
{
    for (unsigned i = 0; i < SIM_THREADS; i++)
        if (run->threads[i].state == SIM_WAITING && run->threads[i].wait == SIM_STOPS)
            found->list[found->count++] = (uint16_t)i;
    run->over = !found->count;
}

unsigned sim_next(struct sim_run *run)
{
    struct candidates found;
    find_candidates(run, &found);
    while (!found.count && !run->over) {
        if (pass_time(run))
            find_candidates(run, &found);
        else
            find_stopped(run, &found);
    }
    if (run->over)
        return SIM_NONE;
    unsigned usual = first_in_turn(run, &found);
    return decide(run, found.count > 1 ? take_turn(run, &found, usual) : usual, found.count);
}

unsigned sim_pick_waiter(struct sim_run *run, unsigned count)
{
    uint32_t choice = run->choices++, picked = 0;
    if (run->plan.replays)
        picked = read_turn(run, choice);
    else if (count > 1)
        picked = (uint32_t)(sim_draw(&run->dice) % count);
    if (picked && !run->plan.replays)
        write_turn(run, choice, picked);
    return picked < count ? picked : 0;
}
