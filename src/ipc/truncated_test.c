/* A table that is truncated while processes use it: they lose the host, and go on living. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { ROUNDS = 2000 };

struct meeting {
    atomic_uint number, heard, cut;
    off_t length; /* the rest of the table */
};

static void count_frame(void *context, struct peer *peer, const struct frame *frame)
{
    atomic_fetch_add(&((struct meeting *)context)->heard, 1);
}

/* Receives, asleep, until the host is lost. */
static int hear_until_lost(const char *directory, void *context)
{
    struct meeting *meeting = context;
    struct node *node = rig_open(directory);
    uint32_t first;
    if (node_claim_numbers(node, NODE_NUMBERS, &first))
        return 2;
    atomic_store(&meeting->number, first);
    for (int i = 0; i < ROUNDS && !node_is_lost(node); i++)
        rig_sleep_and_turn(node, count_frame, meeting, 10);
    bool lost = node_is_lost(node);
    rig_close(node);
    return lost ? 0 : 3;
}

static void cut(const char *directory, off_t length)
{
    char path[NODE_DIRECTORY_MAX + 32];
    snprintf(path, sizeof path, "%s/table", directory);
    assert_int_equal(truncate(path, length), 0);
}

/* Sends while it can. */
static int send_until_lost(const char *directory, void *context)
{
    struct meeting *meeting = context;
    struct node *node = rig_open(directory);
    for (int i = 0; i < ROUNDS && !node_is_lost(node); i++) {
        rig_send(node, atomic_load(&meeting->number), "hello", 5, false, count_frame, meeting);
        rig_sleep_and_turn(node, count_frame, meeting, 1);
        if (i == 10)
            cut(directory, meeting->length);
    }
    bool lost = node_is_lost(node);
    uint32_t first;
    int error = lost ? node_claim_numbers(node, NODE_NUMBERS, &first) : 0;
    rig_close(node);
    return !lost ? 3 : error != ENODEV ? 4 : 0;
}

static void cut_between_two(off_t length)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct meeting *meeting = rig_share(sizeof *meeting);
    meeting->length = length;
    rig_directory(directory);
    pid_t hearer = rig_start(hear_until_lost, directory, meeting);
    PATIENTLY_WHILE (!atomic_load(&meeting->number))
        usleep(1000);
    pid_t sender = rig_start(send_until_lost, directory, meeting);
    assert_int_equal(rig_wait(sender, (int)PATIENCE_SECONDS), 0);
    assert_int_equal(rig_wait(hearer, (int)PATIENCE_SECONDS), 0);
    assert_true(atomic_load(&meeting->heard) >= 10);

    char why[256];
    struct node *node;
    assert_int_equal(node_open(&node, directory, why, sizeof why), 0); /* the next begin with a new table */
    node_close(node);
    rig_remove(directory);
    rig_unshare(meeting, sizeof *meeting);
}

static void who_uses_a_table_that_is_emptied_loses_the_host(void **state)
{
    cut_between_two(0);
}

/* The first page stays, with the first processes' slots in it; one that looks for a number finds the end. */
static void a_table_may_be_cut_anywhere(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    struct node *node = rig_open(directory);
    struct meeting meeting = {0};
    cut(directory, 4096);
    assert_null(node_find(node, 0x100 + NODE_BLOCK));
    assert_false(node_is_lost(node));
    rig_turn(node, count_frame, &meeting);
    assert_true(node_is_lost(node));
    assert_int_equal(atomic_load(&meeting.heard), 0);
    rig_close(node);
    rig_remove(directory);
}

static void a_lost_table_is_not_opened_again(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    struct table *first, *second;
    rig_directory(directory);
    assert_int_equal(table_open(&first, directory, true, why, sizeof why), 0);
    cut(directory, 0);
    assert_int_equal(atomic_load(&first->file->slots[7].state), TABLE_FREE);
    assert_true(atomic_load(&first->lost));
    assert_int_equal(table_open(&second, directory, true, why, sizeof why), EIO);
    table_close(first);
    assert_int_equal(table_open(&second, directory, true, why, sizeof why), 0);
    table_close(second);
    rig_remove(directory);
}

TESTS(who_uses_a_table_that_is_emptied_loses_the_host,
      a_table_may_be_cut_anywhere,
      a_lost_table_is_not_opened_again)
