/* The host's table: processes join, take a block of numbers, leave, die, and sweep up after those who died. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ipc/table.h"
#include "rig.h"
#include "seam.h"
#include "trace.h"

enum { LOCK_BYTE = TABLE_SLOTS };
_Static_assert(TABLE_SLOTS <= 4 && TABLE_BLOCKS <= 8,
               "edit.py makes the table small, or a step of the model takes seconds");

/* The value in scratch[] that the process holds, as it believes. 0: nothing. */
static uint64_t *held(unsigned process)
{
    return &rig_notes()->scratch[process];
}

static struct table *join(unsigned process)
{
    struct table *table;
    char why[256];
    int error = ESTALE;
    for (int i = 0; i < 8 && error == ESTALE; i++) { /* as ipc/node.c does */
        error = table_open(&table, RIG_DIRECTORY, true, why, sizeof why);
        if (error)
            schedule_violation("%s can't open the table: %s", schedule_who(), why);
        error = table_join(table, why, sizeof why);
        if (error)
            table_close(table);
    }
    if (error)
        schedule_violation("%s can't join: %d", schedule_who(), error);
    table_announce(table);
    return table;
}

static struct table *become_member(unsigned process)
{
    struct table *table = join(process);
    uint32_t block;
    *held(process) = table_self(table);
    if (table_claim_block(table, TABLE_BLOCKS, &block))
        schedule_violation("%s gets no block", schedule_who());
    *held(process) |= (uint64_t)block << 32;
    trace_line(NULL, "is a member and has block %u", block);
    return table;
}

static void leave(unsigned process, struct table *table)
{
    *held(process) = 0;
    table_leave(table);
    table_close(table);
    rig_notes()->done[process] = 1;
}

static void be_member(void *argument)
{
    unsigned process = rig_process(argument);
    struct table *table = become_member(process);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* the others have their turn, whatever the bounds */
    leave(process, table);
}

static void only_leave(void *argument)
{
    leave(rig_process(argument), (struct table *)(uintptr_t)rig_notes()->scratch[4]);
}

static const struct table_file *file_now(void)
{
    int number = host_file_number(RIG_DIRECTORY "/table");
    return number < 0 ? NULL : (const struct table_file *)(const void *)memory_file((unsigned)number)->base;
}

static const char *accuse(unsigned process, const char *what)
{
    static char text[96];
    snprintf(text, sizeof text, "%s lives and %s", schedule_process_at(process)->name, what);
    return text;
}

static const char *holds_its_own(const struct table_file *file, unsigned process)
{
    uint32_t self = (uint32_t)*held(process), block = (uint32_t)(*held(process) >> 32);
    unsigned slot = table_owner_slot(self);
    if (host_lock_holder(RIG_DIRECTORY "/table", slot) != (int)process)
        return accuse(process, "has lost the lock of its slot");
    if (atomic_load(&file->slots[slot].state) != TABLE_LIVE)
        return accuse(process, "its slot is not LIVE");
    if (host_lock_holder(RIG_DIRECTORY "/table", LOCK_BYTE) == (int)process)
        return accuse(process, "keeps all others from joining");
    if (table_owner(slot, atomic_load(&file->slots[slot].generation)) != self)
        return accuse(process, "somebody else has its slot");
    return block && atomic_load(&file->blocks[block]) != self ? accuse(process, "has lost its block") : NULL;
}

static const char *all_hold_their_own(void)
{
    const struct table_file *file = file_now();
    const char *wrong = NULL;
    for (unsigned i = 0; i < schedule_processes() && !wrong; i++)
        if (!schedule_process_at(i)->dead && *held(i))
            wrong = file ? holds_its_own(file, i) : accuse(i, "there is no table");
    return wrong;
}

static const char *all_are_done(void)
{
    for (unsigned i = 0; i < schedule_processes(); i++) {
        const struct model_process *process = schedule_process_at(i);
        if (!process->dead && !process->stopped && !rig_notes()->done[i])
            return accuse(i, "does not come to its end");
    }
    for (unsigned byte = 0; byte <= LOCK_BYTE; byte++) {
        int holder = host_lock_holder(RIG_DIRECTORY "/table", byte);
        if (holder >= 0 && !schedule_process_at((unsigned)holder)->stopped)
            return "a lock of the table is held by nobody who needs it";
    }
    return NULL;
}

