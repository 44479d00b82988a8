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
    schedule_thread(schedule_process_at(B), "B", rig_serve, rig_number(B));
    schedule_thread(schedule_process_at(A), "A", send_once, rig_number(A));
    schedule_thread(schedule_process_at(C), "C", send_once, rig_number(C));
}

const struct scenario scenario_doorbell = {
    .name = "doorbell",
    .about = "a frame wakes its receiver, whoever else dies or stops at the doorbell",
    .set_up = set_up,
    .checks = {rig_all_received, NULL},
    .budget = {.preemptions = 3, .deaths = 1, .stops = 1},
    .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1},
};

const struct scenario scenario_doorbell_held = {
    .name = "doorbell-held-stores",
    .about = "the same where processors hold stores back",
    .set_up = set_up,
    .checks = {rig_all_received, NULL},
    .hold_stores = true,
    .budget = {.preemptions = 2},
    .more = {.preemptions = ANY_NUMBER, .deaths = 1},
};

static void set_up_fences(void)
{
    host_membarrier(false);
    set_up();
}

const struct scenario scenario_fences = {
    .name = "doorbell-fences",
    .about = "the same where the kernel offers no membarrier",
    .set_up = set_up_fences,
    .checks = {rig_all_received, NULL},
    .hold_stores = true,
    .budget = {.preemptions = 2},
    .more = {.preemptions = ANY_NUMBER, .deaths = 1},
};

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
    schedule_thread(schedule_process_at(B), "B", rig_serve, rig_number(B));
    schedule_thread(schedule_process_at(B), "B's program", meet, rig_number(B));
    schedule_thread(schedule_process_at(A), "A", send_once, rig_number(A));
}

const struct scenario scenario_meeting = {
    .name = "doorbell-meeting",
    .about = "a sleeper that begins to fence for its senders just now misses nothing",
    .set_up = set_up_meeting,
    .checks = {rig_all_received, NULL},
    .hold_stores = true,
    .budget = {.preemptions = 2},
    .more = {.preemptions = ANY_NUMBER, .deaths = 1},
};

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
    schedule_thread(schedule_process_at(B), "B", rig_serve, rig_number(B));
    schedule_thread(schedule_process_at(B), "B's program", rest, rig_number(B));
    schedule_thread(schedule_process_at(A), "A", send_once, rig_number(A));
}

static void set_up_rest(void)
{
    set_up();
    schedule_thread(schedule_process_at(B), "B's program", rest, rig_number(B));
}

const struct scenario scenario_rest = {
    .name = "doorbell-rest",
    .about = "a program that joins its helper's sleep, or begins one for it, misses nothing",
    .set_up = set_up_rest,
    .checks = {rig_all_received, NULL},
    .budget = {.preemptions = 1, .stops = 1},
    .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1},
};

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

const struct scenario scenario_membarrier = {
    .name = "membarrier-refused",
    .about = "a sleeper to whom the kernel begins to refuse membarrier misses nothing",
    .set_up = set_up_membarrier,
    .checks = {rig_all_received, NULL},
    .hold_stores = true,
    .budget = {.preemptions = 1, .refusals = 1, .ticks = 1, .rests = 4},
    .more = {.preemptions = 3, .refusals = 2, .ticks = 2, .rests = 4},
};
