/* Joining, leaving, dying, forking; and what others see of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/table.h"
#include "ipc/testing/node_rig.h"

enum { MEMBERS = 16, BLOCKS_EACH = 20, DEATHS = 50 };

static const uint8_t group[16] = {0xff, 0x0e, [15] = 7};

struct stage {
    atomic_uint arrived, go;
    _Atomic uint32_t numbers[MEMBERS * BLOCKS_EACH];
    atomic_uint taken;
};

static void ignore_frame(void *context, struct peer *peer, const struct frame *frame)
{
    if (context)
        ++*(unsigned *)context;
}

static void await(atomic_uint *value, unsigned least)
{
    PATIENTLY_WHILE (atomic_load(value) < least)
        usleep(200);
}

static struct stage *open_stage(char *directory)
{
    rig_directory(directory);
    return rig_share(sizeof(struct stage));
}

static void close_stage(struct stage *stage, const char *directory)
{
    rig_remove(directory);
    rig_unshare(stage, sizeof *stage);
}

/* ------------------------------------------------------------------ numbers */

static int claim_many(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    atomic_fetch_add(&stage->arrived, 1);
    await(&stage->arrived, MEMBERS);
    for (unsigned i = 0; i < BLOCKS_EACH; i++) {
        uint32_t first;
        if (node_claim_numbers(node, NODE_NUMBERS, &first))
            return 1;
        stage->numbers[atomic_fetch_add(&stage->taken, 1)] = first;
    }
    await(&stage->taken, MEMBERS * BLOCKS_EACH);
    rig_close(node);
    return 0;
}

static void numbers_are_unique_among_processes(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    pid_t members[MEMBERS];
    bool seen[TABLE_BLOCKS] = {false};
    for (unsigned i = 0; i < MEMBERS; i++)
        members[i] = rig_start(claim_many, directory, stage);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(rig_wait(members[i], 30), 0);
    for (unsigned i = 0; i < MEMBERS * BLOCKS_EACH; i++) {
        uint32_t first = stage->numbers[i];
        assert_true(first >= 256 && first < 1u << 24 && first % NODE_BLOCK == 0);
        assert_false(seen[first / NODE_BLOCK]);
        seen[first / NODE_BLOCK] = true;
    }
    close_stage(stage, directory);
}

static void a_returned_block_is_given_out_last(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    struct node *node = rig_open(directory);
    uint32_t first, other;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &first), 0);
    node_return_numbers(node, first);
    assert_null(node_find(node, first));
    for (unsigned i = 1; i < TABLE_BLOCKS - 2; i++) { /* the first and the last are never given */
        assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &other), 0);
        assert_int_not_equal(other, first);
    }
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &other), 0);
    assert_int_equal(other, first);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &other), ENOSPC);
    rig_close(node);
    rig_remove(directory);
}

static int claim_all_and_die(const char *directory, void *context)
{
    struct node *node = rig_open(directory);
    uint32_t first;
    while (!node_claim_numbers(node, NODE_NUMBERS, &first))
        ;
    raise(SIGKILL);
    return 0;
}

static void numbers_of_the_dead_are_found_again(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint32_t first;
    rig_directory(directory);
    struct node *node = rig_open(directory); /* before: its joining sweeps nothing */
    assert_int_equal(rig_wait(rig_start(claim_all_and_die, directory, NULL), 10), 128 + SIGKILL);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &first), 0);
    rig_close(node);
    rig_remove(directory);
}

/* ------------------------------------------------------------------ death */

/* Sends to the witness as fast as it can, until it is killed. */
static int chatter(const char *directory, void *context)
{
    struct stage *stage = context;
    static uint8_t bytes[100000];
    uint32_t own;
    struct node *node = rig_open(directory);
    node_claim_numbers(node, NODE_NUMBERS, &own);
    node_join(node, group);
    stage->numbers[1] = own;
    for (unsigned i = 0;; i++) {
        rig_send(node, stage->numbers[0], bytes, i % 3 ? 64 : LINK_SEGMENT, true, ignore_frame, NULL);
        atomic_store(&stage->go, 1);
        rig_turn(node, ignore_frame, NULL);
    }
    return 0;
}

static void count_entry(const struct node_entry *entry, void *context)
{
    ++*(unsigned *)context;
}

static unsigned count_listed(const char *directory)
{
    char why[256];
    unsigned count = 0;
    assert_int_equal(node_list(directory, count_entry, &count, why, sizeof why), 0);
    return count;
}

