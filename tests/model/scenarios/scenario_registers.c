/* Doorbell registers, and the helper's sleep (mlx5/queues/registers.h): a program's threads store a block, the record
 * and the register of a queue in memory, while the helper works, closes the registers, looks once more, sleeps and
 * opens them. The queues, the registers, the helper's begin and end of a sleep, and its node are the real ones; of the
 * helper only what it does between is here, and of the engine only that it takes work. */
#include <string.h>

#include "ipc/state.h"
#include "mlx5/queues/blocked.h"
#include "mlx5/queues/entry.h"
#include "mlx5/queues/judge.h"
#include "mlx5/queues/queues.h"
#include "mlx5/queues/registers.h"
#include "process/progress.h"
#include "process/rest.h"
#include "rig.h"
#include "runtime/clock.h"
#include "seam.h"
#include "trace.h"
#include "verbs/object/process_objects.h"
#include "verbs/queue/cq_entries.h"
#include "verbs/queue/cq_event.h"
#include "verbs/queue/cq_push.h"

enum { POSTERS = 2, POSTS = 2, NUMBER = 1, ONE_PAGE_EACH = 16, ARMED_QUEUE = 5, REGISTERS_ARM = 0x20 };

/* The queue of a thread, in the heap of the process. */
struct poster {
    struct send_ring ring;
    _Atomic uint32_t blocks[POSTS];
    _Atomic uint32_t records[RECORD_WORDS];
    uint32_t posts;
};

/* Outside of the process's memory. */
struct plan {
    struct process_objects *objects;
    struct context *context;
    struct poster *posters[POSTERS];
    struct cq *armed; /* NULL: the program arms nothing */
    struct cq_memory *memory;
    uint32_t threads, ended; /* of the program */
};

static struct plan *plan(void)
{
    return (struct plan *)(void *)(rig_notes() + 1);
}

/* --- what the queues call */

unsigned send_ring_take(struct send_ring *ring, nanos now)
{
    const struct poster *poster = (const struct poster *)(const void *)ring;
    uint32_t record = atomic_load_explicit(&ring->records[RECORD_SEND], memory_order_acquire);
    uint16_t first = ring->taken, end = (uint16_t)__builtin_bswap32(record);
    for (uint16_t i = first; i < end; i++)
        if (atomic_load_explicit(&poster->blocks[i], memory_order_relaxed) != i + 1u)
            schedule_violation("the helper takes a block that the program has not written");
    ring->taken = end;
    trace_line(NULL, "takes %u blocks", (unsigned)(end - first));
    return (unsigned)(end - first);
}

void cq_event_arm(struct cq *cq, enum cq_armed armed)
{
    cq->armed = (uint8_t)armed;
    trace_line(NULL, "arms the completion queue");
}

void cq_event_notify(struct cq *cq, bool notable)
{
}

/* No checker asks. */
void (*calls_form_mistaken)(const struct calls_form_mistake *);

void judge_consumed(struct cq_memory *memory)
{
}

unsigned judge_take(struct calls_form_mistake taken[JUDGE_NOTES])
{
    return 0;
}

void progress_quiesce(struct process *process)
{
    lock_take(&process->progress);
    lock_release(&process->progress);
}

nanos clock_now(void)
{
    return schedule_clock();
}

bool blocked_by_a_thread(void)
{
    return false;
}

int rkeys_enter(struct rkey_table *table, struct region *region)
{
    return 0;
}

void rkeys_remove(struct rkey_table *table, struct region *region)
{
}

/* No completion of the model is written into memory. */
void cq_stop(struct cq *cq)
{
}

void cq_resume(struct cq *cq)
{
}

void cq_judge_push(struct cq *cq)
{
}

void cq_overrun(struct cq *cq)
{
}

uint8_t entry_write(uint8_t *to, const struct completion *entry, bool tags)
{
    return 0;
}

/* --- what must hold */

static const char *nothing_is_lost(void)
{
    const struct plan *all = plan();
    if (all->ended < all->threads)
        return "a thread of the program waits for ever";
    for (unsigned i = 0; i < POSTERS; i++)
        if (all->posters[i]->ring.taken != all->posters[i]->posts)
            return "the helper sleeps, and has not seen a record";
    return all->armed && all->armed->armed != CQ_ARMED ? "the helper sleeps, and has not seen an arming" : NULL;
}

/* --- the program */

/* Two numbers that have one page. */
static uint32_t number_of(unsigned i)
{
    return NUMBER + i * ONE_PAGE_EACH;
}

