/* Posted receives. */
#include "verbs/queue/receive_queue.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "transport/scatter.h"

enum { CAPACITY = 4, SGES = 2, LENGTH = 100 };

static void begin(struct receive_queue *queue)
{
    assert_int_equal(receive_queue_initialize(queue, NULL, 0, CAPACITY, SGES), 0);
}

static int post(struct receive_queue *queue, uint64_t id, int sges)
{
    struct ibv_sge sge[SGES + 1] = {{.length = LENGTH}, {.length = LENGTH}};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge, .num_sge = sges}, *bad = NULL;
    int error = receive_queue_post(queue, &wr, &bad);
    assert_ptr_equal(bad, error ? &wr : NULL);
    return error;
}

static const struct recv_wqe *take(struct receive_queue *queue, uint64_t id)
{
    bool limit;
    const struct recv_wqe *receive = receive_queue_take(queue, 0, &limit);
    assert_non_null(receive);
    assert_int_equal(receive->id, id);
    assert_false(limit);
    return receive;
}

static void receives_are_taken_in_the_order_of_posting(void **state)
{
    struct receive_queue queue;
    bool limit;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        assert_int_equal(post(&queue, i, 1), 0);
    for (unsigned i = 0; i < CAPACITY; i++)
        take(&queue, i);
    assert_null(receive_queue_take(&queue, 0, &limit));
    receive_queue_destroy(&queue);
}

/* A receive that a message has begun with is in use until the program has polled its completion. */
static void a_place_is_free_when_its_completion_was_polled(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        assert_int_equal(post(&queue, i, 1), 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    const struct recv_wqe *first = take(&queue, 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    receive_queue_free(&queue, first);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    queue.polled++;
    assert_int_equal(post(&queue, 9, 1), 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    receive_queue_destroy(&queue);
}

static void a_place_is_free_when_there_will_be_no_completion(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        assert_int_equal(post(&queue, i, 1), 0);
    receive_queue_drop(&queue, take(&queue, 0));
    assert_int_equal(post(&queue, 9, 1), 0);
    receive_queue_free(&queue, take(&queue, 1));
    receive_queue_lost(&queue);
    assert_int_equal(post(&queue, 9, 1), 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    receive_queue_destroy(&queue);
}

static void a_queue_that_is_settled_has_places_for_what_is_posted_only(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        assert_int_equal(post(&queue, i, 1), 0);
    receive_queue_free(&queue, take(&queue, 0));
    receive_queue_free(&queue, take(&queue, 1));
    receive_queue_settle(&queue);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(post(&queue, 9, 1), 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    receive_queue_destroy(&queue);
}

static void too_many_pieces_are_refused(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    assert_int_equal(post(&queue, 1, SGES + 1), EINVAL);
    assert_int_equal(post(&queue, 1, -1), EINVAL);
    assert_int_equal(receive_queue_look(&queue).posted, 0);
    assert_int_equal(post(&queue, 1, 0), 0);
    receive_queue_destroy(&queue);
}

static void a_receive_that_is_too_short_stays(void **state)
{
    struct receive_queue queue;
    bool limit;
    begin(&queue);
    post(&queue, 1, 2);
    assert_ptr_equal(receive_queue_take(&queue, 2 * LENGTH + 1, &limit), &receive_too_short);
    assert_int_equal(receive_queue_look(&queue).posted, 1);
    assert_non_null(receive_queue_take(&queue, 2 * LENGTH, &limit));
    receive_queue_destroy(&queue);
}

static void what_is_returned_is_the_next(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    post(&queue, 1, 1);
    post(&queue, 2, 1);
    receive_queue_return(&queue, take(&queue, 1));
    take(&queue, 1);
    take(&queue, 2);
    receive_queue_destroy(&queue);
}

/* ibv_modify_srq(3): the limit is disarmed by reaching it. */
static void the_limit_is_told_once(void **state)
{
    struct receive_queue queue;
    bool limit;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        post(&queue, i, 1);
    queue.limit = 3;
    take(&queue, 0);
    receive_queue_take(&queue, 0, &limit);
    assert_true(limit);
    take(&queue, 2);
    receive_queue_destroy(&queue);
}

static void a_queue_grows_and_does_not_shrink_below_what_it_holds(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    for (unsigned i = 0; i < CAPACITY; i++)
        post(&queue, i, 1);
    const struct recv_wqe *first = take(&queue, 0);
    assert_int_equal(receive_queue_resize(&queue, CAPACITY - 1), EINVAL);
    assert_int_equal(receive_queue_resize(&queue, 0), EINVAL);
    assert_int_equal(receive_queue_resize(&queue, CAPACITY + 1), 0);
    assert_int_equal(first->id, 0);
    assert_int_equal(post(&queue, 4, 1), 0);
    assert_int_equal(post(&queue, 5, 1), ENOMEM);
    for (unsigned i = 1; i <= CAPACITY; i++)
        take(&queue, i);
    receive_queue_destroy(&queue);
}

static void clearing_leaves_what_is_taken(void **state)
{
    struct receive_queue queue;
    begin(&queue);
    post(&queue, 1, 1);
    post(&queue, 2, 1);
    const struct recv_wqe *taken = take(&queue, 1);
    receive_queue_clear(&queue);
    assert_int_equal(receive_queue_look(&queue).posted, 0);
    for (unsigned i = 0; i < CAPACITY - 1; i++)
        assert_int_equal(post(&queue, i, 1), 0);
    assert_int_equal(post(&queue, 9, 1), ENOMEM);
    assert_int_equal(taken->id, 1);
    receive_queue_destroy(&queue);
}

TESTS(receives_are_taken_in_the_order_of_posting,
      a_place_is_free_when_its_completion_was_polled,
      a_place_is_free_when_there_will_be_no_completion,
      a_queue_that_is_settled_has_places_for_what_is_posted_only,
      too_many_pieces_are_refused,
      a_receive_that_is_too_short_stays,
      what_is_returned_is_the_next,
      the_limit_is_told_once,
      a_queue_grows_and_does_not_shrink_below_what_it_holds,
      clearing_leaves_what_is_taken)
