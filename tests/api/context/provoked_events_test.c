/* Events that `softverbs event` provokes: the processes that get them, and the traffic while a port is down. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_end.h"
#include "one_process.h"

extern char **environ;

/* softverbs event [--pid PID] NAME soft0, to its end; what it prints is not TAP. */
static void provoke_in(const char *event, int pid)
{
    char number[16];
    char *all[] = {COMMAND, "event", (char *)event, "soft0", NULL};
    char *one[] = {COMMAND, "event", "--pid", number, (char *)event, "soft0", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    snprintf(number, sizeof number, "%d", pid);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    EXPECT(posix_spawn(&child, COMMAND, &actions, NULL, pid ? one : all, environ), ==, 0);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT(waitpid(child, &status, 0), ==, child);
    EXPECT(status, ==, 0);
}

static void provoke(const char *event)
{
    provoke_in(event, 0);
}

/* The end learns of it once. */
static void hear(struct end *end, enum ibv_event_type type)
{
    EXPECT(remote_get_async_event(end->remote, PATIENCE), ==, type);
}

static void hear_both(struct pair *pair, enum ibv_event_type type)
{
    hear(&pair->near, type);
    hear(&pair->far, type);
}

static void hear_nothing(struct pair *pair)
{
    EXPECT(remote_get_async_event(pair->near.remote, 20), ==, -1);
    EXPECT(remote_get_async_event(pair->far.remote, 0), ==, -1);
}

static enum ibv_port_state port_state(struct pair *pair)
{
    struct ibv_port_attr port;
    EXPECT(ibv_query_port(near_qp(pair)->context, 1, &port), ==, 0);
    return port.state;
}

static void a_port_goes_down_and_up_and_everybody_hears_of_it(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    EXPECT(port_state(&pair), ==, IBV_PORT_ACTIVE);
    provoke("port-down");
    hear_both(&pair, IBV_EVENT_PORT_ERR);
    EXPECT(port_state(&pair), ==, IBV_PORT_DOWN);
    provoke("port-down");
    hear_nothing(&pair);
    provoke("port-up");
    hear_both(&pair, IBV_EVENT_PORT_ACTIVE);
    EXPECT(port_state(&pair), ==, IBV_PORT_ACTIVE);
    provoke("port-up");
    hear_nothing(&pair);
    pair_ping(&pair, &pair.near, &pair.far);
}

/* The requests end as with a cable that is pulled. */
static void requests_into_a_port_that_is_down_end_in_retries_exceeded(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    pair_ping(&pair, &pair.near, &pair.far);
    provoke("port-down");
    hear_both(&pair, IBV_EVENT_PORT_ERR);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 64));
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, 2, 0, 64));
    end_expect_sent(&pair.near, 1, IBV_WC_RETRY_EXC_ERR);
    end_expect_sent(&pair.near, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    EXPECT(end_state(&pair.far), ==, IBV_QPS_RTS);
    provoke("port-up");
    hear_both(&pair, IBV_EVENT_PORT_ACTIVE);
}

static void a_port_that_is_back_in_time_costs_nothing(const void *row)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    wishes.timeout = 14; /* 67 ms */
    wishes.retries = 7;
    struct pair pair = pair_open_as(wishes);
    provoke("port-down");
    remote_fill(pair.near.remote, pair.near.memory, 4096, 3);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 4096));
    end_expect_nothing(&pair.near);
    provoke("port-up");
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair.far.remote, pair.far.memory, 4096, 3, 0), ==, -1);
    hear_both(&pair, IBV_EVENT_PORT_ERR);
    hear_both(&pair, IBV_EVENT_PORT_ACTIVE);
}

/* Messages to the end whose port is down are lost, too. */
static void one_end_alone_can_be_cut_off(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    provoke_in("port-down", getpid());
    hear(&pair.near, IBV_EVENT_PORT_ERR);
    EXPECT(remote_get_async_event(pair.far.remote, 20), ==, -1);
    end_post(&pair.far, end_send(&pair.far, &pair.near, IBV_WR_RDMA_WRITE, 1, 0, 64));
    end_expect_sent(&pair.far, 1, IBV_WC_RETRY_EXC_ERR);
    provoke_in("port-up", getpid());
    hear(&pair.near, IBV_EVENT_PORT_ACTIVE);
}

static void send_one(struct pair *pair, uint64_t id, bool arrives)
{
    end_post_receive(&pair->far, end_receive(&pair->far, id, 0, 200));
    end_post(&pair->near, end_send(&pair->near, &pair->far, IBV_WR_SEND, id, 0, 64));
    end_expect_sent(&pair->near, id, IBV_WC_SUCCESS);
    if (arrives)
        EXPECT(end_received(&pair->far).status, ==, IBV_WC_SUCCESS);
}

