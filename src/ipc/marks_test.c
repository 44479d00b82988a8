/* Rings that a process looks at in each round, and rings that it finds by their marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { PEERS = 6 };

/* Memory of the processes: each peer sends as many messages as its `go`. */
struct crowd {
    _Atomic uint32_t number; /* of the process that receives */
    atomic_uint here, go[PEERS], sent[PEERS];
    atomic_bool leave;
};

static struct {
    char directory[NODE_DIRECTORY_MAX + 1];
    struct crowd *crowd;
    struct node *node;
    unsigned peers, received;
    nanos now;
    pid_t process[PEERS];
} test;

static void count_frame(void *context, struct peer *peer, const struct frame *frame)
{
    test.received++;
}

/* A peer; peers are numbered as they join. */
static int send_when_asked(const char *directory, void *context)
{
    struct crowd *crowd = context;
    struct node *node = rig_open(directory);
    unsigned self = atomic_fetch_add(&crowd->here, 1), sent = 0;
    PATIENTLY_WHILE (!atomic_load(&crowd->leave)) {
        if (sent == atomic_load(&crowd->go[self])) {
            usleep(200);
            continue;
        }
        if (!rig_send(node, atomic_load(&crowd->number), "hello", 6, false, count_frame, NULL))
            return 1;
        atomic_store(&crowd->sent[self], ++sent);
    }
    rig_close(node);
    return 0;
}

static void let_send(unsigned peer)
{
    unsigned go = atomic_fetch_add(&test.crowd->go[peer], 1) + 1;
    for (int i = 0; i < PATIENCE && atomic_load(&test.crowd->sent[peer]) < go; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&test.crowd->sent[peer]), go);
}

static unsigned receive(void)
{
    unsigned before = test.received;
    node_receive(test.node, count_frame, NULL, 16);
    return test.received - before;
}

/* Looks around this much later. */
static void look_around(nanos after)
{
    test.now += after;
    node_look_around(test.node, test.now);
}

/* The first look sees which peers have moved since the last one. */
static void look_twice(void)
{
    look_around(NODE_LOOK_AROUND);
    look_around(NODE_LOOK_AROUND);
}

/* Each peer has sent one message, which was received. */
static void open_crowd(unsigned peers)
{
    uint32_t number;
    rig_directory(test.directory);
    test.crowd = rig_share(sizeof *test.crowd);
    test.node = rig_open(test.directory);
    test.received = 0;
    test.peers = peers;
    assert_int_equal(node_claim_numbers(test.node, NODE_NUMBERS, &number), 0);
    atomic_store(&test.crowd->number, number);
    for (unsigned i = 0; i < peers; i++)
        test.process[i] = rig_start(send_when_asked, test.directory, test.crowd);
    for (int i = 0; i < PATIENCE && atomic_load(&test.crowd->here) < peers; i++)
        usleep(1000);
    for (unsigned i = 0; i < peers; i++)
        let_send(i);
    for (int i = 0; i < PATIENCE && test.received < peers; i++)
        rig_sleep_and_turn(test.node, count_frame, NULL, 1);
    assert_int_equal(test.received, peers);
    assert_int_equal(test.node->heard.polled, 1 + peers);
}

static void close_crowd(void)
{
    atomic_store(&test.crowd->leave, true);
    for (unsigned i = 0; i < test.peers; i++)
        if (test.process[i])
            assert_int_equal(rig_wait(test.process[i], (int)PATIENCE_SECONDS), 0);
    rig_close(test.node);
    rig_remove(test.directory);
    rig_unshare(test.crowd, sizeof *test.crowd);
}

static void open_silent_crowd(void)
{
    open_crowd(PEERS);
    look_twice();
    assert_int_equal(test.node->heard.polled, 1);
}

static void a_silent_peer_is_asked_for_a_mark_and_found_by_it(void **state)
{
    open_silent_crowd();
    assert_true(node_is_quiet(test.node));
    let_send(2);
    let_send(4);
    assert_false(node_is_quiet(test.node));
    assert_int_equal(receive(), 2);
    assert_int_equal(test.node->heard.polled, 3);
    let_send(2);
    assert_false(marks_raised(&test.node->entry->attention.marks)); /* it is polled */
    assert_int_equal(receive(), 1);
    close_crowd();
}

