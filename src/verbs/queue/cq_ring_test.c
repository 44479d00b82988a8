/* The ring of a completion queue. */
#include "verbs/queue/cq_ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { CAPACITY = 4, QP = 7, OTHER_QP = 8 };

struct fixture {
    struct completion entries[CAPACITY];
    struct cq_ring ring;
    _Atomic uint32_t retired;
};

/* Positions begin just before they wrap around. */
static void begin(struct fixture *fixture)
{
    *fixture = (struct fixture){.ring = {.capacity = CAPACITY, .head = UINT32_MAX - 1, .tail = UINT32_MAX - 1}};
    fixture->ring.entries = fixture->entries;
}

static bool put(struct fixture *fixture, uint64_t id, uint32_t qp_number)
{
    struct completion *to = cq_ring_room(&fixture->ring);
    if (!to)
        return false;
    *to = (struct completion){.id = id, .qp_number = qp_number, .retired = &fixture->retired, .retires = 1};
    cq_ring_put(&fixture->ring);
    return true;
}

static const struct completion *take(struct fixture *fixture)
{
    uint32_t head = cq_ring_head(&fixture->ring);
    assert_false(cq_ring_is_empty(&fixture->ring));
    cq_ring_taken(&fixture->ring, head + 1);
    return cq_ring_at(&fixture->ring, head);
}

static void put_many(struct fixture *fixture, unsigned from, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_true(put(fixture, from + i, i % 2 ? OTHER_QP : QP));
}

static void a_capacity_is_the_next_power_of_two(void **state)
{
    assert_int_equal(cq_ring_capacity(1), 1);
    assert_int_equal(cq_ring_capacity(4), 4);
    assert_int_equal(cq_ring_capacity(5), 8);
    assert_int_equal(cq_ring_capacity((1U << 22) - 1), 1U << 22);
}

static void the_queue_pairs_whose_entries_lie_there_are_known(void **state)
{
    struct fixture fixture;
    uint32_t numbers[2] = {0};
    begin(&fixture);
    assert_int_equal(cq_ring_users(&fixture.ring, numbers, 2), 0);
    assert_false(cq_ring_holds(&fixture.ring, QP));
    put_many(&fixture, 0, 3);
    assert_int_equal(cq_ring_users(&fixture.ring, numbers, 2), 2);
    assert_int_equal(numbers[0], QP);
    assert_int_equal(numbers[1], OTHER_QP);
    assert_int_equal(cq_ring_users(&fixture.ring, numbers, 1), 1);
    assert_true(cq_ring_holds(&fixture.ring, OTHER_QP));
    take(&fixture);
    take(&fixture);
    assert_int_equal(cq_ring_users(&fixture.ring, numbers, 2), 1);
    assert_int_equal(numbers[0], QP);
    assert_false(cq_ring_holds(&fixture.ring, OTHER_QP));
}

static void entries_are_taken_in_the_order_of_putting(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    for (unsigned i = 0; i < 3 * CAPACITY; i += 2) {
        put_many(&fixture, i, 2);
        assert_int_equal(take(&fixture)->id, i);
        assert_int_equal(take(&fixture)->id, i + 1);
        assert_true(cq_ring_is_empty(&fixture.ring));
    }
}

static void a_full_ring_has_no_room_until_one_is_taken(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    put_many(&fixture, 0, CAPACITY);
    assert_int_equal(cq_ring_count(&fixture.ring), CAPACITY);
    assert_null(cq_ring_room(&fixture.ring));
    take(&fixture);
    assert_true(put(&fixture, 9, QP));
    assert_null(cq_ring_room(&fixture.ring));
}

static void what_is_not_put_yet_is_not_seen(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    cq_ring_room(&fixture.ring)->id = 1;
    assert_true(cq_ring_is_empty(&fixture.ring));
}

static void the_oldest_gives_way_and_its_work_has_ended(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    put_many(&fixture, 0, CAPACITY);
    cq_ring_drop_oldest(&fixture.ring);
    assert_int_equal(fixture.retired, 1);
    assert_true(put(&fixture, CAPACITY, QP));
    assert_int_equal(take(&fixture)->id, 1);
}