/* Kills a process while the witness talks with it; the witness notices. */
static void kill_one(struct node *node, const char *directory, struct stage *stage, unsigned delay)
{
    atomic_store(&stage->go, 0);
    pid_t victim = rig_start(chatter, directory, stage);
    PATIENTLY_WHILE (!atomic_load(&stage->go))
        rig_turn(node, ignore_frame, NULL);
    struct peer *peer = node_find(node, stage->numbers[1]);
    assert_non_null(peer);
    assert_int_equal(peer->pid, victim);
    assert_true(node_alive(node, peer));
    for (unsigned i = 0; i < delay; i++) {
        rig_turn(node, ignore_frame, NULL);
        if (i % 8 == 0)
            rig_send(node, stage->numbers[1], &delay, sizeof delay, false, ignore_frame, NULL);
    }
    kill(victim, SIGKILL);
    rig_wait(victim, 10);
    assert_false(node_alive(node, peer));
    assert_true(peer->gone);
    node_put(node, peer);
    rig_turn(node, ignore_frame, NULL);
    assert_null(node_find(node, stage->numbers[1]));
}

static unsigned count_descriptors(void)
{
    return rig_count("/proc/self/fd", "");
}

static unsigned count_mappings(void)
{
    char line[512];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:softverbs") != NULL;
    fclose(maps);
    return count;
}

static void the_killed_are_noticed_and_swept(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    uint32_t own;
    unsigned descriptors = count_descriptors(), mappings = count_mappings(), seed = 1;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &own), 0);
    stage->numbers[0] = own;
    for (unsigned i = 0; i < DEATHS; i++) {
        kill_one(node, directory, stage, (seed = seed * 1103515245 + 12345) >> 20);
        assert_int_equal(node_departures(node), i + 1);
    }
    assert_int_equal(node_sweep(directory), 1); /* the last; each had swept the one before */
    assert_int_equal(count_listed(directory), 1);
    assert_int_equal(rig_count(directory, ""), 2); /* the table and our socket */
    while (rig_turn(node, ignore_frame, NULL))
        ;
    rig_turn(node, ignore_frame, NULL);
    assert_int_equal(count_descriptors(), descriptors);
    assert_int_equal(count_mappings(), mappings);
    rig_close(node);
    assert_int_equal(rig_count(directory, ""), 1);
    assert_int_equal(count_listed(directory), 0);
    close_stage(stage, directory);
}

static int come_and_go(const char *directory, void *context)
{
    struct node *node;
    char why[256];
    uint32_t first;
    for (unsigned i = 0; i < 100000; i++) {
        if (node_open(&node, directory, why, sizeof why))
            return 1;
        node_claim_numbers(node, NODE_NUMBERS, &first);
        node_join(node, group);
        node_close(node);
    }
    return 0;
}

static bool is_swept_clean(const struct table_file *file)
{
    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        if (atomic_load(&file->slots[i].state) != TABLE_FREE)
            return false;
    for (unsigned i = 0; i < TABLE_BLOCKS; i++)
        if (atomic_load(&file->blocks[i]))
            return false;
    for (unsigned i = 0; i < TABLE_JOINS; i++)
        if (atomic_load(&file->joins[i].owner))
            return false;
    return true;
}

/* Several at once, killed at any moment of joining, claiming and leaving. */
static void death_while_coming_or_going_leaves_nothing(void **state)
{
    enum { ROUNDS = 40, CROWD = 3 };
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    unsigned seed = 5;
    rig_directory(directory);
    for (unsigned round = 0; round < ROUNDS; round++) {
        pid_t crowd[CROWD];
        struct table *table;
        for (unsigned i = 0; i < CROWD; i++)
            crowd[i] = rig_start(come_and_go, directory, NULL);
        usleep((seed = seed * 1103515245 + 12345) >> 18);
        for (unsigned i = 0; i < CROWD; i++)
            kill(crowd[i], SIGKILL);
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(rig_wait(crowd[i], 10), 128 + SIGKILL);
        assert_true(node_sweep(directory) >= 0);
        if (!rig_count(directory, "table"))
            continue;
        assert_int_equal(rig_count(directory, ""), 1);
        assert_int_equal(table_open(&table, directory, false, why, sizeof why), 0);
        assert_true(is_swept_clean(table->file));
        table_close(table);
    }
    rig_remove(directory);
}

/* ------------------------------------------------------------------ groups */

