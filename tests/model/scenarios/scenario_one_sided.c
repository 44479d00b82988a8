/* WRITEs and READs that a requester does by itself in its owner's memory (link/direct.h), and an owner that takes away
 * what permits them: a key, a queue pair's number, or itself. Then the memory is the program's again. */
#include <stdio.h>
#include <string.h>

#include "ipc/state.h"
#include "process/process.h"
#include "rig.h"
#include "seam.h"
#include "trace.h"
#include "verbs/memory/publish.h"

enum {
    LENGTH = 24, /* the last aligned word lands after the others */
    REGIONS = 2,
    BEFORE = 0x11,
    WRITTEN = 0x77,
    REUSED = 0x33,
    FIRST_PSN = 1,
    OWN_PSN = 2,
    LATER_PSN = 3,
};

/* B is the owner; all others are requesters, and each has a part of each region. Outside of all processes. */
struct plan {
    struct process *process; /* B's */
    struct mr *regions[REGIONS];
    uint32_t keys[REGIONS];
    uint8_t *targets[REGIONS];
    uint8_t *local[RIG_PROCESSES];
    struct peer *owner[RIG_PROCESSES];        /* B, as each requester knows it */
    uint32_t taken[REGIONS], reused[REGIONS]; /* the program begins to use the memory anew, and has done so */
    uint32_t landed[REGIONS][RIG_PROCESSES];  /* whose WRITE was there when it began */
    uint32_t returned;                        /* bodies of the owner that are through */
    uint32_t bodies;
};

static struct plan *plan(void)
{
    return (struct plan *)(void *)(rig_notes() + 1);
}

/* --- what must hold */

/* Asked by anybody, of anybody's memory. */
static bool is_all(const uint8_t *bytes, size_t size, uint8_t value)
{
    while (size && memory_load(&bytes[size - 1], 1) == value)
        size--;
    return !size;
}

static const char *judge_region(unsigned i)
{
    const uint8_t *target = plan()->targets[i];
    if (plan()->reused[i])
        return is_all(target, LENGTH * RIG_PROCESSES, REUSED) ? NULL
                                                              : "memory is written that its owner has taken back";
    for (unsigned part = 0; part < RIG_PROCESSES; part++, target += LENGTH)
        if (target[LENGTH - 1] == WRITTEN && !is_all(target, LENGTH, WRITTEN))
            return "the last byte of a WRITE is seen before another";
    return NULL;
}

static const char *nothing_is_written(void)
{
    const char *wrong = NULL;
    for (unsigned i = 0; i < REGIONS && !wrong; i++)
        wrong = judge_region(i);
    return wrong;
}

static const char *owner_returns(void)
{
    return plan()->returned == plan()->bodies ? NULL : "the owner waits for ever for a requester";
}

/* --- the requester */

static struct published_question question_of(unsigned self, bool write, unsigned region)
{
    return (struct published_question){.write = write,
                                       .number = rig_notes()->numbers[B] + self,
                                       .own_number = rig_notes()->numbers[self],
                                       .first_psn = FIRST_PSN,
                                       .own_psn = OWN_PSN,
                                       .key = plan()->keys[region],
                                       .address = self * LENGTH,
                                       .length = LENGTH,
                                       .max_rd_atomic = write ? 0 : 1};
}

/* Accesses the region, and in the same call the `more` regions after it. */
static bool access_some(unsigned self, bool write, unsigned region, unsigned more)
{
    struct iovec pieces[REGIONS];
    struct published_question questions[REGIONS];
    for (unsigned i = 0; i <= more; i++) {
        pieces[i] = (struct iovec){plan()->local[self], LENGTH};
        questions[i] = question_of(self, write, region + i);
    }
    struct direct_access access = {
        .question = questions[0], .pieces = pieces, .count = 1 + more, .more = questions + 1, .more_count = more};
    struct link *link = plan()->owner[self]->link;
    bool done = shm_direct(link, &access);
    trace_line(NULL, "%s of region %u%s: %s", write ? "WRITE" : "READ", region, more ? " and the next" : "",
               done ? "done" : "goes as packets");
    return done;
}

static bool has_landed(unsigned region, unsigned self)
{
    return is_all(plan()->targets[region] + self * LENGTH, LENGTH, WRITTEN);
}

