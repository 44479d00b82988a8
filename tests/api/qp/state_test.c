/* States of queue pairs: what is flushed, drained, forgotten, and what a query says. */
#include <errno.h>
#include <stdio.h>

#include "local_end.h"
#include "pair.h"

enum { QUIET = 20 };

static enum ibv_qp_type type_now;

static struct pair open_now(void)
{
    return pair_open(type_now);
}

/* Everything outstanding and everything posted later ends with WR_FLUSH_ERR, in order, signalled or not. */
static void the_error_state_flushes_both_queues_in_order(const void *row)
{
    struct pair pair = open_now();
    struct end *near = &pair.near;
    struct send quiet = end_send(near, &pair.far, IBV_WR_SEND, 0, 0, 8);
    quiet.wr.send_flags = 0;
    for (uint64_t i = 0; i < 4; i++)
        end_post_receive(near, end_receive(near, i, 0, 64));
    EXPECT(end_move(near, IBV_QPS_ERR), ==, 0);
    EXPECT(end_state(near), ==, IBV_QPS_ERR);
    for (quiet.wr.wr_id = 0; quiet.wr.wr_id < 10; quiet.wr.wr_id++)
        end_post(near, quiet);
    end_post_receive(near, end_receive(near, 4, 0, 64));
    for (uint64_t i = 0; i < 5; i++)
        end_expect_received(near, i, IBV_WC_WR_FLUSH_ERR, 0);
    for (uint64_t i = 0; i < 10; i++)
        end_expect_sent(near, i, IBV_WC_WR_FLUSH_ERR);
    end_expect_nothing(near);
}

static void RESET_and_connecting_anew_begins_from_nothing(const void *row)
{
    struct pair pair = open_now();
    for (int round = 0; round < 5; round++) {
        pair_ping(&pair, &pair.near, &pair.far);
        end_post_receive(&pair.far, end_receive(&pair.far, 99, 0, 64));
        EXPECT(end_move(&pair.near, round % 2 ? IBV_QPS_ERR : IBV_QPS_RESET), ==, 0);
        EXPECT(end_move(&pair.near, IBV_QPS_RESET), ==, 0);
        EXPECT(end_state(&pair.near), ==, IBV_QPS_RESET);
        EXPECT(end_move(&pair.far, IBV_QPS_RESET), ==, 0);
        pair_connect(&pair);
    }
    pair_ping(&pair, &pair.far, &pair.near);
    end_expect_nothing(&pair.near);
    end_expect_nothing(&pair.far);
}

static void a_refused_change_changes_nothing(const void *row)
{
    struct pair pair = open_now();
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    EXPECT(end_move(&pair.near, IBV_QPS_INIT), ==, EINVAL);
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, IBV_QP_STATE), ==, EINVAL);
    attr.qp_state = IBV_QPS_SQE;
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, IBV_QP_STATE), ==, EINVAL);
    attr.qp_state = (enum ibv_qp_state)17;
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, IBV_QP_STATE), ==, EINVAL);
    attr.cur_qp_state = IBV_QPS_SQD;
    attr.qp_state = IBV_QPS_RTS;
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), ==, EINVAL);
    EXPECT(end_state(&pair.near), ==, IBV_QPS_RTS);
    pair_ping(&pair, &pair.near, &pair.far);
}

static void each_required_attribute_is_required(const void *row)
{
    struct wishes wishes = pair_wishes(type_now);
    struct pair pair = pair_make(wishes);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    int mask =
        IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | (type_now == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    for (int bit = IBV_QP_STATE << 1; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
        if (mask & bit)
            EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, mask & ~bit), ==, EINVAL);
        else
            EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, mask | bit), ==, EINVAL);
        EXPECT(end_state(&pair.near), ==, IBV_QPS_RESET);
    }
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, mask), ==, 0);
}

static void SQD_drains_and_RTS_goes_on(const void *row)
{
    struct pair pair = open_now();
    struct end *near = &pair.near, *far = &pair.far;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    for (uint64_t i = 0; i < 8; i++)
        end_post_receive(far, end_receive(far, i, 0, 64));
    for (uint64_t i = 0; i < 4; i++)
        end_post(near, end_send(near, far, IBV_WR_SEND, i, 0, 8));
    EXPECT(remote_modify_qp(near->remote, near->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), ==, 0);
    EXPECT(remote_get_async_event(near->remote, PATIENCE), ==, IBV_EVENT_SQ_DRAINED);
    EXPECT(near->remote->call.id[0], ==, near->qp);
    for (uint64_t i = 0; i < 4; i++)
        end_expect_sent(near, i, IBV_WC_SUCCESS);
    end_post(near, end_send(near, far, IBV_WR_SEND, 4, 0, 8));
    struct ibv_wc wc;
    EXPECT(remote_poll(near->remote, near->send_cq, 1, &wc, QUIET), ==, 0);
    EXPECT(end_state(near), ==, IBV_QPS_SQD);
    EXPECT(end_move(near, IBV_QPS_RTS), ==, 0);
    end_expect_sent(near, 4, IBV_WC_SUCCESS);
}

