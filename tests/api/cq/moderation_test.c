/* Events of completion queues held back: ibv_modify_cq(3). The near end receives, on a CQ that is armed. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "local_end.h"

enum { LONG = 60000, SHORT = 500 }; /* microseconds */

static long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct ibv_cq *near_cq(const struct pair *pair)
{
    return end_object(pair->near.remote->objects, KIND_CQ, pair->near.receive_cq);
}

static struct pair open_with_channel(void)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.channel = true;
    return pair_open_as(wishes);
}

static void moderate(const struct pair *pair, unsigned count, unsigned period)
{
    struct ibv_modify_cq_attr attr = {
        .attr_mask = IBV_CQ_ATTR_MODERATE,
        .moderate = {.cq_count = (uint16_t)count, .cq_period = (uint16_t)period},
    };
    EXPECT(ibv_modify_cq(near_cq(pair), &attr), ==, 0);
}

static void send_to_near(struct pair *pair, int count)
{
    for (int i = 0; i < count; i++) {
        end_post_receive(&pair->near, end_receive(&pair->near, 1, 0, 64));
        end_post(&pair->far, end_send(&pair->far, &pair->near, IBV_WR_SEND, 1, 0, 8));
        end_expect_sent(&pair->far, 1, IBV_WC_SUCCESS);
    }
}

static void expect_event(struct pair *pair)
{
    EXPECT(remote_get_cq_event(pair->near.remote, pair->near.channel, PATIENCE), ==, pair->near.receive_cq);
    remote_ack_cq_events(pair->near.remote, pair->near.receive_cq, 1);
}

static void take(struct pair *pair, int count)
{
    for (int i = 0; i < count; i++)
        end_expect_received(&pair->near, 1, IBV_WC_SUCCESS, 8);
}

/* The time from arming to the event of this number of messages. */
static long time_of_event(struct pair *pair, int messages)
{
    long from = microseconds();
    EXPECT(remote_arm(pair->near.remote, pair->near.receive_cq, 0), ==, 0);
    send_to_near(pair, messages);
    expect_event(pair);
    long took = microseconds() - from;
    take(pair, messages);
    return took;
}

/* The event of this number of messages is raised before the period is over. */
struct early {
    struct pair *pair;
    int messages;
};

static bool comes_early(void *context)
{
    struct early *early = context;
    return time_of_event(early->pair, early->messages) < LONG;
}

static bool tries(const char *what, bool (*once)(void *), void *context)
{
    return patience_tries(what, 20, "a busy machine takes longer than the period now and then", once, context);
}

static void expect_early(struct pair *pair, int messages)
{
    EXPECT_TRUE(tries("an event that is not held back", comes_early, &(struct early){pair, messages}));
}

static void an_event_waits_for_the_period(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 4, LONG);
    EXPECT(time_of_event(&pair, 3), >=, LONG);
    EXPECT(time_of_event(&pair, 1), >=, LONG);
    EXPECT(remote_get_cq_event(pair.near.remote, pair.near.channel, 0), ==, NOBODY);
}

static void an_event_comes_with_the_last_of_the_count(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 4, LONG);
    expect_early(&pair, 4);
}

static void entries_are_not_held_back(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 100, UINT16_MAX);
    EXPECT(remote_arm(pair.near.remote, pair.near.receive_cq, 0), ==, 0);
    send_to_near(&pair, 3);
    take(&pair, 3);
    expect_event(&pair); /* though they were polled meanwhile: the program has been promised one */
}

static void without_count_or_period_nothing_is_held_back(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 4, LONG);
    moderate(&pair, 0, LONG);
    expect_early(&pair, 1);
    moderate(&pair, 1000, 0);
    expect_early(&pair, 1);
}

/* Moderation ends: the count that is left has arrived already, or no count is left. */
static bool ends_early(void *context)
{
    struct early *early = context;
    long from = microseconds();
    moderate(early->pair, 100, UINT16_MAX);
    EXPECT(remote_arm(early->pair->near.remote, early->pair->near.receive_cq, 0), ==, 0);
    send_to_near(early->pair, 2);
    take(early->pair, 2);
    moderate(early->pair, early->messages, LONG);
    expect_event(early->pair);
    return microseconds() - from < LONG;
}

static void what_is_held_comes_when_moderation_ends(const void *row)
{
    struct pair pair = open_with_channel();
    for (int count = 0; count <= 2; count += 2)
        EXPECT_TRUE(tries("the event that was held", ends_early, &(struct early){&pair, count}));
}

/* Poll, arm, poll again, wait, as in the manual page of ibv_get_cq_event: whichever events are held, no thread waits
 * for ever. */