/* A WRITE that is done has landed: at the latest when the owner took the memory back. */
static void expect_landed(unsigned self, unsigned region)
{
    if (!(plan()->taken[region] ? plan()->landed[region][self] : has_landed(region, self)))
        schedule_violation("a WRITE is done that has not been");
}

static void write_once(unsigned self, unsigned region)
{
    if (access_some(self, true, region, 0))
        expect_landed(self, region);
}

static void write_list(void *process)
{
    unsigned self = rig_process(process);
    if (!access_some(self, true, 0, 1))
        return;
    expect_landed(self, 0);
    expect_landed(self, 1);
}

static void write_first(void *process)
{
    write_once(rig_process(process), 0);
}

static void write_both(void *process)
{
    write_once(rig_process(process), 0);
    write_once(rig_process(process), 1);
}

static void write_twice(void *process)
{
    write_once(rig_process(process), 0);
    write_once(rig_process(process), 0);
}

/* The requester's last deed on the host, while another of its threads may be within a WRITE. */
static void leave_meanwhile(void *process)
{
    node_leave_host(rig_notes()->nodes[rig_process(process)]);
}

static void read_once(void *process)
{
    unsigned self = rig_process(process);
    if (access_some(self, false, 0, 0) && !is_all(plan()->local[self], LENGTH, BEFORE))
        schedule_violation("a READ is done with what its owner wrote after it took the memory back");
}

/* --- the owner */

static void reuse(unsigned region)
{
    uint8_t *target = plan()->targets[region];
    plan()->taken[region] = 1;
    for (unsigned i = 0; i < RIG_PROCESSES; i++)
        plan()->landed[region][i] = has_landed(region, i);
    for (unsigned half = 0; half < 2; half++) {
        schedule_step();
        memset(target + half * LENGTH * RIG_PROCESSES / 2, REUSED, LENGTH * RIG_PROCESSES / 2);
        trace_line(NULL, "uses region %u for something else%s", region, half ? "" : ", in part");
    }
    plan()->reused[region] = 1;
}

static void body_ends(void)
{
    schedule_step();
    plan()->returned++;
}

static void deregister(unsigned region)
{
    trace_line(NULL, "deregisters region %u", region);
    publish_no_region(plan()->process, plan()->regions[region]);
    reuse(region);
}

/* Another region takes the place of the first, in memory that no peer may read. */
static void register_another(void)
{
    struct mr *mr = plan()->regions[0];
    mr->region.key += 0x401;
    mr->region.memory = (char *)plan()->targets[1];
    publish_region(plan()->process, mr);
}

static void take_key(void *argument)
{
    deregister(0);
    body_ends();
}

static void take_second_key(void *argument)
{
    deregister(1);
    body_ends();
}

static void take_keys(void *argument)
{
    deregister(0);
    deregister(1);
    body_ends();
}

static void take_keys_backwards(void *argument)
{
    deregister(1);
    deregister(0);
    body_ends();
}

static void take_and_give_key(void *argument)
{
    deregister(0);
    register_another();
    body_ends();
}

static struct published_queue_pair queue_pair_for(unsigned requester, uint32_t peer_psn)
{
    return (struct published_queue_pair){.peer = rig_notes()->numbers[requester],
                                         .access = PUBLISHED_WRITE | PUBLISHED_READ,
                                         .first_psn = FIRST_PSN,
                                         .peer_psn = peer_psn,
                                         .max_dest_rd_atomic = 1,
                                         .domain = (uintptr_t)plan()->process};
}

/* Resets and connects anew, as qp_unpublish and qp_publish do it. */
static void take_queue_pair(void *argument)
{
    struct node *node = rig_notes()->nodes[B];
    uint32_t number = rig_notes()->numbers[B] + A;
    const struct published_queue_pair later = queue_pair_for(A, LATER_PSN);
    if (published_withdraw_queue_pair(node_published(node), number))
        node_quiesce(node);
    reuse(0);
    published_queue_pair(node_published(node), number, &later);
    body_ends();
}

static void leave(void *argument)
{
    struct node *node = rig_notes()->nodes[B];
    node_leave_host(node);
    reuse(0);
    node_close(node);
    reuse(1);
    body_ends();
}

static void take_mail(void *argument)
{
    rig_turn(B);
    body_ends();
}

/* --- what is there before */

