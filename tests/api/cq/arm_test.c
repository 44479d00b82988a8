/* Arming a completion queue that holds entries: ibv_req_notify_cq(3). The event is raised at once, as with mlx4 and
 * mlx5, which are armed for the next entry to be polled. The near end receives. Every case runs with classic and with
 * extended CQs. */
#include <stdio.h>
#include <time.h>

#include "local_end.h"

static bool extended;

enum { QUIET = 20 /* milliseconds in which something would have arrived */, LONG = 60000 /* microseconds */ };

static struct pair open_with_channel(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.channel = true;
    wishes.cq_flags = extended ? IBV_WC_STANDARD_FLAGS : 0;
    return pair_open_as(wishes);
}

static void send_to_near(struct pair *pair, int count, unsigned flags)
{
    for (int i = 0; i < count; i++) {
        struct send send = end_send(&pair->far, &pair->near, IBV_WR_SEND, 1, 0, 8);
        send.wr.send_flags |= flags;
        end_post_receive(&pair->near, end_receive(&pair->near, 1, 0, 64));
        end_post(&pair->far, send);
        end_expect_sent(&pair->far, 1, IBV_WC_SUCCESS);
    }
}

static void arm(struct pair *pair, int solicited_only)
{
    EXPECT(remote_arm(pair->near.remote, pair->near.receive_cq, solicited_only), ==, 0);
}

static void expect_event(struct pair *pair)
{
    EXPECT(remote_get_cq_event(pair->near.remote, pair->near.channel, PATIENCE), ==, pair->near.receive_cq);
    remote_ack_cq_events(pair->near.remote, pair->near.receive_cq, 1);
}

static void expect_no_event(struct pair *pair)
{
    EXPECT(remote_get_cq_event(pair->near.remote, pair->near.channel, QUIET), ==, NOBODY);
}

static void take(struct pair *pair, int count)
{
    struct ibv_wc wc;
    struct extended entry;
    for (int i = 0; i < count; i++)
        EXPECT(extended ? remote_poll_ex(pair->near.remote, pair->near.receive_cq, 1, &entry, PATIENCE)
                        : remote_poll(pair->near.remote, pair->near.receive_cq, 1, &wc, PATIENCE),
               ==, 1);
}

/* Mellanox's ibverbs-tests do it like that. */
static void who_takes_one_entry_for_each_event_gets_them_all(const void *row)
{
    enum { ENTRIES = 20 };
    struct pair pair = open_with_channel();
    arm(&pair, 0);
    send_to_near(&pair, ENTRIES, 0);
    for (int i = 0; i < ENTRIES; i++) {
        expect_event(&pair);
        arm(&pair, 0);
        take(&pair, 1);
    }
}

/* The test does as perftest: one work request after the other, and a queue that is armed before it is polled. */
static void an_entry_raises_one_event(const void *row)
{
    enum { ENTRIES = 20 };
    struct pair pair = open_with_channel();
    arm(&pair, 0);
    for (int i = 0; i < ENTRIES; i++) {
        send_to_near(&pair, 1, 0);
        expect_event(&pair);
        arm(&pair, 0);
        if (i % 5 == 0)
            expect_no_event(&pair);
        take(&pair, 1);
    }
}

static void an_empty_queue_is_armed_for_what_comes(const void *row)
{
    struct pair pair = open_with_channel();
    send_to_near(&pair, 2, 0);
    take(&pair, 2);
    arm(&pair, 0);
    expect_no_event(&pair);
    send_to_near(&pair, 1, 0);
    expect_event(&pair);
}

static void one_event_waits_for_entries_that_lie_there_however_often_the_queue_is_armed(const void *row)
{
    struct pair pair = open_with_channel();
    send_to_near(&pair, 3, 0);
    for (int i = 0; i < 5; i++)
        arm(&pair, 0);
    expect_event(&pair);
    expect_no_event(&pair);
    send_to_near(&pair, 1, 0); /* but the later armings hold */
    expect_event(&pair);
}

static void a_solicited_arming_is_for_solicited_entries_that_lie_there(const void *row)
{
    struct pair pair = open_with_channel();
    send_to_near(&pair, 2, 0);
    arm(&pair, 1);
    expect_no_event(&pair);
    send_to_near(&pair, 1, IBV_SEND_SOLICITED);
    expect_event(&pair);
    arm(&pair, 1); /* the entry is in the queue */
    expect_event(&pair);
    take(&pair, 2);
    arm(&pair, 1);
    expect_event(&pair);
    take(&pair, 1);
    send_to_near(&pair, 2, 0);
    arm(&pair, 1); /* it was taken */
    expect_no_event(&pair);
}