static void entries_of_a_queue_pair_are_withdrawn_and_the_rest_stays_in_order(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    put_many(&fixture, 0, CAPACITY); /* 0 and 2 are QP's */
    cq_ring_at(&fixture.ring, cq_ring_head(&fixture.ring) + 2)->lasting = true;
    cq_ring_withdraw(&fixture.ring, QP + 9); /* that has no entry */
    assert_int_equal(cq_ring_count(&fixture.ring), CAPACITY);
    cq_ring_withdraw(&fixture.ring, QP);
    assert_int_equal(cq_ring_count(&fixture.ring), 3);
    assert_int_equal(take(&fixture)->id, 1);
    assert_int_equal(take(&fixture)->id, 2);
    assert_int_equal(take(&fixture)->id, 3);
    assert_int_equal(fixture.retired, 0);
    put_many(&fixture, 0, CAPACITY);
    assert_null(cq_ring_room(&fixture.ring));
}

static void polling_does_not_count_what_was_forgotten(void **state)
{
    struct fixture fixture;
    _Atomic uint32_t other = 0;
    begin(&fixture);
    put_many(&fixture, 0, 2);
    cq_ring_at(&fixture.ring, cq_ring_head(&fixture.ring))->retired = &other;
    cq_ring_forget(&fixture.ring, &fixture.retired);
    assert_ptr_equal(take(&fixture)->retired, &other);
    assert_null(take(&fixture)->retired);
}

static void a_ring_that_moves_keeps_its_entries(void **state)
{
    struct fixture fixture;
    struct completion larger[2 * CAPACITY];
    begin(&fixture);
    put_many(&fixture, 0, 3);
    cq_ring_move(&fixture.ring, larger, 2 * CAPACITY);
    for (unsigned i = 3; i < 2 * CAPACITY; i++)
        assert_true(put(&fixture, i, QP));
    assert_null(cq_ring_room(&fixture.ring));
    for (unsigned i = 0; i < 2 * CAPACITY; i++)
        assert_int_equal(take(&fixture)->id, i);
}

enum { MANY = 200000 };

static void *put_one_after_another(void *argument)
{
    for (unsigned i = 0; i < MANY;)
        i += put(argument, i, i);
    return NULL;
}

/* Two threads, no lock: each entry that is taken is whole. ThreadSanitizer looks on. */
static void one_thread_puts_while_another_takes(void **state)
{
    struct fixture fixture;
    pthread_t thread;
    begin(&fixture);
    assert_int_equal(pthread_create(&thread, NULL, put_one_after_another, &fixture), 0);
    for (unsigned i = 0; i < MANY;) {
        uint32_t head = cq_ring_head(&fixture.ring);
        if (head == cq_ring_tail(&fixture.ring))
            continue;
        assert_int_equal(cq_ring_at(&fixture.ring, head)->id, i);
        assert_int_equal(cq_ring_at(&fixture.ring, head)->qp_number, i);
        cq_ring_taken(&fixture.ring, head + 1);
        i++;
    }
    pthread_join(thread, NULL);
}

/* The shared queue is an SRQ's, whose receives complete in several CQs. */
static void an_entry_that_goes_frees_the_place_in_a_shared_queue(void **state)
{
    struct fixture fixture;
    begin(&fixture);
    put_many(&fixture, 0, CAPACITY);
    for (unsigned i = 0; i < CAPACITY; i++)
        cq_ring_at(&fixture.ring, cq_ring_head(&fixture.ring) + i)->retires = 0;
    cq_ring_at(&fixture.ring, cq_ring_head(&fixture.ring) + 2)->retired = NULL;
    cq_retire(take(&fixture));
    assert_int_equal(fixture.retired, 1);
    cq_ring_withdraw(&fixture.ring, OTHER_QP);
    assert_int_equal(fixture.retired, 3);
    cq_retire(take(&fixture));
    assert_int_equal(fixture.retired, 3);
}

TESTS(an_entry_that_goes_frees_the_place_in_a_shared_queue,
      a_capacity_is_the_next_power_of_two,
      the_queue_pairs_whose_entries_lie_there_are_known,
      entries_are_taken_in_the_order_of_putting,
      a_full_ring_has_no_room_until_one_is_taken,
      what_is_not_put_yet_is_not_seen,
      the_oldest_gives_way_and_its_work_has_ended,
      entries_of_a_queue_pair_are_withdrawn_and_the_rest_stays_in_order,
      polling_does_not_count_what_was_forgotten,
      a_ring_that_moves_keeps_its_entries,
      one_thread_puts_while_another_takes)
