/* The rate at which a queue pair sends. The clock is the real one, so assertions allow for the time passed. */
#include "verbs/send/rate_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "process/process.h"
#include "runtime/clock.h"
#include "verbs/qp/qp_datapath.h"

enum { KBPS = 8000, BYTES_A_SECOND = 1000000, MTU = 1024 };

static void wake_nobody(struct schedule *schedule)
{
}

static void expire_nothing(struct timer *timer, nanos now)
{
}

/* A queue pair with this burst, and its lock. */
static struct qp *begin(uint32_t burst, uint32_t packet)
{
    struct qp *qp = qp_allocate();
    qp->process = calloc(1, sizeof *qp->process);
    schedule_initialize(&qp->process->schedule, wake_nobody);
    schedule_initialize_timer(&qp_endpoint(qp)->timer, expire_nothing);
    qp->traits = QP_DATAGRAM;
    qp->attr.path_mtu = IBV_MTU_1024;
    lock_take(&qp->lock);
    rate_limit_set(qp, &(struct ibv_qp_rate_limit_attr){
                           .rate_limit = KBPS, .max_burst_sz = burst, .typical_pkt_sz = (uint16_t)packet});
    return qp;
}

static void end(struct qp *qp)
{
    lock_release(&qp->lock);
    free(qp->process);
    free(qp);
}

static void what_was_sent_holds_the_rest_until_the_rate_has_passed_it(void **state)
{
    struct qp *qp = begin(2 * MTU, 0);
    nanos before = clock_now();
    assert_false(rate_limit_holds(qp));
    rate_limit_count(qp, 10 * BYTES_A_SECOND);
    assert_true(rate_limit_holds(qp));
    nanos least = before + 10 * NANOS_SECOND - NANOS_SECOND / 100, most = clock_now() + 10 * NANOS_SECOND;
    assert_in_range(qp->rate_limit.wake, least, most);
    assert_int_equal(atomic_load(&qp_endpoint(qp)->timer.at), qp->rate_limit.wake);
    end(qp);
}

/* A burst minus one packet may be ahead of its time: with that packet it is the burst. */
static void a_burst_goes_at_once(void **state)
{
    struct qp *qp = begin(100 * BYTES_A_SECOND, MTU);
    rate_limit_count(qp, 99 * BYTES_A_SECOND);
    assert_false(rate_limit_holds(qp));
    rate_limit_count(qp, 2 * BYTES_A_SECOND);
    assert_true(rate_limit_holds(qp));
    end(qp);
}

static void time_without_sending_is_not_saved_up(void **state)
{
    struct qp *qp = begin(2 * MTU, MTU);
    qp->rate_limit.until = clock_now() - 100 * NANOS_SECOND;
    rate_limit_count(qp, 10 * BYTES_A_SECOND);
    assert_true(rate_limit_holds(qp));
    end(qp);
}

static void rate_0_is_no_limit(void **state)
{
    struct qp *qp = begin(2 * MTU, MTU);
    rate_limit_count(qp, 10 * BYTES_A_SECOND);
    assert_true(rate_limit_holds(qp));
    rate_limit_set(qp, &(struct ibv_qp_rate_limit_attr){.rate_limit = 0});
    assert_int_equal(qp->rate_limit.rate, 0);
    assert_int_equal(qp->rate_limit.wake, NANOS_NEVER);
    end(qp);
}

/* A rate, a table of hooks and a recording are each reason enough for the long ways. */
static void a_queue_pair_is_watched_until_its_last_cause_ends(void **state)
{
    struct qp *qp = begin(2 * MTU, MTU);
    struct disturbance disturbance = {.due = NANOS_NEVER};
    assert_true(qp_is_watched(qp));
    qp_datapath(qp)->disturbance = &disturbance;
    rate_limit_set(qp, &(struct ibv_qp_rate_limit_attr){.rate_limit = 0});
    assert_true(qp_is_watched(qp));
    qp_datapath(qp)->disturbance = NULL;
    qp_judge_watch(qp);
    assert_false(qp_is_watched(qp));
    end(qp);
}

TESTS(what_was_sent_holds_the_rest_until_the_rate_has_passed_it,
      a_burst_goes_at_once,
      time_without_sending_is_not_saved_up,
      rate_0_is_no_limit,
      a_queue_pair_is_watched_until_its_last_cause_ends)