static void SQD_without_notification_is_silent(const void *row)
{
    struct pair pair = open_now();
    EXPECT(end_move(&pair.near, IBV_QPS_SQD), ==, 0);
    EXPECT(remote_get_async_event(pair.near.remote, QUIET), ==, -1);
    EXPECT(end_move(&pair.near, IBV_QPS_RTS), ==, 0);
    pair_ping(&pair, &pair.near, &pair.far);
}

/* Work that was posted in SQD is flushed with the rest. */
static void SQD_to_ERR_flushes_what_was_posted(const void *row)
{
    struct pair pair = open_now();
    EXPECT(end_move(&pair.near, IBV_QPS_SQD), ==, 0);
    for (uint64_t i = 0; i < 5; i++)
        end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, i, 0, 8));
    EXPECT(end_move(&pair.near, IBV_QPS_ERR), ==, 0);
    for (uint64_t i = 0; i < 5; i++)
        end_expect_sent(&pair.near, i, IBV_WC_WR_FLUSH_ERR);
}

static void a_query_tells_what_was_set(const void *row)
{
    struct wishes wishes = pair_wishes(type_now);
    wishes.signal_all = true;
    struct pair pair = pair_open_as(wishes);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(remote_query_qp(pair.near.remote, pair.near.qp, &attr, &init), ==, 0);
    EXPECT(attr.qp_state, ==, IBV_QPS_RTS);
    EXPECT(attr.cur_qp_state, ==, IBV_QPS_RTS);
    EXPECT(attr.port_num, ==, 1);
    EXPECT(attr.cap.max_send_wr, >=, wishes.cap.max_send_wr);
    EXPECT(attr.cap.max_inline_data, >=, wishes.cap.max_inline_data);
    EXPECT(init.qp_type, ==, type_now);
    EXPECT(init.sq_sig_all, ==, 1);
    EXPECT(init.cap.max_recv_sge, >=, wishes.cap.max_recv_sge);
    if (type_now == IBV_QPT_UD) {
        EXPECT(attr.qkey, ==, QKEY);
        return;
    }
    EXPECT(attr.dest_qp_num, ==, pair.far.number);
    EXPECT(attr.path_mtu, ==, IBV_MTU_1024);
    EXPECT(attr.rq_psn, ==, 0x123456);
    EXPECT(attr.sq_psn, ==, 0x123456);
    EXPECT(attr.ah_attr.is_global, ==, 1);
    EXPECT(attr.ah_attr.grh.sgid_index, ==, wishes.gid_index);
    EXPECT(attr.qp_access_flags, ==, wishes.qp_access);
    if (type_now == IBV_QPT_UC)
        return;
    EXPECT(attr.timeout, ==, wishes.timeout);
    EXPECT(attr.retry_cnt, ==, wishes.retries);
    EXPECT(attr.rnr_retry, ==, wishes.rnr_retries);
    EXPECT(attr.min_rnr_timer, ==, wishes.rnr_timer);
    EXPECT(attr.max_rd_atomic, ==, wishes.reads);
    EXPECT(attr.max_dest_rd_atomic, ==, wishes.served_reads);
}

static void a_queue_pair_in_RTR_receives(const void *row)
{
    struct pair pair = pair_make(pair_wishes(type_now));
    EXPECT(end_initialize(&pair.far, &pair.wishes), ==, 0);
    EXPECT(end_ready_to_receive(&pair.far, &pair.wishes, &pair.near), ==, 0);
    struct pair other = pair; /* the near end connects alone */
    struct wishes *wishes = &pair.wishes;
    EXPECT(end_initialize(&pair.near, wishes), ==, 0);
    EXPECT(end_ready_to_receive(&pair.near, wishes, &other.far), ==, 0);
    EXPECT(end_ready_to_send(&pair.near, wishes), ==, 0);
    if (type_now == IBV_QPT_UD) {
        struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
        attr.grh = (struct ibv_global_route){.dgid = pair.far.gid, .sgid_index = (uint8_t)wishes->gid_index};
        pair.near.ah = remote_create_ah(pair.near.remote, pair.near.pd, &attr);
    }
    pair_ping(&pair, &pair.near, &pair.far);
    if (type_now != IBV_QPT_UD)
        EXPECT(remote_get_async_event(pair.far.remote, PATIENCE), ==, IBV_EVENT_COMM_EST);
    EXPECT(end_state(&pair.far), ==, IBV_QPS_RTR);
}