static void an_error_that_lies_there_is_reported_to_a_solicited_arming(const void *row)
{
    struct pair pair = open_with_channel();
    end_post_receive(&pair.near, end_receive(&pair.near, 1, 0, 64));
    EXPECT(end_move(&pair.near, IBV_QPS_ERR), ==, 0);
    arm(&pair, 1);
    expect_event(&pair);
}

static void a_queue_of_another_size_knows_what_lies_there(const void *row)
{
    struct pair pair = open_with_channel();
    send_to_near(&pair, 3, 0);
    send_to_near(&pair, 1, IBV_SEND_SOLICITED);
    take(&pair, 2);
    EXPECT(remote_resize_cq(pair.near.remote, pair.near.receive_cq, 1000), ==, 0);
    arm(&pair, 1);
    expect_event(&pair);
    take(&pair, 2);
    EXPECT(remote_resize_cq(pair.near.remote, pair.near.receive_cq, 10), ==, 0);
    send_to_near(&pair, 2, 0);
    arm(&pair, 1);
    expect_no_event(&pair);
    arm(&pair, 0);
    expect_event(&pair);
}

static void entries_that_were_withdrawn_raise_nothing(const void *row)
{
    struct pair pair = open_with_channel();
    send_to_near(&pair, 2, IBV_SEND_SOLICITED);
    EXPECT(end_move(&pair.near, IBV_QPS_RESET), ==, 0);
    arm(&pair, 1);
    arm(&pair, 0);
    expect_no_event(&pair);
}

/* The entry that a batch shows has been polled. */
static void in_a_batch_the_next_entry_counts(const void *row)
{
    struct pair pair = open_with_channel();
    struct ibv_cq *cq = end_object(pair.near.remote->objects, KIND_CQ, pair.near.receive_cq);
    struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
    send_to_near(&pair, 2, 0);
    EXPECT(ibv_start_poll(ex, &(struct ibv_poll_cq_attr){0}), ==, 0);
    EXPECT(ibv_req_notify_cq(cq, 0), ==, 0);
    expect_event(&pair);
    EXPECT(ibv_next_poll(ex), ==, 0);
    EXPECT(ibv_req_notify_cq(cq, 0), ==, 0);
    ibv_end_poll(ex);
    expect_no_event(&pair);
    send_to_near(&pair, 1, 0);
    expect_event(&pair);
}

static long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Entries in the queue count as if they arrived now: three of four are held back for the period, four are not. */
static void moderation_counts_what_lies_there(const void *row)
{
    struct pair pair = open_with_channel();
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {4, UINT16_MAX}};
    struct ibv_cq *cq = end_object(pair.near.remote->objects, KIND_CQ, pair.near.receive_cq);
    EXPECT(ibv_modify_cq(cq, &attr), ==, 0);
    send_to_near(&pair, 3, 0);
    long from = microseconds();
    arm(&pair, 0);
    arm(&pair, 0); /* the same entries */
    expect_event(&pair);
    EXPECT(microseconds() - from, >=, LONG);
    send_to_near(&pair, 1, 0); /* one of the three has raised an event */
    long took = LONG;
    for (int i = 0; i < 20 && took >= LONG; i++) {
        send_to_near(&pair, 1, 0);
        from = microseconds();
        arm(&pair, 0);
        expect_event(&pair);
        took = microseconds() - from;
    }
    EXPECT(took, <, LONG);
}

static void for_both(const char *name, void (*body)(const void *))
{
    char title[128];
    for (int i = 0; i < 2; i++) {
        extended = i;
        snprintf(title, sizeof title, "%s CQ: %s", extended ? "extended" : "classic", name);
        harness_run(title, body, NULL);
    }
}
#define CASE_OF_BOTH(body) for_both(#body, body)

static void all(void)
{
    CASE_OF_BOTH(who_takes_one_entry_for_each_event_gets_them_all);
    CASE_OF_BOTH(an_entry_raises_one_event);
    CASE_OF_BOTH(an_empty_queue_is_armed_for_what_comes);
    CASE_OF_BOTH(one_event_waits_for_entries_that_lie_there_however_often_the_queue_is_armed);
    CASE_OF_BOTH(a_solicited_arming_is_for_solicited_entries_that_lie_there);
    CASE_OF_BOTH(an_error_that_lies_there_is_reported_to_a_solicited_arming);
    CASE_OF_BOTH(a_queue_of_another_size_knows_what_lies_there);
    CASE_OF_BOTH(entries_that_were_withdrawn_raise_nothing);
    extended = true;
    CASE(in_a_batch_the_next_entry_counts);
    CASE_OF_BOTH(moderation_counts_what_lies_there);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