static void post_some(struct poster *poster, uint32_t number)
{
    _Atomic uint64_t *bell = (_Atomic uint64_t *)(void *)(registers_of_queue_pair(number) + REGISTERS_BELL);
    for (uint32_t i = 0; i < poster->posts; i++) {
        atomic_store_explicit(&poster->blocks[i], i + 1, memory_order_relaxed);
        atomic_store_explicit(&poster->records[RECORD_SEND], __builtin_bswap32(i + 1), memory_order_release);
        atomic_store_explicit(bell, i + 1, memory_order_release);
    }
    plan()->ended++;
}

static void post(void *argument)
{
    unsigned i = rig_process(argument);
    post_some(plan()->posters[i], number_of(i));
}

/* The first arming of a queue from which the program has consumed nothing. */
static void arm(void *argument)
{
    const struct cq_memory *memory = plan()->memory;
    char *page = registers_of_completions(ARMED_QUEUE);
    atomic_store_explicit(&memory->record[RECORD_ARM], 0, memory_order_release);
    atomic_store_explicit((_Atomic uint64_t *)(void *)(page + REGISTERS_ARM), ARMED_QUEUE, memory_order_release);
    plan()->ended++;
}

static void begin_and_post(void *argument)
{
    struct poster *poster = plan()->posters[0];
    if (queues_begin(plan()->context) || queues_enter_ring(plan()->context, &poster->ring))
        schedule_violation("there are no registers");
    post_some(poster, number_of(0));
}

/* --- the helper, as process/helper.c has it */

/* It naps as long after work, and after a store that has found the registers closed, instead of closing them; in the
 * model once, not again and again for a moment. */
enum { NAP_MILLISECONDS = 2 };

static void go_to_sleep(struct process *process, struct pollfd *wait, nanos *worked)
{
    nanos now = clock_now();
    bool queues = rest_has_queues(process);
    unsigned found;
    if (queues && nanos_since(*worked, now) < NAP_MILLISECONDS * NANOS_MILLISECOND) {
        poll(wait, 1, NAP_MILLISECONDS);
        return;
    }
    if (rest_begin(process, queues, now, &found))
        poll(wait, 1, -1);
    if (rest_end(process, queues) || found)
        *worked = clock_now();
}

static void help(void *argument)
{
    struct process *process = &plan()->objects->process;
    struct pollfd wait = {.fd = node_fd(process->node), .events = POLLIN};
    for (nanos worked = 0;;) {
        schedule_forget(worked);
        if (poll(&wait, 1, 0) == 1)
            node_service(process->node, NULL, NULL);
        if (rest_has_queues(process) && rest_look(process, clock_now()))
            worked = clock_now();
        go_to_sleep(process, &wait, &worked);
    }
}

/* --- scenarios */

static void make_poster(unsigned i)
{
    struct poster *poster = model_calloc(1, sizeof *poster);
    poster->ring.records = poster->records;
    plan()->posters[i] = poster;
    trace_name(poster->blocks, sizeof poster->blocks, "blocks");
    trace_name(poster->records, sizeof poster->records, "records");
}

static void make_process(void)
{
    static const struct process_parts parts = {.queues = {queues_look, queues_tell, queues_close, queues_open, NULL}};
    struct process_objects *objects = model_calloc(1, sizeof *objects);
    objects->process.parts = &parts;
    objects->process.node = rig_notes()->nodes[A];
    plan()->objects = objects;
    plan()->context = model_calloc(1, sizeof *plan()->context);
    plan()->context->process = &objects->process;
    trace_name(&objects->process, sizeof objects->process, "process");
    trace_name(memory_registers()->base, MEMORY_REGION, "registers");
    for (unsigned i = 0; i < POSTERS; i++)
        make_poster(i);
    schedule_thread(schedule_process_at(A), "helper", help, NULL);
}

static void run(const char *name, model_body *body, unsigned number)
{
    schedule_thread(schedule_process_at(A), name, body, rig_number(number));
    plan()->threads++;
}

static void begin(void)
{
    rig_join(1);
    rig_keep_members();
    schedule_as(schedule_process_at(A));
    make_process();
}

static void begin_with_queues(void)
{
    begin();
    queues_begin(plan()->context);
    for (unsigned i = 0; i < POSTERS; i++)
        queues_enter_ring(plan()->context, &plan()->posters[i]->ring);
}