/* Unreliable messages are lost without an error; the receive takes the first one that arrives afterwards. */
static void unreliable_messages_are_lost_while_a_port_is_down(const void *row)
{
    struct pair pair = pair_open(*(const enum ibv_qp_type *)row);
    provoke("port-down");
    hear_both(&pair, IBV_EVENT_PORT_ERR);
    send_one(&pair, 1, false);
    provoke("port-up");
    hear_both(&pair, IBV_EVENT_PORT_ACTIVE);
    end_expect_nothing(&pair.far);
    send_one(&pair, 2, true);
}

static void a_device_that_fails_takes_its_queue_pairs_along(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    end_post_receive(&pair.far, end_receive(&pair.far, 7, 0, 64));
    provoke("device-fatal");
    hear_both(&pair, IBV_EVENT_DEVICE_FATAL);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    end_expect_received(&pair.far, 7, IBV_WC_WR_FLUSH_ERR, 0);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 8, 0, 8));
    end_expect_sent(&pair.near, 8, IBV_WC_WR_FLUSH_ERR);
    hear_nothing(&pair);
    EXPECT(end_move(&pair.near, IBV_QPS_RESET), ==, 0); /* as after a reset of the device */
    EXPECT(end_move(&pair.far, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    pair_ping(&pair, &pair.near, &pair.far);
}

/* Any process of the same user could truncate it. No process shares anything with the others then. */
static void a_table_that_is_truncated_fails_the_device(const void *row)
{
    char path[512];
    struct pair pair = pair_open(IBV_QPT_RC);
    pair_ping(&pair, &pair.near, &pair.far);
    end_post_receive(&pair.far, end_receive(&pair.far, 7, 0, 64));
    snprintf(path, sizeof path, "%s/table", getenv("SOFTVERBS_DIR"));
    EXPECT(truncate(path, 0), ==, 0);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 8, 0, 8));
    hear_both(&pair, IBV_EVENT_DEVICE_FATAL);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_ERR);
    EXPECT(end_state(&pair.far), ==, IBV_QPS_ERR);
}

struct told {
    const char *name;
    enum ibv_event_type type;
};

static void what_is_only_told_disturbs_nothing(const void *row)
{
    const struct told *told = row;
    struct pair pair = pair_open(IBV_QPT_RC);
    provoke(told->name);
    hear_both(&pair, told->type);
    pair_ping(&pair, &pair.near, &pair.far);
    hear_nothing(&pair);
}

static void each_context_is_told_with_the_number_of_the_port(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *first = near_qp(&pair)->context, *second = ibv_open_device(first->device);
    provoke("gid-change");
    struct ibv_async_event events[] = {local_event(first), local_event(second)};
    for (size_t i = 0; i < COUNT(events); i++) {
        EXPECT(events[i].event_type, ==, IBV_EVENT_GID_CHANGE);
        EXPECT(events[i].element.port_num, ==, 1);
    }
    EXPECT(ibv_close_device(second), ==, 0);
    hear(&pair.far, IBV_EVENT_GID_CHANGE);
}

static void all(void)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
    static const struct told events[] = {
        {"pkey-change", IBV_EVENT_PKEY_CHANGE},
        {"gid-change", IBV_EVENT_GID_CHANGE},
        {"lid-change", IBV_EVENT_LID_CHANGE},
        {"sm-change", IBV_EVENT_SM_CHANGE},
        {"client-reregister", IBV_EVENT_CLIENT_REREGISTER},
    };
    CASE(a_port_goes_down_and_up_and_everybody_hears_of_it);
    CASE(requests_into_a_port_that_is_down_end_in_retries_exceeded);
    CASE(a_port_that_is_back_in_time_costs_nothing);
    if (harness_link() == LINK_SHM) /* where the ends are two processes */
        CASE(one_end_alone_can_be_cut_off);
    harness_run("UC: messages are lost while a port is down", unreliable_messages_are_lost_while_a_port_is_down,
                &types[0]);
    harness_run("UD: messages are lost while a port is down", unreliable_messages_are_lost_while_a_port_is_down,
                &types[1]);
    CASE(a_device_that_fails_takes_its_queue_pairs_along);
    CASE(a_table_that_is_truncated_fails_the_device);
    for (size_t i = 0; i < COUNT(events); i++)
        harness_run(events[i].name, what_is_only_told_disturbs_nothing, &events[i]);
    CASE(each_context_is_told_with_the_number_of_the_port);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
