/* The steps of a doorbell one by one; then its two sides against each other, at the same moment, again and again:
 * either the sleeper sees what was sent or the sender sees that it sleeps. (Take out any fence and this fails.) */
#include "link/doorbell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "link/fence.h"

enum { ROUNDS = 30000 };

struct arena {
    _Alignas(64) atomic_uint ring;
    _Alignas(64) struct attention attention;
    _Alignas(64) atomic_uint sender_at, sleeper_at;
    struct doorbell bell;
    int socket; /* the sleeper's */
};

static void meet(atomic_uint *mine, atomic_uint *other, unsigned round)
{
    atomic_store(mine, round);
    for (unsigned i = 0; atomic_load(other) < round; i++)
        if (i > 5000)
            sched_yield();
}

static void dawdle(unsigned steps)
{
    while (steps--)
        __asm__ volatile("");
}

static void *send_each_round(void *argument)
{
    struct arena *arena = argument;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        meet(&arena->sender_at, &arena->sleeper_at, 2 * i);
        atomic_load(&arena->attention.state); /* in our cache: that makes the load early and the store late */
        dawdle(100 + i * 7 % 128);
        atomic_store_explicit(&arena->ring, i, memory_order_release);
        doorbell_ring(&arena->bell);
        meet(&arena->sender_at, &arena->sleeper_at, 2 * i + 1);
    }
    return NULL;
}

static unsigned count_messages(int socket)
{
    struct control_message message;
    int descriptor;
    unsigned count = 0;
    while (control_take(socket, &message, &descriptor, NULL))
        count++;
    return count;
}

/* Returns how many rounds ended with something in the ring that the sleeper did not see, and no message. */
static unsigned sleep_each_round(struct arena *arena)
{
    unsigned lost = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        attention_wake(&arena->attention);
        unsigned before = atomic_load(&arena->ring); /* the line is in our cache, as a poller's */
        meet(&arena->sleeper_at, &arena->sender_at, 2 * i);
        dawdle(100 + i * 11 % 128);
        attention_sleep(&arena->attention);
        bool saw = atomic_load_explicit(&arena->ring, memory_order_acquire) != before;
        meet(&arena->sleeper_at, &arena->sender_at, 2 * i + 1);
        lost += !count_messages(arena->socket) && !saw;
    }
    return lost;
}

/* The sleeper's socket, in a private directory, and a doorbell to it that is rung from another. */
static void open_bell(struct arena *arena, struct doorbell *bell, char *directory)
{
    strcpy(directory, "/tmp/softverbs-bell-XXXXXX");
    assert_non_null(mkdtemp(directory));
    *bell = (struct doorbell){.attention = &arena->attention, .waker = -1};
    bell->message = (struct control_message){.magic = CONTROL_MAGIC, .layout = CONTROL_LAYOUT};
    snprintf(bell->name, sizeof bell->name, "%s/0", directory);
    assert_int_equal(control_listen(bell->name, &arena->socket), 0);
    bell->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void close_bell(struct arena *arena, struct doorbell *bell, const char *directory)
{
    close(arena->socket);
    close(bell->socket);
    unlink(bell->name);
    rmdir(directory);
}

static unsigned count_lost(bool fences)
{
    static struct arena arena;
    char directory[64];
    pthread_t thread;
    atomic_store(&arena.ring, 0);
    atomic_store(&arena.sender_at, 0);
    atomic_store(&arena.sleeper_at, 0);
    atomic_store(&arena.attention.fences, fences);
    open_bell(&arena, &arena.bell, directory);
    arena.bell.prepared = fences;
    assert_int_equal(pthread_create(&thread, NULL, send_each_round, &arena), 0);
    unsigned lost = sleep_each_round(&arena);
    pthread_join(thread, NULL);
    close_bell(&arena, &arena.bell, directory);
    return lost;
}

static struct arena quiet;

/* Events at the sleeper between a sender's message and its mark. */
static void (*meanwhile)(void);

ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
    ssize_t length = syscall(SYS_sendmsg, socket, message, flags);
    if (meanwhile)
        meanwhile();
    return length;
}

static void wake_and_sleep_again(void)
{
    count_messages(quiet.socket);
    attention_wake(&quiet.attention);
    attention_sleep(&quiet.attention);
}

/* A sender that is stopped there marks late. */
static void a_late_mark_does_not_end_a_later_sleep(void **state)
{
    struct doorbell bell;
    char directory[64];
    open_bell(&quiet, &bell, directory);
    attention_sleep(&quiet.attention);
    meanwhile = wake_and_sleep_again;
    assert_int_equal(doorbell_ring(&bell), 0);
    meanwhile = NULL;
    assert_true(attention_sleeps(&quiet.attention));
    assert_int_equal(doorbell_ring(&bell), 0);
    assert_int_equal(count_messages(quiet.socket), 1);
    assert_false(attention_sleeps(&quiet.attention));
    close_bell(&quiet, &bell, directory);
}