static void note_member(struct peer *peer, void *context)
{
    ++*(unsigned *)context;
}

static unsigned count_members(struct node *node)
{
    unsigned count = 0;
    node_members(node, group, note_member, &count);
    return count;
}

static void a_group_has_the_processes_that_joined(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->numbers[0]), 0);
    assert_int_equal(node_leave(node, group), EINVAL);
    assert_int_equal(count_members(node), 0);
    assert_int_equal(node_join(node, group), 0);
    assert_int_equal(node_join(node, group), 0);
    assert_int_equal(count_members(node), 1);
    pid_t victim = rig_start(chatter, directory, stage);
    PATIENTLY_WHILE (!atomic_load(&stage->go))
        rig_turn(node, ignore_frame, NULL);
    assert_int_equal(count_members(node), 2);
    kill(victim, SIGKILL);
    rig_wait(victim, 10);
    assert_int_equal(node_sweep(directory), 1);
    assert_int_equal(count_members(node), 1);
    assert_int_equal(node_leave(node, group), 0);
    assert_int_equal(count_members(node), 1);
    assert_int_equal(node_leave(node, group), 0);
    assert_int_equal(count_members(node), 0);
    assert_int_equal(node_leave(node, group), EINVAL);
    rig_close(node);
    close_stage(stage, directory);
}

static void the_table_of_joins_can_be_full(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint8_t any[16] = {0};
    rig_directory(directory);
    struct node *node = rig_open(directory);
    for (unsigned i = 0; i < TABLE_JOINS; i++) {
        memcpy(any, &i, sizeof i);
        assert_int_equal(node_join(node, any), 0);
    }
    assert_int_equal(node_join(node, group), ENOSPC);
    assert_int_equal(node_leave(node, any), 0);
    assert_int_equal(node_join(node, group), 0);
    rig_close(node);
    rig_remove(directory);
}

/* ------------------------------------------------------------------ a process that is stopped with the table's lock */

static int keep_the_lock(const char *directory, void *context)
{
    char why[256];
    struct table *table;
    if (table_open(&table, directory, false, why, sizeof why) || table_lock(table))
        return 1;
    raise(SIGSTOP);
    table_unlock(table);
    table_close(table);
    return 0;
}

static int fail_to_join(const char *directory, void *context)
{
    char why[256], holder[32];
    struct node *node;
    snprintf(holder, sizeof holder, "Process %d ", *(pid_t *)context);
    return node_open(&node, directory, why, sizeof why) == EBUSY && strstr(why, holder) ? 0 : 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A joined process needs the lock only to sweep, and can do without; a process that joins gets the number of its
 * holder. */
static void a_stopped_holder_of_the_lock_holds_up_nobody_for_long(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint8_t any[16] = {0};
    int status;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    for (unsigned i = 0; i < TABLE_JOINS; i++) {
        memcpy(any, &i, sizeof i);
        assert_int_equal(node_join(node, any), 0);
    }
    pid_t *holder = rig_share(sizeof *holder);
    *holder = rig_start(keep_the_lock, directory, NULL);
    assert_int_equal(waitpid(*holder, &status, WUNTRACED), *holder);
    assert_true(WIFSTOPPED(status));
    pid_t newcomer = rig_start(fail_to_join, directory, holder);
    double begun = seconds();
    assert_int_equal(node_join(node, group), ENOSPC);
    assert_true(seconds() - begun < 2);
    assert_int_equal(node_leave(node, any), 0);
    assert_int_equal(node_join(node, group), 0);
    assert_int_equal(rig_wait(newcomer, 20), 0);
    kill(*holder, SIGCONT);
    assert_int_equal(rig_wait(*holder, 10), 0);
    rig_close(node);
    rig_unshare(holder, sizeof *holder);
    rig_remove(directory);
}

/* ------------------------------------------------------------------ leaving and joining in crowds */

/* Sends one message and leaves at once. */
static int say_and_leave(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    bool sent = rig_send(node, stage->numbers[0], "bye", 4, false, ignore_frame, NULL);
    rig_close(node);
    return sent ? 0 : 1;
}

static void what_was_sent_before_leaving_arrives(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    unsigned received = 0;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->numbers[0]), 0);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(rig_wait(rig_start(say_and_leave, directory, stage), 10), 0);
        rig_sleep_and_turn(node, ignore_frame, &received, 1000);
        rig_turn(node, ignore_frame, &received);
        assert_int_equal(received, i + 1);
    }
    assert_int_equal(node_departures(node), 20);
    rig_close(node);
    close_stage(stage, directory);
}

