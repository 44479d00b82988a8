/* Marks: a process that polls does not look at the rings of peers that were silent, and their marks say when to. Unless
 * a scenario says otherwise it neither sleeps nor looks at all rings, so a frame is found by its mark or not at all. */
#include "ipc/state.h"
#include "rig.h"

static void send_some(void *argument, unsigned frames)
{
    unsigned process = rig_process(argument);
    for (unsigned i = 0; i < frames; i++)
        rig_send(process, B, 0);
    rig_notes()->done[process] = 1;
}

static void send_two(void *argument)
{
    send_some(argument, 2);
}

static void send_one(void *argument)
{
    send_some(argument, 1);
}

static bool are_others_through(const void *nothing)
{
    bool through = true;
    for (unsigned i = 0; i < schedule_processes(); i++)
        through &= i == B || rig_notes()->done[i] || schedule_process_at(i)->dead;
    return through;
}

/* Each is later than the one before by a time after which a peer that did not move counts as silent. */
static nanos late(unsigned look)
{
    return look * NANOS_SECOND;
}

static void poll_and_ask(void *argument)
{
    unsigned process = rig_process(argument);
    for (unsigned i = 0; i < 2; i++) {
        rig_turn(process);
        records_ask_the_silent(rig_notes()->nodes[process], late(i + 2));
    }
    schedule_wait(are_others_through, NULL, NANOS_NEVER);
    while (rig_turn(process))
        ;
}

/* B has got a frame from each. After two looks it asks all for marks, after one it is about to. */
static void meet(unsigned senders, unsigned looks)
{
    rig_join(1 + senders);
    for (unsigned i = 0; i <= senders; i++)
        if (i != B)
            rig_attach(i, B);
    schedule_as(schedule_process_at(B));
    for (unsigned i = 0; i < looks; i++)
        node_look_around(rig_notes()->nodes[B], late(i));
    schedule_as(NULL);
    if (rig_notes()->nodes[B]->heard.polled != (looks > 1 ? 1 : 1 + senders))
        schedule_violation("the set-up's peers are not asked for marks as they should be");
    rig_keep_members();
}

static void set_up(void)
{
    meet(2, 2);
    rig_thread(B, poll_and_ask);
    rig_thread(A, send_two);
    rig_thread(C, send_one);
}

SCENARIO(marks, set_up, "marks",
         "a process that polls and asks silent peers for marks finds each frame", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 3}, .more = {.preemptions = 5})

/* A is asked while it sends. */
static void set_up_one(void)
{
    meet(1, 1);
    rig_thread(B, poll_and_ask);
    rig_thread(A, send_two);
}

SCENARIO(marks_held, set_up_one, "marks-held-stores",
         "the same with one sender, where processors hold stores back", .checks = {rig_all_received, NULL},
         .hold_stores = true, .budget = {.preemptions = 3}, .more = {.preemptions = 5})

static void set_up_fences(void)
{
    host_membarrier(false);
    set_up_one();
}

SCENARIO(marks_fences, set_up_fences, "marks-fences",
         "the same where the kernel offers no membarrier", .checks = {rig_all_received, NULL}, .hold_stores = true,
         .budget = {.preemptions = 3}, .more = {.preemptions = 5})

static void set_up_death(void)
{
    meet(2, 2);
    schedule_process_at(A)->may_die = true;
    schedule_process_at(A)->may_stop = true;
    rig_thread(B, rig_serve);
    rig_thread(A, send_one);
    rig_thread(C, send_one);
}

SCENARIO(marks_death, set_up_death, "marks-death",
         "a sender that dies or stops before its mark takes no other's along, and a sleeper finds its frame",
         .checks = {rig_all_received, NULL}, .budget = {.preemptions = 2, .deaths = 1, .stops = 1},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1})

/* Any process of the directory can write there. */
static void clear_marks(void *argument)
{
    unsigned process = rig_process(argument);
    struct table_file *file = rig_notes()->nodes[process]->table->file;
    marks_clear(&file->slots[rig_notes()->scratch[0]].attention.marks);
    rig_notes()->done[process] = 1;
}

static void poll_and_serve(void *argument)
{
    node_awake(rig_notes()->nodes[B]);
    rig_turn(B);
    rig_serve(argument);
}

static void set_up_cleared(void)
{
    meet(2, 2);
    rig_notes()->scratch[0] = rig_notes()->nodes[B]->slot;
    rig_thread(B, poll_and_serve);
    rig_thread(A, send_one);
    rig_thread(C, clear_marks);
}

SCENARIO(marks_cleared, set_up_cleared, "marks-cleared",
         "a process that sleeps finds frames whose marks another process has cleared",
         .checks = {rig_all_received, NULL}, .budget = {.preemptions = 2}, .more = {.preemptions = ANY_NUMBER})
