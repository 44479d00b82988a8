/* Room: a writer that found no room sleeps, and its reader wakes it. */
#include "ipc/state.h"
#include "link/ring_layout.h"
#include "rig.h"

enum { LARGEST = 16384 };

static void send_two(void *argument)
{
    unsigned process = rig_process(argument);
    for (unsigned i = 0; i < 2; i++)
        while (!rig_send(process, B, LARGEST)) {
            schedule_forget(i);
            rig_sleep(process, -1);
            rig_turn(process);
        }
    rig_notes()->done[process] = 1;
    rig_serve(argument);
}

static const char *is_through(void)
{
    if (!rig_notes()->done[A])
        return "A sleeps for ever for room in an empty ring";
    return rig_all_received();
}

static void start(model_body *writer, const uint32_t *lengths, unsigned count)
{
    rig_join(2);
    rig_attach(A, B);
    rig_fill(A, B, lengths, count);
    rig_keep_members();
    rig_thread(A, writer);
    rig_thread(B, rig_serve);
}

static void fill(model_body *writer)
{
    static const uint32_t lengths[] = {LARGEST, LARGEST, LARGEST};
    start(writer, lengths, 3);
}

static void set_up(void)
{
    fill(send_two);
}

SCENARIO(room, set_up, "room", "a writer that waits for room hears when there is some", .checks = {is_through, NULL},
         .budget = {.preemptions = 3}, .more = {.preemptions = ANY_NUMBER})

SCENARIO(room_held, set_up, "room-held-stores",
         "the same where processors hold stores back", .checks = {is_through, NULL}, .hold_stores = true,
         .budget = {.preemptions = 2}, .more = {.preemptions = 4})

static void set_up_fences(void)
{
    host_membarrier(false);
    set_up();
}

SCENARIO(room_fences, set_up_fences, "room-fences",
         "the same where the kernel offers no membarrier", .checks = {is_through, NULL}, .hold_stores = true,
         .budget = {.preemptions = 2}, .more = {.preemptions = 4})

/* The first two frames are a quarter of the ring, after which the reader asks for the flag, and just too little. */
static void set_up_quarter(void)
{
    static const uint32_t lengths[] = {8192 - 64, 8192 - 64, 16000 - 64, LARGEST, LARGEST};
    start(send_two, lengths, 5);
}

SCENARIO(quarter, set_up_quarter, "room-quarter",
         "the same when a quarter of the ring is not room enough", .checks = {is_through, NULL},
         .budget = {.preemptions = 3}, .more = {.preemptions = ANY_NUMBER})

static void sleep_and_send(void *argument)
{
    unsigned process = rig_process(argument);
    rig_sleep(process, -1);
    rig_turn(process);
    send_two(argument);
}

/* The writer has asked, and the reader has taken the flag back for room that was used before: it found the writer awake
 * and did not ring. */
static void set_up_flag(void)
{
    struct notes *notes = rig_notes();
    host_membarrier(false);
    fill(sleep_and_send);
    schedule_as(schedule_process_at(A));
    if (rig_send(A, B, LARGEST))
        schedule_violation("the ring of the set-up is not full");
    schedule_as(NULL);
    struct record *record = notes->nodes[B]->by_slot[notes->nodes[A]->slot];
    memory_store(&record->reader->ring.shared->waiting, sizeof(atomic_uint), 0);
}

SCENARIO(flag, set_up_flag, "room-flag",
         "a writer whose flag was taken back before it sleeps misses no room", .checks = {is_through, NULL},
         .hold_stores = true, .budget = {.preemptions = 2}, .more = {.preemptions = 4})