static bool is_readable(const struct node *node)
{
    struct pollfd socket = {.fd = node_fd(node), .events = POLLIN};
    return poll(&socket, 1, 0) == 1;
}

/* A poll reads the message that attaches a ring, and so maybe a doorbell after it, which was for the sleeper. */
static void a_doorbell_that_a_poller_reads_still_wakes_the_sleeper(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    unsigned received = 0;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->numbers[0]), 0);
    assert_true(node_sleep(node));
    assert_int_equal(rig_wait(rig_start(say_and_leave, directory, stage), 10), 0);
    assert_int_equal(node_receive(node, ignore_frame, &received, 1), 1);
    assert_true(is_readable(node));
    node_service(node, NULL, NULL);
    assert_false(is_readable(node));
    rig_close(node);
    close_stage(stage, directory);
}

/* A program that joins its helper's sleep begins no second one, so a sender that rings marks the existing one; a
 * program that finds no thread asleep begins a sleep. */
static void a_rest_joins_a_sleep_or_begins_one(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    unsigned received = 0;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->numbers[0]), 0);
    assert_true(node_sleep(node));
    assert_true(node_rest(node));
    assert_true(node_sleeping(node));
    node_awake(node);
    assert_false(node_sleeping(node));
    assert_true(node_rest(node));
    assert_true(node_sleeping(node));
    assert_int_equal(rig_wait(rig_start(say_and_leave, directory, stage), 10), 0);
    assert_true(is_readable(node));
    assert_false(node_rest(node));
    assert_int_equal(node_receive(node, ignore_frame, &received, 1), 1);
    rig_close(node);
    close_stage(stage, directory);
}

/* The directory is removed below running processes: they can still wake themselves, and so end. */
static void a_process_wakes_itself_without_the_directory(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    struct node *node = rig_open(directory);
    rig_remove(directory);
    assert_true(node_sleep(node));
    assert_false(is_readable(node));
    node_wake(node);
    assert_true(is_readable(node));
    node_service(node, NULL, NULL);
    assert_false(is_readable(node));
    node_close(node);
}

/* Sends one message and stays until all have arrived, sleeping. */
static int say_and_stay(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    atomic_fetch_add(&stage->arrived, 1);
    await(&stage->arrived, MEMBERS * 3);
    bool sent = rig_send(node, stage->numbers[0], "hello", 6, false, ignore_frame, NULL);
    PATIENTLY_WHILE (!atomic_load(&stage->go))
        rig_sleep_and_turn(node, ignore_frame, NULL, 50);
    rig_close(node);
    return sent ? 0 : 1;
}

static void a_crowd_can_attach_to_one_who_does_not_look(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    struct node *node = rig_open(directory);
    pid_t members[MEMBERS * 3];
    unsigned received = 0;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, (uint32_t *)&stage->numbers[0]), 0);
    for (unsigned i = 0; i < MEMBERS * 3; i++)
        members[i] = rig_start(say_and_stay, directory, stage);
    await(&stage->arrived, MEMBERS * 3);
    usleep(100000); /* the socket's queue holds some ten messages only */
    for (unsigned i = 0; i < 2000 && received < MEMBERS * 3; i++)
        rig_sleep_and_turn(node, ignore_frame, &received, 10);
    atomic_store(&stage->go, 1);
    assert_int_equal(received, MEMBERS * 3);
    for (unsigned i = 0; i < MEMBERS * 3; i++)
        assert_int_equal(rig_wait(members[i], 30), 0);
    assert_int_equal(rig_count(directory, ""), 2);
    rig_close(node);
    close_stage(stage, directory);
}

/* ------------------------------------------------------------------ fork */

static int abandon_in_child(struct node *node, struct peer *peer)
{
    node_abandon(node);
    const struct link_operations *link = peer->link->operations;
    struct frame frame = {.kind = FRAME_ROCE, .headers = (const uint8_t *)""};
    unsigned received = 0;
    link->begin(peer->link);
    bool swallowed = link->ready(peer->link) && link->send(peer->link, &frame);
    link->end(peer->link);
    return swallowed && !node_find(node, 256) && !node_alive(node, peer) &&
                   !node_receive(node, ignore_frame, &received, 1)
               ? 0
               : 1;
}

