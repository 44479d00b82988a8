/* The two sides of a doorbell against each other, at the same moment, again and again: either the sleeper sees what was
 * sent or the sender sees that it sleeps. (Take out any fence and this fails.) */
#include "link/doorbell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "link/fence.h"

enum { ROUNDS = 60000 };

struct arena {
    _Alignas(64) atomic_uint ring;
    _Alignas(64) struct attention attention;
    _Alignas(64) atomic_uint sender_at, sleeper_at;
    struct doorbell bell;
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

/* Returns how many rounds ended asleep with something in the ring. */
static unsigned sleep_each_round(struct arena *arena)
{
    unsigned lost = 0;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        atomic_store(&arena->attention.state, ATTENTION_AWAKE);
        unsigned before = atomic_load(&arena->ring); /* the line is in our cache, as a poller's */
        meet(&arena->sleeper_at, &arena->sender_at, 2 * i);
        dawdle(100 + i * 11 % 128);
        attention_sleep(&arena->attention);
        bool saw = atomic_load_explicit(&arena->ring, memory_order_acquire) != before;
        meet(&arena->sleeper_at, &arena->sender_at, 2 * i + 1);
        lost += !saw && atomic_load(&arena->attention.state) == ATTENTION_SLEEPING;
    }
    return lost;
}

static unsigned count_lost(bool fences)
{
    static struct arena arena;
    pthread_t thread;
    atomic_store(&arena.ring, 0);
    atomic_store(&arena.sender_at, 0);
    atomic_store(&arena.sleeper_at, 0);
    atomic_store(&arena.attention.fences, fences);
    arena.bell = (struct doorbell){.attention = &arena.attention, .prepared = fences, .socket = -1};
    assert_int_equal(pthread_create(&thread, NULL, send_each_round, &arena), 0);
    unsigned lost = sleep_each_round(&arena);
    pthread_join(thread, NULL);
    return lost;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_when_both_fence),
        cmocka_unit_test(nothing_is_lost_when_the_sleeper_fences_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