struct value {
    const char *name;
    int bit;
    enum ibv_qp_state from;
    struct ibv_qp_attr attr;
};

static const struct value values[] = {
    {"port 0", IBV_QP_PORT, IBV_QPS_RESET, {.port_num = 0}},
    {"port 2", IBV_QP_PORT, IBV_QPS_RESET, {.port_num = 2}},
    {"P_Key index 1", IBV_QP_PKEY_INDEX, IBV_QPS_RESET, {.pkey_index = 1}},
    {"path MTU 0", IBV_QP_PATH_MTU, IBV_QPS_INIT, {.path_mtu = (enum ibv_mtu)0}},
    {"path MTU 6", IBV_QP_PATH_MTU, IBV_QPS_INIT, {.path_mtu = (enum ibv_mtu)6}},
    {"an address without GRH", IBV_QP_AV, IBV_QPS_INIT, {.ah_attr = {.port_num = 1}}},
    {"an address of port 3", IBV_QP_AV, IBV_QPS_INIT, {.ah_attr = {.port_num = 3, .is_global = 1}}},
    {"an empty GID index",
     IBV_QP_AV,
     IBV_QPS_INIT,
     {.ah_attr = {.port_num = 1, .is_global = 1, .grh = {.sgid_index = 200}}}},
    {"max_dest_rd_atomic 255", IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QPS_INIT, {.max_dest_rd_atomic = 255}},
    {"min_rnr_timer 32", IBV_QP_MIN_RNR_TIMER, IBV_QPS_INIT, {.min_rnr_timer = 32}},
    {"timeout 32", IBV_QP_TIMEOUT, IBV_QPS_RTR, {.timeout = 32}},
    {"retry_cnt 8", IBV_QP_RETRY_CNT, IBV_QPS_RTR, {.retry_cnt = 8}},
    {"rnr_retry 8", IBV_QP_RNR_RETRY, IBV_QPS_RTR, {.rnr_retry = 8}},
    {"max_rd_atomic 255", IBV_QP_MAX_QP_RD_ATOMIC, IBV_QPS_RTR, {.max_rd_atomic = 255}},
};

/* The same transition with right values and one wrong one; then with right ones only. */
static void a_wrong_value_is_EINVAL(const void *argument)
{
    const struct value *value = argument;
    struct pair pair = pair_make(pair_wishes(IBV_QPT_RC));
    struct end *near = &pair.near;
    struct wishes *wishes = &pair.wishes;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (value->from != IBV_QPS_RESET)
        EXPECT(end_initialize(near, wishes), ==, 0);
    if (value->from == IBV_QPS_RTR)
        EXPECT(end_ready_to_receive(near, wishes, &pair.far), ==, 0);
    EXPECT(remote_query_qp(near->remote, near->qp, &attr, &init), ==, 0);
    int mask = value->from == IBV_QPS_RESET  ? IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS
               : value->from == IBV_QPS_INIT ? IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                                             : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    EXPECT(mask & value->bit, ==, value->bit);
    attr = value->attr;
    attr.qp_state = value->from + 1;
    if (value->bit != IBV_QP_PORT)
        attr.port_num = 1;
    if (value->bit != IBV_QP_PATH_MTU)
        attr.path_mtu = IBV_MTU_1024;
    if (value->bit != IBV_QP_AV)
        attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = pair.far.gid}};
    EXPECT(remote_modify_qp(near->remote, near->qp, &attr, mask), ==, EINVAL);
    EXPECT(end_state(near), ==, value->from);
    pair_make(pair_wishes(IBV_QPT_RC)); /* the device still works */
    EXPECT(end_move(near, IBV_QPS_RESET), ==, 0);
    pair_connect(&pair);
    pair_ping(&pair, &pair.near, &pair.far);
}

static void access_of_a_running_queue_pair_can_be_changed(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
    EXPECT(remote_modify_qp(pair.far.remote, pair.far.qp, &attr, IBV_QP_ACCESS_FLAGS), ==, 0);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_READ, 1, 0, 8));
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 2, 0, 8));
    end_expect_sent(&pair.near, 2, IBV_WC_REM_INV_REQ_ERR); /* IBA 9.7.4.1.3: not a function of this queue pair */
}