static void register_region(unsigned i)
{
    struct mr *mr = model_calloc(1, sizeof *mr);
    plan()->targets[i] = model_calloc(1, LENGTH * RIG_PROCESSES);
    memset(plan()->targets[i], BEFORE, LENGTH * RIG_PROCESSES);
    mr->region.kind = REGION_MEMORY;
    mr->region.key = plan()->keys[i] = (i + 1) << 8 | 1;
    mr->region.pd = (void *)plan()->process;
    mr->region.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    mr->region.memory = (char *)plan()->targets[i];
    mr->region.length = LENGTH * RIG_PROCESSES;
    plan()->regions[i] = mr;
    publish_region(plan()->process, mr);
}

static void begin_owner(unsigned count)
{
    struct node *node = rig_notes()->nodes[B];
    schedule_as(schedule_process_at(B));
    plan()->process = model_calloc(1, sizeof *plan()->process);
    plan()->process->node = node;
    node_vouch(node);
    published_open(node_published(node), true);
    for (unsigned i = 0; i < REGIONS; i++)
        register_region(i);
    for (unsigned i = 0; i < count; i++) {
        const struct published_queue_pair queue_pair = queue_pair_for(i, OWN_PSN);
        if (i != B && !published_queue_pair(node_published(node), rig_notes()->numbers[B] + i, &queue_pair))
            schedule_violation("the queue pair for %u is not published", i);
    }
    schedule_as(NULL);
}

static void begin_requester(unsigned i)
{
    schedule_as(schedule_process_at(i));
    plan()->local[i] = model_calloc(1, LENGTH);
    memset(plan()->local[i], WRITTEN, LENGTH);
    plan()->owner[i] = node_find(rig_notes()->nodes[i], rig_notes()->numbers[B]);
    schedule_as(NULL);
    schedule_process_at(i)->may_die = schedule_process_at(i)->may_stop = true;
}

/* The control message with the requester's ring may still be unread by the owner. */
static void join(unsigned count, bool mapped)
{
    host_direct(true);
    rig_join(count);
    for (unsigned i = 0; i < count; i++) {
        if (i == B)
            continue;
        rig_attach(B, i);
        if (mapped)
            rig_attach(i, B);
        else {
            schedule_as(schedule_process_at(i));
            rig_send(i, B, 0);
            schedule_as(NULL);
        }
    }
    begin_owner(count);
    for (unsigned i = 0; i < count; i++)
        if (i != B)
            begin_requester(i);
}

static void add_requester(unsigned i, const char *name, model_body *body)
{
    schedule_thread(schedule_process_at(i), name, body, rig_number(i));
}

static void add_owner(const char *name, model_body *body)
{
    schedule_thread(schedule_process_at(B), name, body, NULL);
    plan()->bodies++;
}

static void one_of_each(model_body *requester, model_body *owner)
{
    join(2, true);
    rig_keep_members();
    add_requester(A, "A", requester);
    add_owner("B", owner);
}

/* --- scenarios */

static void set_up_key(void)
{
    one_of_each(write_twice, take_key);
}

SCENARIO(one_sided_key, set_up_key, "one-sided-key",
         "no byte is written once a key was taken away, and the owner does not wait for the dead or the stopped",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .continues = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_interrupted(void)
{
    one_of_each(write_twice, take_key);
    host_refuse(HOST_INTERRUPTS, 1 << A);
}

SCENARIO(one_sided_interrupted, set_up_interrupted, "one-sided-interrupted",
         "the same for a requester whose signal handler computes for long, before or behind its call",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = 3, .stops = 1, .refusals = 1, .rests = 16},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .continues = 1, .refusals = 1, .ticks = 1,
                  .rests = 16})

SCENARIO(one_sided_held, set_up_key, "one-sided-held-stores",
         "the same where processors hold stores back", .checks = {owner_returns, nothing_is_written},
         .hold_stores = true, .budget = {.preemptions = 3, .stops = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .rests = 12})

static void set_up_keys(void)
{
    one_of_each(write_both, take_keys);
}

SCENARIO(one_sided_keys, set_up_keys, "one-sided-keys",
         "the same for an owner that takes one key after the other from a requester that may be forbidden",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = 1, .deaths = 1, .stops = 1, .continues = 1, .rests = 24},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 24})

static void set_up_list(void)
{
    one_of_each(write_list, take_keys_backwards);
}

SCENARIO(one_sided_list, set_up_list, "one-sided-list",
         "the same for several WRITEs in one call, which lose their keys one by one",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = 3, .deaths = 1, .stops = 1, .rests = 24},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 24})

