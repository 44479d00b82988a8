/* Payloads that the receiver reads in the sender's memory, and a sender that takes its memory back. */
#include <string.h>

#include "ipc/state.h"
#include "rig.h"
#include "seam.h"
#include "trace.h"

enum { LENGTH = 17000, BEFORE = 0x11, AFTER = 0x77 };

static uint8_t *shipped(void)
{
    return (uint8_t *)(uintptr_t)rig_notes()->scratch[0];
}

static void send_reference(void)
{
    struct notes *notes = rig_notes();
    struct iovec piece = {shipped(), LENGTH};
    struct frame frame = {FRAME_ROCE, 4, (const uint8_t *)"abcd", {LENGTH, 1, &piece, true, NULL, NULL}, 0};
    struct peer *peer = node_find(notes->nodes[A], notes->numbers[B]);
    const struct link_operations *link = peer->link->operations;
    link->begin(peer->link);
    if (link->can_reference(peer->link) && link->ready(peer->link))
        link->send(peer->link, &frame);
    link->end(peer->link);
    node_put(notes->nodes[A], peer);
}

/* The actions of a queue pair that is reset: it revokes the references that it sent; then the memory is the program's
 * again. */
static void send_and_revoke(void *argument)
{
    struct notes *notes = rig_notes();
    send_reference();
    struct peer *peer = node_find(notes->nodes[A], notes->numbers[B]);
    peer->link->operations->revoke(peer->link);
    node_put(notes->nodes[A], peer);
    schedule_step();
    shipped()[0] = AFTER;
    trace_line(NULL, "changes the first byte");
    schedule_step();
    shipped()[LENGTH - 1] = AFTER;
    trace_line(NULL, "changes the last byte");
    notes->done[A] = 1;
}

static void take(void *context, struct peer *peer, const struct frame *frame)
{
    uint8_t copy[LENGTH];
    struct iovec to = {copy, LENGTH};
    if (!frame->payload.pull || !frame->payload.pull(&frame->payload, 0, &to, 1)) {
        trace_line(NULL, "finds the payload revoked");
        return;
    }
    trace_line(NULL, "accepts the payload");
    if (copy[0] != BEFORE || copy[LENGTH - 1] != BEFORE)
        schedule_violation("B accepts a payload that its sender had taken back");
}

static void pull_once(void *argument)
{
    for (;;) {
        schedule_forget(__LINE__);
        rig_sleep(B, -1);
        while (rig_turn_with(B, take))
            schedule_forget(__LINE__);
    }
}

static const char *is_revoked(void)
{
    return rig_notes()->done[A] ? NULL : "A does not come to the end of its revoke";
}

static void set_up(void)
{
    rig_join(2);
    rig_attach(A, B);
    schedule_as(schedule_process_at(A));
    rig_notes()->scratch[0] = (uintptr_t)model_calloc(1, LENGTH);
    memset(shipped(), BEFORE, LENGTH);
    schedule_as(NULL);
    rig_keep_members();
    rig_thread(A, send_and_revoke);
    rig_thread(B, pull_once);
}

SCENARIO(revoke, set_up, "revoke", "a payload that was taken back is never accepted", .checks = {is_revoked, NULL},
         .budget = {.preemptions = ANY_NUMBER}, .more = {.preemptions = ANY_NUMBER})

SCENARIO(revoke_held, set_up, "revoke-held-stores",
         "the same where processors hold stores back", .checks = {is_revoked, NULL}, .hold_stores = true,
         .budget = {.preemptions = 3}, .more = {.preemptions = ANY_NUMBER})
