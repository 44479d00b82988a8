/* The doorbell: two send to one who sleeps, through rings that it knows. No deadlines: this is what a datagram has. */
#include "ipc/state.h"
#include "rig.h"

static void send_once(void *argument)
{
    unsigned process = rig_process(argument);
    rig_send(process, B, 0);
    rig_notes()->done[process] = 1;
}

static void set_up(void)
{
    rig_join(3);
    rig_attach(A, B);
    rig_attach(C, B);
    schedule_process_at(A)->may_die = true;
    schedule_process_at(A)->may_stop = true;
    rig_keep_members();
    rig_thread(B, rig_serve);
    rig_thread(A, send_once);
    rig_thread(C, send_once);
}

SCENARIO(doorbell, set_up, "doorbell",
         "a frame wakes its receiver, whoever else dies or stops at the doorbell", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 3, .deaths = 1, .stops = 1},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1})

SCENARIO(doorbell_held, set_up, "doorbell-held-stores",
         "the same where processors hold stores back", .checks = {rig_all_received, NULL}, .hold_stores = true,
         .budget = {.preemptions = 2}, .more = {.preemptions = ANY_NUMBER, .deaths = 1})

static void set_up_fences(void)
{
    host_membarrier(false);
    set_up();
}

SCENARIO(fences, set_up_fences, "doorbell-fences",
         "the same where the kernel offers no membarrier", .checks = {rig_all_received, NULL}, .hold_stores = true,
         .budget = {.preemptions = 2}, .more = {.preemptions = ANY_NUMBER, .deaths = 1})

/* B's program finds A, for the first time as far as B's sleeps know. */
static void meet(void *argument)
{
    struct node *node = rig_notes()->nodes[B];
    struct peer *peer = node_find(node, rig_notes()->numbers[A]);
    if (peer)
        node_put(node, peer);
}

static void set_up_meeting(void)
{
    rig_join(2);
    rig_attach(A, B);
    struct node *node = rig_notes()->nodes[B];
    atomic_store(&node->entry->attention.fences, FENCES_NOT_YET);
    rig_keep_members();
    rig_thread(B, rig_serve);
    schedule_thread(schedule_process_at(B), "B's program", meet, rig_number(B));
    rig_thread(A, send_once);
}

SCENARIO(meeting, set_up_meeting, "doorbell-meeting",
         "a sleeper that begins to fence for its senders just now misses nothing", .checks = {rig_all_received, NULL},
         .hold_stores = true, .budget = {.preemptions = 2}, .more = {.preemptions = ANY_NUMBER, .deaths = 1})

/* B's program polls, so that no sender rings, and then sleeps for good, twice, as it does when it arms a CQ. */
static void rest(void *argument)
{
    struct node *node = rig_notes()->nodes[B];
    for (int i = 0; i < 2; i++) {
        node_awake(node);
        if (!node_rest(node))
            node_wake(node);
    }
    if (!node_rest(node))
        node_wake(node);
}

static void set_up_rest_held(void)
{
    rig_join(2);
    rig_attach(A, B);
    rig_keep_members();
    rig_thread(B, rig_serve);
    schedule_thread(schedule_process_at(B), "B's program", rest, rig_number(B));
    rig_thread(A, send_once);
}

static void set_up_rest(void)
{
    set_up();
    schedule_thread(schedule_process_at(B), "B's program", rest, rig_number(B));
}

SCENARIO(rest, set_up_rest, "doorbell-rest",
         "a program that joins its helper's sleep, or begins one for it, misses nothing",
         .checks = {rig_all_received, NULL}, .budget = {.preemptions = 1, .stops = 1},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1})

const struct scenario scenario_rest_held = {
    .name = "doorbell-rest-held-stores",
    .about = "the same with one sender, where processors hold stores back",
    .set_up = set_up_rest_held,
    .checks = {rig_all_received, NULL},
    .hold_stores = true,
    .budget = {.preemptions = 0}, /* one more, of a quarter of a minute, in `make model` */
    .more = {.preemptions = ANY_NUMBER, .deaths = 1},
};