/* The message is for a queue pair that answers nothing. */
static void a_timeout_that_is_set_runs_for_what_is_on_its_way(const void *row)
{
    struct wishes wishes = pair_wishes(IBV_QPT_RC);
    struct ibv_qp_attr attr = {.timeout = wishes.timeout, .retry_cnt = 1};
    wishes.timeout = 0;
    struct pair pair = pair_open_as(wishes);
    EXPECT(end_move(&pair.far, IBV_QPS_RESET), ==, 0);
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 8));
    EXPECT(end_move(&pair.near, IBV_QPS_SQD), ==, 0);
    EXPECT(remote_modify_qp(pair.near.remote, pair.near.qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), ==, 0);
    end_expect_sent(&pair.near, 1, IBV_WC_RETRY_EXC_ERR);
}

/* After the first error all later work is flushed, in order, also unsignalled work. */
static void what_stands_behind_an_error_is_flushed(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct end *near = &pair.near;
    struct send list[8];
    for (uint64_t i = 0; i < COUNT(list); i++) {
        list[i] = end_send(near, &pair.far, IBV_WR_RDMA_WRITE, i, 0, 8);
        list[i].wr.send_flags = 0;
    }
    list[3].wr.wr.rdma.rkey ^= 0x100;
    end_post_receive(near, end_receive(near, 9, 0, 8));
    EXPECT(remote_post_send(near->remote, near->qp, list, COUNT(list), NULL), ==, 0);
    end_expect_sent(near, 3, IBV_WC_REM_ACCESS_ERR);
    for (uint64_t i = 4; i < COUNT(list); i++)
        end_expect_sent(near, i, IBV_WC_WR_FLUSH_ERR);
    end_expect_received(near, 9, IBV_WC_WR_FLUSH_ERR, 0);
    EXPECT(end_state(near), ==, IBV_QPS_ERR);
    end_expect_nothing(near);
}

/* `state` in struct ibv_qp is what ibv_modify_qp or ibv_query_qp last said; UCX counts on that. */
static void the_state_in_the_struct_is_as_last_asked(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct send write = end_send(&pair.near, &pair.far, IBV_WR_RDMA_WRITE, 1, 0, 8);
    write.wr.wr.rdma.rkey ^= 0x100;
    EXPECT(near_qp(&pair)->state, ==, IBV_QPS_RTS);
    end_post(&pair.near, write);
    end_expect_sent(&pair.near, 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT(near_qp(&pair)->state, ==, IBV_QPS_RTS);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT(ibv_query_qp(near_qp(&pair), &attr, IBV_QP_STATE, &init), ==, 0);
    EXPECT(attr.qp_state, ==, IBV_QPS_ERR);
    EXPECT(near_qp(&pair)->state, ==, IBV_QPS_ERR);
}

static void for_each_type(const char *name, void (*body)(const void *))
{
    static const char *const names[] = {[IBV_QPT_RC] = "RC", [IBV_QPT_UC] = "UC", [IBV_QPT_UD] = "UD"};
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    char title[128];
    for (size_t i = 0; i < COUNT(types); i++) {
        type_now = types[i];
        snprintf(title, sizeof title, "%s: %s", names[type_now], name);
        harness_run(title, body, NULL);
    }
}
#define CASE_OF_EACH_TYPE(body) for_each_type(#body, body)

static void all(void)
{
    char title[128];
    CASE_OF_EACH_TYPE(the_error_state_flushes_both_queues_in_order);
    CASE_OF_EACH_TYPE(RESET_and_connecting_anew_begins_from_nothing);
    CASE_OF_EACH_TYPE(a_refused_change_changes_nothing);
    CASE_OF_EACH_TYPE(each_required_attribute_is_required);
    CASE_OF_EACH_TYPE(SQD_drains_and_RTS_goes_on);
    CASE_OF_EACH_TYPE(SQD_without_notification_is_silent);
    CASE_OF_EACH_TYPE(SQD_to_ERR_flushes_what_was_posted);
    CASE_OF_EACH_TYPE(a_query_tells_what_was_set);
    CASE_OF_EACH_TYPE(a_queue_pair_in_RTR_receives);
    for (size_t i = 0; i < COUNT(values); i++) {
        snprintf(title, sizeof title, "%s is EINVAL", values[i].name);
        harness_run(title, a_wrong_value_is_EINVAL, &values[i]);
    }
    CASE(access_of_a_running_queue_pair_can_be_changed);
    CASE(a_timeout_that_is_set_runs_for_what_is_on_its_way);
    CASE(what_stands_behind_an_error_is_flushed);
    CASE(the_state_in_the_struct_is_as_last_asked);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