static void who_arms_and_polls_again_loses_nothing(const void *row)
{
    struct pair pair = open_with_channel();
    struct ibv_wc wc[16];
    int posted = 0, seen = 0;
    moderate(&pair, 3, SHORT);
    while (seen < 400) {
        if (seen == posted)
            send_to_near(&pair, 1 + seen % 7), posted += 1 + seen % 7;
        EXPECT(remote_arm(pair.near.remote, pair.near.receive_cq, 0), ==, 0);
        int taken = remote_poll(pair.near.remote, pair.near.receive_cq, 1 + seen % 3, wc, 0);
        if (!taken) {
            send_to_near(&pair, 1 + seen % 4), posted += 1 + seen % 4;
            expect_event(&pair);
        }
        seen += taken;
    }
}

/* The thread that fires the timers; -1: no such thread. */
static long sleeps_of_helper(void)
{
    char path[300], line[200];
    long switches = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        bool helper = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            helper |= !strcmp(line, "Name:\tsoftverbs\n");
            if (helper)
                sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return switches;
}

static void nobody_is_woken_when_nothing_is_held(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 4, SHORT);
    EXPECT(remote_arm(pair.near.remote, pair.near.receive_cq, 0), ==, 0);
    send_to_near(&pair, 1);
    expect_event(&pair);
    long before, last = -1;
    for (; (before = sleeps_of_helper()) != last; usleep(5000)) /* until the helper's turn has ended */
        last = before;
    EXPECT(before, >, 0);
    for (int i = 0; i < 10; i++) {
        usleep(10 * SHORT);
        EXPECT(sleeps_of_helper() - before, <=, 3);
    }
}

static void a_queue_that_holds_an_event_can_be_destroyed(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 100, LONG);
    EXPECT(remote_arm(pair.near.remote, pair.near.receive_cq, 0), ==, 0);
    send_to_near(&pair, 1);
    EXPECT(remote_destroy(pair.near.remote, KIND_QP, pair.near.qp), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_CQ, pair.near.receive_cq), ==, 0);
    for (int64_t end = microseconds() + 2 * LONG; microseconds() < end; usleep(1000))
        EXPECT(remote_get_cq_event(pair.near.remote, pair.near.channel, 0), ==, NOBODY);
}

static void a_solicited_arming_holds_back_what_it_is_for(const void *row)
{
    struct pair pair = open_with_channel();
    moderate(&pair, 2, LONG);
    long from = microseconds();
    EXPECT(remote_arm(pair.near.remote, pair.near.receive_cq, 1), ==, 0);
    send_to_near(&pair, 3);
    EXPECT(remote_get_cq_event(pair.near.remote, pair.near.channel, 20), ==, NOBODY);
    struct send send = end_send(&pair.far, &pair.near, IBV_WR_SEND, 1, 0, 8);
    send.wr.send_flags |= IBV_SEND_SOLICITED;
    end_post_receive(&pair.near, end_receive(&pair.near, 1, 0, 64));
    end_post(&pair.far, send);
    expect_event(&pair);
    EXPECT(microseconds() - from, >=, LONG);
}

static void bad_arguments_are_refused(const void *row)
{
    struct pair pair = open_with_channel();
    struct ibv_modify_cq_attr attr = {.attr_mask = 1 << 1};
    struct ibv_device_attr_ex device;
    EXPECT(ibv_modify_cq(near_cq(&pair), &attr), ==, EINVAL);
    attr.attr_mask = 0;
    EXPECT(ibv_modify_cq(near_cq(&pair), &attr), ==, 0);
    near_cq(&pair)->handle ^= 1;
    EXPECT(ibv_modify_cq(near_cq(&pair), &attr), ==, ENOENT);
    near_cq(&pair)->handle ^= 1;
    EXPECT(ibv_query_device_ex(near_cq(&pair)->context, NULL, &device), ==, 0);
    EXPECT(device.cq_mod_caps.max_cq_count, ==, UINT16_MAX);
    EXPECT(device.cq_mod_caps.max_cq_period, ==, UINT16_MAX);
}

static void all(void)
{
    CASE(an_event_waits_for_the_period);
    CASE(an_event_comes_with_the_last_of_the_count);
    CASE(entries_are_not_held_back);
    CASE(without_count_or_period_nothing_is_held_back);
    CASE(what_is_held_comes_when_moderation_ends);
    CASE(who_arms_and_polls_again_loses_nothing);
    CASE(nobody_is_woken_when_nothing_is_held);
    CASE(a_queue_that_holds_an_event_can_be_destroyed);
    CASE(a_solicited_arming_holds_back_what_it_is_for);
    CASE(bad_arguments_are_refused);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