static void add_poster(unsigned i, uint32_t posts)
{
    static const char *const names[POSTERS] = {"first", "second"};
    plan()->posters[i]->posts = posts;
    run(names[i], post, i);
}

static void set_up(void)
{
    begin_with_queues();
    add_poster(0, POSTS);
    schedule_as(NULL);
}

/* A helper that closed the registers again at once would let the store fault more often. */
enum { FAULTS_MOST = 3 };

static void set_up_pass(void)
{
    host_faults(FAULTS_MOST);
    set_up();
}

static void set_up_threads(void)
{
    begin_with_queues();
    add_poster(0, POSTS);
    add_poster(1, 1);
    schedule_as(NULL);
}

static void set_up_unawaited(void)
{
    host_protection_waits(false);
    set_up();
}

static void set_up_without_fence(void)
{
    host_membarrier(false);
    set_up();
}

static void set_up_threads_held(void)
{
    host_membarrier(false);
    begin_with_queues();
    for (unsigned i = 0; i < POSTERS; i++)
        add_poster(i, 1);
    schedule_as(NULL);
}

static void set_up_refused(void)
{
    host_refuse(HOST_NO_PROTECTION, 1 << A);
    set_up();
}

static void set_up_arm(void)
{
    begin_with_queues();
    struct cq *cq = model_calloc(1, sizeof *cq);
    cq->channel = (void *)plan();
    cq->ibv.handle = ARMED_QUEUE;
    cq->ring.capacity = 1;
    plan()->memory = cq_memory_make(cq, ENTRY_BYTES);
    plan()->armed = cq;
    queues_enter_memory(plan()->context, plan()->memory);
    add_poster(0, 1);
    run("armer", arm, 0);
    schedule_as(NULL);
}

static void set_up_first(void)
{
    begin();
    plan()->posters[0]->posts = 1;
    run("first", begin_and_post, 0);
    schedule_as(NULL);
}

SCENARIO(registers, set_up, "registers", "the helper sees what a program posts in memory, also while it falls asleep",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 4, .ticks = 1, .rests = 4},
         .more = {.preemptions = 7, .ticks = 2, .rests = 4})

SCENARIO(registers_threads, set_up_threads, "registers-threads",
         "the same for two threads on one page, where the handler of one may be late by a closing",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 3, .ticks = 1, .rests = 4},
         .more = {.preemptions = 5, .ticks = 2, .rests = 4})

SCENARIO(registers_held, set_up_without_fence, "registers-held-stores",
         "the same for one thread where processors hold stores back, without membarrier",
         .checks = {nothing_is_lost, NULL}, .hold_stores = true, .budget = {.preemptions = 2, .ticks = 1, .rests = 4},
         .more = {.preemptions = 4, .ticks = 2, .rests = 4})

SCENARIO(registers_threads_held, set_up_threads_held, "registers-threads-held-stores", "the same for two threads",
         .checks = {nothing_is_lost, NULL}, .hold_stores = true, .budget = {.preemptions = 1, .ticks = 1, .rests = 4},
         .more = {.preemptions = 3, .ticks = 2, .rests = 4})

SCENARIO(registers_unawaited, set_up_unawaited, "registers-unawaited",
         "the same for one thread where mprotect does not wait for other processors' stores, with membarrier",
         .checks = {nothing_is_lost, NULL}, .hold_stores = true, .budget = {.preemptions = 2, .ticks = 1, .rests = 4},
         .more = {.preemptions = 4, .ticks = 2, .rests = 4})

SCENARIO(registers_refused, set_up_refused, "registers-refused", "a helper whose registers cannot be closed only naps",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 2, .refusals = 2, .rests = 4},
         .more = {.preemptions = 6, .refusals = 3, .ticks = 1, .rests = 4})

SCENARIO(registers_arm, set_up_arm, "registers-arm",
         "a thread that arms a completion queue for the first time is heard beside one that posts",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 3, .ticks = 1, .rests = 4},
         .more = {.preemptions = 5, .ticks = 2, .rests = 4})

SCENARIO(registers_first, set_up_first, "registers-first",
         "a helper that sleeps when the program makes its first queue in memory hears of it",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 4, .ticks = 1, .rests = 4},
         .more = {.preemptions = 6, .ticks = 2, .rests = 4})

SCENARIO(registers_pass, set_up_pass, "registers-pass", "a store that has faulted is executed before long",
         .checks = {nothing_is_lost, NULL}, .budget = {.preemptions = 5, .rests = 4},
         .more = {.preemptions = 6, .rests = 4})
