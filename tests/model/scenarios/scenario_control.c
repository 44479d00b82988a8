/* Messages: doorbells and rings that are handed over, when the system refuses to send or to receive them. */
#include "rig.h"

static void send_and_serve(void *argument)
{
    unsigned process = rig_process(argument);
    rig_send(process, B, 0);
    rig_serve(argument);
}

static void two_senders(bool attached)
{
    rig_join(3);
    if (attached) {
        rig_attach(A, B);
        rig_attach(C, B);
    }
    rig_keep_members();
    rig_thread(B, rig_serve);
    rig_thread(A, send_and_serve);
    rig_thread(C, send_and_serve);
}

static void set_up_refused(void)
{
    two_senders(true);
    host_refuse(HOST_NO_MEMORY | HOST_NO_BUFFER, 1 << A);
}

SCENARIO(refused, set_up_refused, "refused-doorbell",
         "a doorbell that the system refuses to send is rung again", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 2, .refusals = 1, .rests = 3},
         .more = {.preemptions = ANY_NUMBER, .refusals = 3, .rests = 6})

static void set_up_handover(void)
{
    rig_join(2);
    rig_keep_members();
    rig_thread(B, rig_serve);
    rig_thread(A, send_and_serve);
    host_refuse(HOST_SEND_REFUSALS | HOST_NO_DESCRIPTOR, 1 << A | 1 << B);
}

SCENARIO(handover, set_up_handover, "hand-over",
         "a ring is handed over in the end, whatever is refused on the way", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 3, .refusals = 2, .rests = 4},
         .more = {.preemptions = ANY_NUMBER, .refusals = 4, .rests = 8})

static void set_up_unmapped(void)
{
    rig_join(2);
    rig_keep_members();
    rig_thread(B, rig_serve);
    rig_thread(A, send_and_serve);
    host_refuse(HOST_NO_MAPPING, 1 << B);
}

SCENARIO(unmapped, set_up_unmapped, "unmapped",
         "a ring that its receiver could not map is handed over again", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 3, .refusals = 2, .rests = 4},
         .more = {.preemptions = ANY_NUMBER, .refusals = 4, .rests = 8})

static void set_up_full(void)
{
    two_senders(false);
    host_limit(1, HOST_QUEUE);
}

SCENARIO(full, set_up_full, "full-queue",
         "two rings are handed over through a queue that holds one message", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 2, .rests = 4}, .more = {.preemptions = ANY_NUMBER, .stops = 1, .rests = 8})

/* D never reads while it is stopped, so A's message to it fills all that A's socket may have under way. */
static void send_to_stopped(void *argument)
{
    rig_send(A, D, 0);
    rig_send(A, B, 0);
    rig_serve(argument);
}

static void set_up_buffer(void)
{
    rig_join(4);
    rig_attach(A, B);
    rig_attach(A, D);
    rig_keep_members();
    rig_thread(B, rig_serve);
    rig_thread(A, send_to_stopped);
    rig_thread(D, rig_serve);
    schedule_process_at(D)->may_stop = true;
    host_limit(HOST_QUEUE, 1);
}

SCENARIO(buffer, set_up_buffer, "full-buffer",
         "a sender whose messages others do not read wakes those who do", .checks = {rig_all_received, NULL},
         .budget = {.preemptions = 1, .stops = 1, .rests = 4}, .more = {.preemptions = 4, .stops = 1, .rests = 8})
