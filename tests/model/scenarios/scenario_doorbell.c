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

static void set_up_membarrier(void)
{
    set_up();
    host_refuse(HOST_NO_MEMBARRIER, 1 << B);
}

SCENARIO(membarrier, set_up_membarrier, "membarrier-refused",
         "a sleeper to whom the kernel begins to refuse membarrier misses nothing", .checks = {rig_all_received, NULL},
         .hold_stores = true, .budget = {.preemptions = 1, .refusals = 1, .ticks = 1, .rests = 4},
         .more = {.preemptions = 3, .refusals = 2, .ticks = 2, .rests = 4})
