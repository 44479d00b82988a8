#include "token.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <time.h>

#include "network.h"
#include "raw.h"
#include "signals.h"
#include "sim/choose.h"
#include "stack.h"
#include "timers.h"

enum {
    SPIN_LEAST = 1000, /* ns until a thread that found nothing looks again, though nobody has acted; */
    SPIN_DOUBLES = 17, /* it doubles so often, after each SPIN_SAME tries */
    SPIN_SAME = 4,
    THAWED_REST = 1000000, /* ns */
    FRUITLESS = 4,         /* calls in a row that find nothing, after which a thread spins */
};

struct sim_run *token_run;
pid_t token_process;
unsigned token_first = SIM_NONE;
THREAD_LOCAL unsigned token_number = SIM_NONE;
THREAD_LOCAL ucontext_t *token_context;

void token_call_launcher(void)
{
    atomic_fetch_add(&token_run->launcher, 1);
    RAW(futex, &token_run->launcher, FUTEX_WAKE, INT_MAX);
}

void token_await(void)
{
    struct sim_thread *thread = token_thread();
    uint32_t order;
    while ((order = atomic_load(&thread->order)) != SIM_RUN) {
        if (order == SIM_SHOW_STACK) {
            atomic_store(&thread->order, SIM_NO_ORDER);
            stack_show();
            token_call_launcher();
        } else {
            RAW(futex, &thread->order, FUTEX_WAIT, order);
        }
    }
    atomic_store(&thread->order, SIM_NO_ORDER);
    if (token_run->unsettled) {
        token_run->unsettled = false;
        network_settle();
    }
}

static void give_to(unsigned next)
{
    struct sim_thread *thread = &token_run->threads[next];
    token_run->current = next;
    thread->state = SIM_RUNNING;
    thread->deadline = SIM_NEVER;
    if (next == token_number)
        return;
    atomic_store(&thread->order, SIM_RUN);
    RAW(futex, &thread->order, FUTEX_WAKE, 1);
    token_await();
}

static void give_away(unsigned next)
{
    if (next != SIM_NONE) {
        give_to(next);
    } else {
        token_call_launcher();
        token_await();
    }
    timers_serve();
}

static void take_name(void)
{
    if (!token_thread()->name[0])
        RAW(prctl, PR_GET_NAME, token_thread()->name);
}

/* A thread of a run that is over looks at its files until it is killed. */
static enum token_outcome rest(void)
{
    struct timespec moment = {0, THAWED_REST};
    RAW(nanosleep, &moment);
    return TOKEN_AGAIN;
}

enum token_outcome token_wait(enum sim_wait wait, uint64_t deadline, uint64_t key)
{
    struct sim_thread *thread = token_thread();
    if (token_run->thawed)
        return rest();
    if (signals_interrupt())
        return TOKEN_SIGNAL;
    take_name();
    thread->wait = wait;
    thread->deadline = deadline;
    thread->since = token_run->now;
    thread->key = key;
    thread->seen = sim_count(token_run, wait);
    thread->woken = thread->signalled = false;
    thread->state = SIM_WAITING;
    give_away(sim_next(token_run));
    thread->key = 0;
    if (thread->woken)
        return TOKEN_WOKEN;
    if (signals_interrupt())
        return TOKEN_SIGNAL;
    return deadline <= token_run->now ? TOKEN_TIME : TOKEN_AGAIN;
}

void token_point(void)
{
    if (token_run->thawed)
        return;
    unsigned next = sim_at_point(token_run, token_number);
    if (next != token_number)
        give_away(next);
    else
        token_thread()->state = SIM_RUNNING;
}

void token_spin(void)
{
    struct sim_thread *thread = token_thread();
    unsigned doubled = thread->fruitless++ / SPIN_SAME;
    token_wait(SIM_SPINS, token_later(SPIN_LEAST << (doubled < SPIN_DOUBLES ? doubled : SPIN_DOUBLES)), 0);
}

void token_found_nothing(uint64_t since)
{
    if (token_run->now - since < SPIN_LEAST && ++token_thread()->fruitless > FRUITLESS)
        token_spin();
}

void token_point_outside(void)
{
    if (!token_is_simulated() || token_context)
        return;
    uint64_t before = signals_block();
    token_point();
    signals_restore(before);
}

void token_spin_outside(enum token_place place)
{
    if (!token_is_simulated())
        return;
    uint64_t before = signals_block();
    token_thread()->call = (uint16_t)place;
    token_spin();
    signals_restore(before);
}

static void begin_anew(void)
{
    token_thread()->fruitless = token_thread()->clock_reads = 0;
}

void token_acted(void)
{
    token_run->acts++;
    begin_anew();
}

void token_moved(void)
{
    token_run->moves++;
    begin_anew();
}

void token_leave_at_end(pid_t pid, pid_t tid)
{
    token_run->ended.pid = pid;
    token_run->ended.tid = tid;
    token_call_launcher();
}

void token_await_end(pid_t pid)
{
    token_thread()->state = SIM_READY;
    token_thread()->deadline = 0;
    token_leave_at_end(pid, 0);
    token_await();
    timers_serve();
}

uint64_t token_later(uint64_t span)
{
    return span < SIM_NEVER - 1 - token_run->now ? token_run->now + span : SIM_NEVER - 1;
}