static void the_child_of_a_fork_disturbs_nobody(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint32_t own;
    unsigned received = 0;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &own), 0);
    struct peer *self = node_find(node, own);
    pid_t child = fork();
    if (!child)
        _exit(abandon_in_child(node, self));
    assert_int_equal(rig_wait(child, 10), 0);
    assert_int_equal(count_listed(directory), 1);
    assert_int_equal(rig_turn(node, ignore_frame, &received), 0);
    assert_true(rig_send(node, own, "x", 2, false, ignore_frame, NULL));
    assert_int_equal(rig_turn(node, ignore_frame, &received), 1);
    node_put(node, self);
    rig_close(node);
    assert_int_equal(rig_count(directory, ""), 1);
    rig_remove(directory);
}

/* ------------------------------------------------------------------ tools */

static void write_report(void *context, const char *request, int descriptor)
{
    for (unsigned i = 0; i < 20000; i++)
        if (write(descriptor, "0123456789", 10) != 10)
            return;
}

static int serve_reports(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node = rig_open(directory);
    atomic_store(&stage->arrived, 1);
    PATIENTLY_WHILE (!atomic_load(&stage->go)) {
        usleep(1000);
        node_service(node, write_report, NULL);
    }
    rig_close(node);
    return 0;
}

static off_t asked_size(const char *directory, unsigned slot, int *error, int milliseconds)
{
    int memory = memfd_create("answer", MFD_CLOEXEC);
    *error = node_ask(directory, slot, "", memory, milliseconds);
    off_t size = lseek(memory, 0, SEEK_END);
    close(memory);
    return size;
}

static void a_process_is_asked_for_its_report(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    int error;
    pid_t server = rig_start(serve_reports, directory, stage);
    await(&stage->arrived, 1);
    assert_int_equal(count_listed(directory), 1);
    assert_int_equal(asked_size(directory, 0, &error, 10000), 200000);
    assert_int_equal(error, 0);
    asked_size(directory, 1, &error, 1000);
    assert_int_equal(error, ESRCH);
    kill(server, SIGSTOP);
    for (unsigned i = 0; i < 15; i++) {
        assert_int_equal(asked_size(directory, 0, &error, 20), 0);
        assert_int_equal(error, ETIMEDOUT);
    }
    kill(server, SIGCONT);
    PATIENTLY_WHILE (asked_size(directory, 0, &error, 10000) != 200000)
        ;
    assert_int_equal(error, 0);
    atomic_store(&stage->go, 1);
    assert_int_equal(rig_wait(server, 10), 0);
    close_stage(stage, directory);
}

static void an_absent_directory_lists_nobody(void **state)
{
    char why[256];
    unsigned count = 0;
    assert_int_equal(node_list("/tmp/softverbs-not-there", count_entry, &count, why, sizeof why), 0);
    assert_int_equal(count, 0);
    assert_int_equal(node_sweep("/tmp/softverbs-not-there"), 0);
}

static void tools_in_the_same_process_do_not_drop_its_lock(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    struct node *again;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    assert_int_equal(count_listed(directory), 1);
    assert_int_equal(node_sweep(directory), 0);
    assert_int_equal(node_open(&again, directory, why, sizeof why), EBUSY);
    struct stage *stage = rig_share(sizeof *stage);
    pid_t server = rig_start(serve_reports, directory, stage); /* sweeps when it joins */
    await(&stage->arrived, 1);
    assert_int_equal(count_listed(directory), 2);
    atomic_store(&stage->go, 1);
    assert_int_equal(rig_wait(server, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

TESTS(numbers_are_unique_among_processes,
      a_returned_block_is_given_out_last,
      numbers_of_the_dead_are_found_again,
      the_killed_are_noticed_and_swept,
      death_while_coming_or_going_leaves_nothing,
      a_group_has_the_processes_that_joined,
      the_table_of_joins_can_be_full,
      a_stopped_holder_of_the_lock_holds_up_nobody_for_long,
      what_was_sent_before_leaving_arrives,
      a_doorbell_that_a_poller_reads_still_wakes_the_sleeper,
      a_rest_joins_a_sleep_or_begins_one,
      a_process_wakes_itself_without_the_directory,
      a_crowd_can_attach_to_one_who_does_not_look,
      the_child_of_a_fork_disturbs_nobody,
      a_process_is_asked_for_its_report,
      an_absent_directory_lists_nobody,
      tools_in_the_same_process_do_not_drop_its_lock)
