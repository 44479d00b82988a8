/* A ring in which its reader finds what is not a frame: the writer mends it. */
#include <sys/timerfd.h>

#include "ipc/state.h"
#include "link/ring_layout.h"
#include "rig.h"

enum { SHORT = 8, SEQUENCE = 2 /* place in the headers of a frame of rig.c */ };

/* Frames may be lost, but arrive neither twice nor from before. */
static void take_newer(void *context, struct peer *peer, const struct frame *frame)
{
    struct notes *notes = rig_notes();
    unsigned to = rig_process(context);
    uint32_t sequence = ((const uint32_t *)frame->headers)[SEQUENCE];
    if (sequence < notes->received[A][to])
        schedule_violation("B takes frame %u again", sequence);
    notes->received[A][to] = sequence + 1;
    notes->done[to] = 1;
}

/* Repeats what was lost, as a queue pair does, here whenever the process is woken. */
static void send_again(void *argument)
{
    unsigned process = rig_process(argument);
    for (;;) {
        schedule_forget(__LINE__);
        if (!rig_notes()->done[B])
            rig_send(process, B, SHORT);
        rig_sleep(process, -1);
        while (rig_turn(process))
            ;
    }
}

static void receive(void *argument)
{
    unsigned process = rig_process(argument);
    for (;;) {
        schedule_forget(__LINE__);
        rig_sleep(process, -1);
        while (rig_turn_with(process, take_newer))
            ;
    }
}

static const char *goes_on(void)
{
    return rig_notes()->done[B] ? NULL : "B never reads from the ring again";
}

/* The hand-over of the rings is long done: its timer has ended. */
static void forget_timer(unsigned process)
{
    struct node *node = rig_notes()->nodes[process];
    schedule_as(schedule_process_at(process));
    timerfd_settime(node->retry, 0, &(struct itimerspec){{0}, {0}}, NULL);
    atomic_store(&node->postponed, false);
    schedule_as(NULL);
}

static void set_up(void)
{
    static const uint32_t lengths[] = {SHORT};
    struct notes *notes = rig_notes();
    rig_join(2);
    rig_attach(A, B);
    rig_attach(B, A);
    forget_timer(A);
    forget_timer(B);
    rig_fill(A, B, lengths, 1);
    rig_keep_members();
    const struct ring_reader *reader = notes->nodes[B]->by_slot[notes->nodes[A]->slot]->reader;
    struct ring_frame *frame = (struct ring_frame *)ring_at(&reader->ring, reader->head);
    memory_store(&frame->kind, sizeof frame->kind, 0);
    rig_thread(A, send_again);
    rig_thread(B, receive);
}

SCENARIO(mend, set_up, "mend", "a ring in which its reader found what is no frame is mended, and none comes twice",
         .checks = {goes_on, NULL}, .budget = {.preemptions = 3}, .more = {.preemptions = ANY_NUMBER})

static void set_up_refused(void)
{
    set_up();
    host_refuse(HOST_NO_MEMORY | HOST_NO_BUFFER, 1 << A | 1 << B);
}

SCENARIO(mend_refused, set_up_refused, "mend-refused",
         "the same where the messages that ask for it are refused", .checks = {goes_on, NULL},
         .budget = {.preemptions = 2, .refusals = 1, .rests = 4},
         .more = {.preemptions = 3, .refusals = 2, .rests = 8})

SCENARIO(mend_held, set_up, "mend-held-stores",
         "the same where processors hold stores back", .checks = {goes_on, NULL}, .hold_stores = true,
         .budget = {.preemptions = 2}, .more = {.preemptions = 3})