/* A peer that sends soon after it was asked for marks is asked later the next time. */
static void a_peer_that_was_marked_is_asked_with_more_patience(void **state)
{
    open_silent_crowd();
    for (unsigned i = 0; i < PEERS; i++)
        let_send(i);
    assert_int_equal(receive(), PEERS);
    look_twice();
    assert_int_equal(test.node->heard.polled, 1 + PEERS);
    look_around(NODE_LOOK_AROUND);
    assert_int_equal(test.node->heard.polled, 1);
    close_crowd();
}

static void a_few_peers_are_not_asked(void **state)
{
    open_crowd(NODE_SILENT_FEW);
    look_twice();
    look_around(NANOS_SECOND);
    assert_int_equal(test.node->heard.polled, 1 + NODE_SILENT_FEW);
    assert_false(atomic_load(&test.node->entry->attention.state) & ATTENTION_MARKS);
    close_crowd();
}

/* Another process has cleared it, or the sender was killed before it. */
static void send_without_mark(unsigned peer)
{
    let_send(peer);
    marks_clear(&test.node->entry->attention.marks);
    assert_true(node_is_quiet(test.node));
    assert_int_equal(receive(), 0);
}

static void a_frame_without_its_mark_is_found_before_sleep(void **state)
{
    open_silent_crowd();
    send_without_mark(3);
    assert_false(node_sleep(test.node));
    node_awake(test.node);
    assert_int_equal(receive(), 1);
    close_crowd();
}

static void a_frame_without_its_mark_is_found_by_a_look_around(void **state)
{
    open_silent_crowd();
    send_without_mark(3);
    look_around(0);
    assert_int_equal(receive(), 1);
    close_crowd();
}

static void a_frame_without_its_mark_is_found_when_the_doorbell_rings(void **state)
{
    open_silent_crowd();
    send_without_mark(3);
    node_service(test.node, NULL, NULL);
    assert_int_equal(receive(), 1);
    close_crowd();
}

static void a_frame_without_its_mark_is_found_when_its_sender_is_gone(void **state)
{
    open_silent_crowd();
    for (unsigned i = 0; i < PEERS; i++)
        send_without_mark(i);
    for (unsigned i = 0; i < PEERS; i++) {
        kill(test.process[i], SIGKILL);
        assert_int_equal(rig_wait(test.process[i], (int)PATIENCE_SECONDS), 128 + SIGKILL);
        test.process[i] = 0;
    }
    records_check(test.node);
    assert_int_equal(receive(), PEERS);
    receive();
    assert_int_equal(test.node->heard.count, 1);
    assert_false(atomic_load(&test.node->entry->attention.state) & ATTENTION_MARKS);
    close_crowd();
}

/* Each process of the directory can set them. */
static void marks_of_no_frame_do_no_harm(void **state)
{
    open_silent_crowd();
    for (unsigned i = 0; i < MARKS_MOST; i++)
        marks_set(&test.node->entry->attention.marks, i);
    assert_int_equal(receive(), 0);
    assert_int_equal(test.node->heard.polled, 1 + PEERS);
    assert_true(node_is_quiet(test.node));
    look_around(NODE_SILENCE_MOST);
    assert_int_equal(test.node->heard.polled, 1);
    let_send(5);
    assert_int_equal(receive(), 1);
    close_crowd();
}

TESTS(a_silent_peer_is_asked_for_a_mark_and_found_by_it,
      a_peer_that_was_marked_is_asked_with_more_patience,
      a_few_peers_are_not_asked,
      a_frame_without_its_mark_is_found_before_sleep,
      a_frame_without_its_mark_is_found_by_a_look_around,
      a_frame_without_its_mark_is_found_when_the_doorbell_rings,
      a_frame_without_its_mark_is_found_when_its_sender_is_gone,
      marks_of_no_frame_do_no_harm)