/* A thread that would join a sleep that has ended, or that was followed by another, begins one instead. */
static void a_sleep_lasts_until_somebody_wakes_or_another_begins(void **state)
{
    struct attention attention = {0};
    assert_false(attention_lasts(&attention, 0));
    unsigned first = attention_sleep(&attention);
    assert_true(attention_lasts(&attention, first));
    unsigned second = attention_sleep(&attention);
    assert_false(attention_lasts(&attention, first));
    assert_true(attention_lasts(&attention, second));
    attention_wake(&attention);
    assert_false(attention_lasts(&attention, second));
    unsigned third = attention_sleep(&attention);
    assert_false(attention_lasts(&attention, second));
    assert_true(attention_lasts(&attention, third));
}

static void check_that_it_sleeps(void)
{
    assert_true(attention_sleeps(&quiet.attention));
}

/* A sender that dies here has not kept others from ringing. */
static void nobody_is_marked_before_there_is_a_message(void **state)
{
    struct doorbell bell;
    char directory[64];
    open_bell(&quiet, &bell, directory);
    attention_sleep(&quiet.attention);
    meanwhile = check_that_it_sleeps;
    assert_int_equal(doorbell_ring(&bell), 0);
    meanwhile = NULL;
    assert_false(attention_sleeps(&quiet.attention));
    close_bell(&quiet, &bell, directory);
}

static void who_is_awake_gets_a_message_only_from_who_insists(void **state)
{
    struct doorbell bell;
    char directory[64];
    open_bell(&quiet, &bell, directory);
    attention_wake(&quiet.attention);
    assert_int_equal(doorbell_ring(&bell), 0);
    assert_int_equal(count_messages(quiet.socket), 0);
    assert_int_equal(doorbell_insist(&bell), 0);
    assert_int_equal(count_messages(quiet.socket), 1);
    close_bell(&quiet, &bell, directory);
}

/* Whatever the reason of the refusal is: without a message no sender may assume that the sleeper was rung. */
static void a_refused_message_leaves_the_sleeper_to_others(void **state)
{
    struct doorbell bell;
    char directory[64];
    open_bell(&quiet, &bell, directory);
    attention_sleep(&quiet.attention);
    int socket = bell.socket;
    bell.socket = -1;
    assert_int_equal(doorbell_ring(&bell), EBADF);
    assert_true(attention_sleeps(&quiet.attention));
    bell.socket = socket;
    while (!control_send(bell.socket, bell.name, &bell.message, -1))
        ;
    assert_int_equal(doorbell_ring(&bell), 0); /* it has a queue full of messages */
    assert_true(attention_sleeps(&quiet.attention));
    count_messages(quiet.socket);
    assert_int_equal(doorbell_ring(&bell), 0);
    assert_false(attention_sleeps(&quiet.attention));
    close_bell(&quiet, &bell, directory);
}

/* The queue of a process that doesn't read holds all that a socket may have under way: others still get messages. */
static void a_message_gets_through_beside_many_unread_ones(void **state)
{
    enum { MANY = 400 };
    static struct doorbell bells[MANY];
    static struct arena arenas[MANY];
    static char directories[MANY][64];
    unsigned letters = 0;
    for (unsigned i = 0; i < MANY; i++) {
        open_bell(&arenas[i], &bells[i], directories[i]);
        attention_sleep(&arenas[i].attention);
        if (i) {
            close(bells[i].socket);
            bells[i].socket = bells[0].socket;
        }
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(doorbell_ring(&bells[i]), 0);
    for (unsigned i = 0; i < MANY; i++)
        letters += count_messages(arenas[i].socket);
    assert_int_equal(letters, MANY);
    for (unsigned i = MANY; i--;) {
        bells[i].socket = i ? -1 : bells[i].socket;
        close_bell(&arenas[i], &bells[i], directories[i]);
    }
}

/* ------------------------------------------------------------------ letterboxes */

static void a_message_counts_as_taken_when_a_look_ends(void **state)
{
    struct control_inbox box = {0};
    uint32_t before = control_inbox_before(&box);
    assert_false(control_inbox_reached(&box, before));
    control_inbox_begin(&box);
    assert_false(control_inbox_reached(&box, before));
    uint32_t during = control_inbox_before(&box); /* this look may take it, and then there may never be another */
    control_inbox_begin(&box);                    /* more messages than one look takes: the look continues */
    assert_false(control_inbox_reached(&box, during));
    control_inbox_end(&box);
    assert_true(control_inbox_reached(&box, before));
    assert_true(control_inbox_reached(&box, during));
    assert_false(control_inbox_reached(&box, control_inbox_before(&box)));
}

static void nothing_is_lost_when_both_fence(void **state)
{
    assert_int_equal(count_lost(false), 0);
}

static void nothing_is_lost_when_the_sleeper_fences_for_both(void **state)
{
    if (!fence_everywhere_prepare())
        skip(); /* no membarrier here */
    assert_int_equal(count_lost(true), 0);
}

TESTS(a_late_mark_does_not_end_a_later_sleep,
      a_sleep_lasts_until_somebody_wakes_or_another_begins,
      nobody_is_marked_before_there_is_a_message,
      who_is_awake_gets_a_message_only_from_who_insists,
      a_refused_message_leaves_the_sleeper_to_others,
      a_message_gets_through_beside_many_unread_ones,
      a_message_counts_as_taken_when_a_look_ends,
      nothing_is_lost_when_both_fence,
      nothing_is_lost_when_the_sleeper_fences_for_both)