/* A thread of B's program sleeps in the helper's place, as process/sleepers.c lets it. */

static bool is_free(const void *progress)
{
    return !*(const uint32_t *)progress;
}

static void take_progress(void)
{
    schedule_step();
    schedule_wait(is_free, &rig_notes()->progress[B], NANOS_NEVER);
    rig_notes()->progress[B] = 1;
}

static bool try_progress(void)
{
    schedule_step();
    bool free = is_free(&rig_notes()->progress[B]);
    if (free)
        rig_notes()->progress[B] = 1;
    return free;
}

static void release_progress(void)
{
    schedule_step();
    rig_notes()->progress[B] = 0;
}

static void help(void *argument)
{
    for (;;) {
        schedule_forget(__LINE__);
        rig_sleep(B, -1);
        take_progress();
        while (rig_turn(B))
            ;
        release_progress();
    }
}

static void serve_once(struct node *node)
{
    take_progress();
    node_attend(node);
    rig_receive(B);
    release_progress();
    if (node_rest(node))
        return;
    bool taken = try_progress();
    if (!taken) {
        node_wake(node);
        return;
    }
    rig_receive(B);
    release_progress();
}

static void sleep_in_its_place(void *argument)
{
    struct epoll_event event;
    for (;;) {
        schedule_forget(__LINE__);
        epoll_wait(rig_notes()->sleepers[B], &event, 1, -1);
        serve_once(rig_notes()->nodes[B]);
    }
}

/* It is cancelled as a doorbell wakes it. */
static void end_in_its_place(void *argument)
{
    struct epoll_event event;
    epoll_wait(rig_notes()->sleepers[B], &event, 1, -1);
    node_leave_sleeper(rig_notes()->nodes[B]);
}

static void set_up_sleeper(void (*body)(void *))
{
    rig_join(3);
    rig_attach(A, B);
    rig_attach(C, B);
    schedule_process_at(A)->may_die = true;
    schedule_process_at(A)->may_stop = true;
    schedule_as(schedule_process_at(B));
    rig_notes()->sleepers[B] = node_open_sleeper(rig_notes()->nodes[B]);
    schedule_as(NULL);
    rig_keep_members();
    rig_thread(B, help);
    schedule_thread(schedule_process_at(B), "B's program", body, rig_number(B));
    rig_thread(A, send_once);
    rig_thread(C, send_once);
}

static void set_up_sleeper_that_serves(void)
{
    set_up_sleeper(sleep_in_its_place);
}

static void set_up_sleeper_that_ends(void)
{
    set_up_sleeper(end_in_its_place);
}

SCENARIO(sleeper, set_up_sleeper_that_serves, "sleeper", "a thread that sleeps in its helper's place misses nothing",
         .checks = {rig_all_received, NULL}, .budget = {.preemptions = 1, .stops = 1},
         .more = {.preemptions = 2, .deaths = 1, .stops = 1})

SCENARIO(sleeper_ends, set_up_sleeper_that_ends, "sleeper-ends",
         "a thread that is cancelled in its helper's place takes no doorbell along", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 1, .stops = 1},
         .more = {.preemptions = 2, .deaths = 1, .stops = 1})

static void set_up_membarrier(void)
{
    set_up();
    host_refuse(HOST_NO_MEMBARRIER, 1 << B);
}

SCENARIO(membarrier, set_up_membarrier, "membarrier-refused",
         "a sleeper to whom the kernel begins to refuse membarrier misses nothing", .checks = {rig_all_received, NULL},
         .hold_stores = true, .budget = {.preemptions = 1, .refusals = 1, .ticks = 1, .rests = 4},
         .more = {.preemptions = 3, .refusals = 2, .ticks = 2, .rests = 4})