static bool are_others_through(const void *nothing)
{
    bool through = true;
    for (unsigned i = 0; i < C; i++)
        through &= rig_notes()->done[i] || schedule_process_at(i)->dead;
    return through;
}

/* The process that joins last finds nothing of the others. */
static void come_last(void *argument)
{
    unsigned process = rig_process(argument);
    schedule_wait(are_others_through, NULL, NANOS_NEVER);
    struct table *table = join(process);
    uint32_t self = table_self(table);
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        if (i != table_owner_slot(self) && atomic_load(&table->file->slots[i].state) != TABLE_FREE)
            schedule_violation("slot %u of somebody who is gone is not free after a sweep", i);
    for (unsigned i = 0; i < TABLE_BLOCKS; i++)
        if (atomic_load(&table->file->blocks[i]))
            schedule_violation("block %u of somebody who is gone is not free after a sweep", i);
    leave(process, table);
}

static void start_with(model_body *first)
{
    static const char *const names[] = {"A", "B", "C"};
    model_body *const bodies[] = {first, be_member, come_last};
    for (unsigned i = 0; i < 3; i++) {
        schedule_process(names[i]);
        schedule_thread(schedule_process_at(i), names[i], bodies[i], rig_number(i));
    }
    schedule_process_at(A)->may_die = true;
    schedule_process_at(B)->may_die = true;
}

static void start(void)
{
    start_with(be_member);
}

static void write_version(uint32_t version)
{
    struct table_file *file = (struct table_file *)(void *)memory_file(0)->base;
    memory_store(&file->head.layout, sizeof file->head.layout, version);
}

static void make_table(void)
{
    struct table *table;
    char why[256];
    schedule_as(schedule_process_at(C));
    if (table_open(&table, RIG_DIRECTORY, true, why, sizeof why))
        schedule_violation("%s", why);
    table_close(table);
    schedule_as(NULL);
}

/* D was a member and has died. */
static void leave_a_dead_one(void)
{
    schedule_as(schedule_process("D"));
    become_member(D);
    schedule_as(NULL);
    schedule_process_at(D)->dead = true;
    host_process_ends(D);
}

static void set_up_members(void)
{
    start();
    make_table();
    leave_a_dead_one();
}

SCENARIO(members, set_up_members, "members", "who lives keeps its slot and its block, who died keeps nothing",
         .checks = {all_are_done, all_hold_their_own}, .budget = {.preemptions = 1, .deaths = 1, .rests = 20},
         .more = {.preemptions = 2, .deaths = 2, .ticks = 1, .rests = 20})

static void set_up_leaving(void)
{
    start_with(only_leave);
    make_table();
    schedule_as(schedule_process_at(A));
    rig_notes()->scratch[4] = (uintptr_t)become_member(A);
    schedule_as(NULL);
}

SCENARIO(leaving, set_up_leaving, "leaving",
         "who leaves takes nothing from who joins just then", .checks = {all_are_done, all_hold_their_own},
         .budget = {.preemptions = 1, .deaths = 1, .rests = 20},
         .more = {.preemptions = 3, .deaths = 2, .ticks = 1, .rests = 20})

SCENARIO(first_table, start, "first-table",
         "processes that make the table at the same time meet in one", .checks = {all_are_done, all_hold_their_own},
         .budget = {.preemptions = 1, .deaths = 1, .rests = 20},
         .more = {.preemptions = 2, .deaths = 2, .ticks = 1, .rests = 20})

static void set_up_another(void)
{
    start();
    make_table();
    write_version(1);
}

SCENARIO(another, set_up_another, "another-version",
         "processes that replace a table of another version at the same time meet in one",
         .checks = {all_are_done, all_hold_their_own}, .budget = {.preemptions = 1, .deaths = 1, .rests = 20},
         .more = {.preemptions = 2, .deaths = 2, .ticks = 1, .rests = 20})