static void set_up_queue_pair(void)
{
    one_of_each(write_twice, take_queue_pair);
}

SCENARIO(one_sided_queue_pair, set_up_queue_pair, "one-sided-queue-pair",
         "no byte is written once a queue pair was taken away, also when its number is connected anew",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_leaving(void)
{
    join(2, true);
    add_requester(A, "A", write_first);
    add_owner("B", leave);
}

SCENARIO(one_sided_leaving, set_up_leaving, "one-sided-leaving",
         "no byte is written once the owner has left the host and unmapped its rings",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = 2, .deaths = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

/* Joins when A may have died, and takes its slot then. */
static void succeed(void *argument)
{
    struct table *table;
    char why[256];
    if (!table_open(&table, RIG_DIRECTORY, true, why, sizeof why) && !table_join(table, why, sizeof why))
        table_announce(table);
}

static void set_up_successor(void)
{
    join(2, true);
    add_requester(A, "A", write_first);
    add_owner("B", take_key);
    schedule_thread(schedule_process("C"), "C", succeed, NULL);
}

SCENARIO(one_sided_successor, set_up_successor, "one-sided-successor",
         "the owner does not wait for one who died, also when another has its slot by then",
         .checks = {owner_returns, nothing_is_written}, .budget = {.preemptions = 1, .deaths = 1, .rests = 12},
         .more = {.preemptions = 2, .deaths = 1, .stops = 1, .rests = 12})

static void set_up_two_requesters(void)
{
    join(3, true);
    rig_keep_members();
    add_requester(A, "A", write_first);
    add_requester(C, "C", write_first);
    add_owner("B", take_key);
}

SCENARIO(one_sided_requesters, set_up_two_requesters, "one-sided-requesters",
         "no byte is written by either of two requesters once a key was taken away",
         .checks = {owner_returns, nothing_is_written}, .budget = {.deaths = 1, .stops = 1, .rests = 24},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 24})

static void set_up_pair(void)
{
    join(2, true);
    rig_keep_members();
    add_requester(A, "A", write_first);
    add_requester(A, "A's second", write_first);
    add_owner("B", take_key);
}

SCENARIO(one_sided_pair, set_up_pair, "one-sided-pair",
         "the same for two threads of one requester", .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = 1, .deaths = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = 4, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_requester_leaves(void)
{
    join(2, true);
    add_requester(A, "A", write_first);
    add_requester(A, "A's second", leave_meanwhile);
    add_owner("B", take_key);
}

SCENARIO(one_sided_parting, set_up_requester_leaves, "one-sided-parting",
         "the same for a requester that leaves the host while another of its threads writes",
         .checks = {owner_returns, nothing_is_written}, .budget = {.preemptions = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = 3, .deaths = 1, .stops = 1, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_two_owners(void)
{
    join(2, true);
    rig_keep_members();
    add_requester(A, "A", write_both);
    add_owner("B", take_key);
    add_owner("B's second", take_second_key);
}

SCENARIO(one_sided_threads, set_up_two_owners, "one-sided-threads",
         "the same for an owner of which two threads take away a key each",
         .checks = {owner_returns, nothing_is_written}, .budget = {.preemptions = 1, .stops = 1, .rests = 24},
         .more = {.preemptions = 4, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 24})

static void set_up_mail(void)
{
    join(2, false);
    rig_keep_members();
    add_requester(A, "A", write_twice);
    add_owner("B", take_key);
    add_owner("B's helper", take_mail);
}

SCENARIO(one_sided_mail, set_up_mail, "one-sided-mail",
         "the same for an owner whose helper maps the requester's ring just then",
         .checks = {owner_returns, nothing_is_written}, .budget = {.preemptions = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = 4, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_read(void)
{
    one_of_each(read_once, take_and_give_key);
}

SCENARIO(one_sided_read, set_up_read, "one-sided-read",
         "no READ is done with what was there after its key was taken away, also when its place has another",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})

static void set_up_read_queue_pair(void)
{
    one_of_each(read_once, take_queue_pair);
}

SCENARIO(one_sided_read_number, set_up_read_queue_pair, "one-sided-read-number",
         "no READ is done with what was there after its queue pair was taken away",
         .checks = {owner_returns, nothing_is_written},
         .budget = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 1, .rests = 12},
         .more = {.preemptions = ANY_NUMBER, .deaths = 1, .stops = 2, .continues = 1, .ticks = 1, .rests = 12})
