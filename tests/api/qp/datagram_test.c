/* Unreliable datagrams: the GRH, Q_Keys, sizes, replies, multicast between processes. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diag/diag.h"
#include "local_fixture.h"
#include "pair.h"

enum { GRH = 40, MTU = 4096, ROCE_V2_IPV4 = 0xa, ROCE_V2_IPV6 = 0x9 /* as mlx5 reports them in sl */ };

/* For RoCE v2 over IPv4 the last 20 of the 40 bytes are the IPv4 header, over IPv6 all of them are its header. */
static void the_GRH_stands_before_the_payload(const void *argument)
{
    struct wishes wishes = pair_wishes(IBV_QPT_UD);
    wishes.gid_index = *(const int *)argument;
    struct pair pair = pair_open_as(wishes);
    struct end *far = &pair.far;
    remote_set(far->remote, far->memory, 256, 0xa5);
    end_post_receive(far, end_receive(far, 1, 0, 256));
    end_post(&pair.near, end_send(&pair.near, far, IBV_WR_SEND, 1, 0, 16));
    struct ibv_wc wc = end_received(far);
    EXPECT(wc.wc_flags & IBV_WC_GRH, ==, IBV_WC_GRH);
    EXPECT(wc.byte_len, ==, 16 + GRH);
    EXPECT(wc.src_qp, ==, pair.near.number);
    uint8_t header[GRH];
    for (size_t i = 0; i < sizeof header; i += 8) {
        uint64_t word = remote_peek(far->remote, far->memory + i);
        memcpy(header + i, &word, 8);
    }
    EXPECT(wc.sl, ==, wishes.gid_index == 1 ? ROCE_V2_IPV4 : ROCE_V2_IPV6);
    if (wishes.gid_index == 1) {
        EXPECT(header[20], ==, 0x45);
        EXPECT(header[28], ==, 64);
        EXPECT(memcmp(header + 32, pair.near.gid.raw + 12, 4), ==, 0);
        EXPECT(memcmp(header + 36, far->gid.raw + 12, 4), ==, 0);
    } else {
        EXPECT(header[0] >> 4, ==, 6);
        EXPECT(header[7], ==, 64);
        EXPECT(memcmp(header + 8, pair.near.gid.raw, 16), ==, 0);
        EXPECT(memcmp(header + 24, far->gid.raw, 16), ==, 0);
    }
    EXPECT(remote_peek(far->remote, far->memory + GRH + 16), ==, 0xa5a5a5a5a5a5a5a5);
}

/* A datagram that must be lost is sent; then a good one, which must be the only one that arrives, in the receive after
 * `used` others. */
static void only_the_good_one_arrives(struct pair *pair, struct send lost, uint64_t receives)
{
    struct end *near = &pair->near, *far = &pair->far;
    end_post(near, lost);
    end_expect_sent(near, lost.wr.wr_id, IBV_WC_SUCCESS);
    end_post(near, end_send(near, far, IBV_WR_SEND, 2, 0, 8));
    end_expect_sent(near, 2, IBV_WC_SUCCESS);
    end_expect_received(far, receives, IBV_WC_SUCCESS, 8 + GRH);
    end_expect_nothing(far);
    EXPECT(end_state(near), ==, IBV_QPS_RTS);
    EXPECT(end_state(far), ==, IBV_QPS_RTS);
}

static void a_wrong_QKey_is_dropped(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 64);
    send.wr.wr.ud.remote_qkey ^= 1;
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, 256));
    only_the_good_one_arrives(&pair, send, 1);
}

/* A Q_Key with the high bit set means the queue pair's own (IBA 10.2.5). */
static void a_privileged_QKey_stands_for_the_senders_own(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 64);
    send.wr.wr.ud.remote_qkey = 0x80000000;
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, 256));
    end_post(&pair.near, send);
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_received(&pair.far, 1, IBV_WC_SUCCESS, 64 + GRH);
}

static void a_queue_pair_that_is_not_there_swallows(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    struct send send = end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 64);
    send.wr.wr.ud.remote_qpn = 0xfffff0;
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, 256));
    only_the_good_one_arrives(&pair, send, 1);
}

/* Longer than the receive: dropped, nothing completes, and the receive stays for the next. */
static void what_is_longer_than_its_receive_is_dropped(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, GRH + 60));
    only_the_good_one_arrives(&pair, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, 61), 1);
}

static void a_message_fits_exactly(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    end_post_receive(&pair.far, end_receive(&pair.far, 1, 0, GRH + MTU));
    end_post(&pair.near, end_send(&pair.near, &pair.far, IBV_WR_SEND, 1, 0, MTU));
    end_expect_sent(&pair.near, 1, IBV_WC_SUCCESS);
    end_expect_received(&pair.far, 1, IBV_WC_SUCCESS, GRH + MTU);
}

/* ibv_init_ah_from_wc(3) needs the completion and the GRH; the reply is sent to its source. */
static void one_datagram_queue_pair_talks_to_many(const void *row)
{
    struct pair pairs[4];
    pairs[0] = pair_open(IBV_QPT_UD);
    for (size_t i = 1; i < COUNT(pairs); i++) {
        pairs[i] = pairs[0];
        end_create_qp(&pairs[i].far, &pairs[i].wishes);
        EXPECT(end_initialize(&pairs[i].far, &pairs[i].wishes), ==, 0);
        EXPECT(end_ready_to_receive(&pairs[i].far, &pairs[i].wishes, &pairs[0].near), ==, 0);
        EXPECT(end_ready_to_send(&pairs[i].far, &pairs[i].wishes), ==, 0);
    }
    for (int i = 0; i < 40; i++)
        pair_ping(&pairs[i % 4], i & 4 ? &pairs[i % 4].near : &pairs[i % 4].far,
                  i & 4 ? &pairs[i % 4].far : &pairs[i % 4].near);
}

static union ibv_gid group_gid(uint8_t last)
{
    return (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = last}};
}

static struct send to_group(struct pair *pair, const union ibv_gid *group)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *group, .sgid_index = 1, .hop_limit = 1}};
    struct send send = end_send(&pair->near, &pair->far, IBV_WR_SEND, 5, 0, 100);
    send.ah = remote_create_ah(pair->near.remote, pair->near.pd, &attr);
    send.wr.wr.ud.remote_qpn = 0xffffff;
    EXPECT(send.ah, !=, NOBODY);
    return send;
}

/* Every queue pair that joined gets a copy, the sender's too when it joined; one that left gets no copy. */
static void a_multicast_reaches_all_members(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD), second = pair;
    union ibv_gid group = group_gid(7), other = group_gid(8);
    end_create_qp(&second.far, &second.wishes);
    EXPECT(end_initialize(&second.far, &second.wishes), ==, 0);
    EXPECT(end_ready_to_receive(&second.far, &second.wishes, &pair.near), ==, 0);
    struct end *members[] = {&pair.near, &pair.far, &second.far};
    for (size_t i = 0; i < COUNT(members); i++) {
        EXPECT(remote_attach(members[i]->remote, members[i]->qp, &group), ==, 0);
        end_post_receive(members[i], end_receive(members[i], i, 1024 * (i + 1), 512));
    }
    EXPECT(remote_attach(pair.far.remote, pair.far.qp, &other), ==, 0);
    remote_fill(pair.near.remote, pair.near.memory, 100, 3);
    end_post(&pair.near, to_group(&pair, &group));
    end_expect_sent(&pair.near, 5, IBV_WC_SUCCESS);
    end_expect_received(&pair.near, 0, IBV_WC_SUCCESS, 100 + GRH);
    for (int i = 0; i < 2; i++) { /* on one CQ */
        struct ibv_wc wc = end_received(&pair.far);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
        EXPECT(wc.qp_num, ==, wc.wr_id == 1 ? pair.far.number : second.far.number);
        EXPECT(remote_compare(pair.far.remote, pair.far.memory + 1024 * (wc.wr_id + 1) + GRH, 100, 3, 0), ==, -1);
    }
    end_expect_nothing(&pair.far);
    EXPECT(remote_detach(pair.far.remote, pair.far.qp, &group), ==, 0);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &group), ==, 0);
    end_post_receive(&second.far, end_receive(&second.far, 9, 0, 512));
    end_post(&pair.near, to_group(&pair, &group));
    end_expect_received(&second.far, 9, IBV_WC_SUCCESS, 100 + GRH);
    end_expect_nothing(&pair.far);
    EXPECT(remote_detach(pair.far.remote, pair.far.qp, &other), ==, 0);
    EXPECT(remote_detach(second.far.remote, second.far.qp, &group), ==, 0);
}

enum { BURST = 600, FULL = 4096 };

/* Both ends are members, and have room for all of a burst; the near end sends it. */
static struct pair open_members(const union ibv_gid *group, uint32_t burst)
{
    struct wishes wishes = pair_wishes(IBV_QPT_UD);
    wishes.cap.max_send_wr = wishes.cap.max_recv_wr = burst;
    wishes.cqe = (int)burst;
    struct pair pair = pair_open_as(wishes);
    struct end *members[] = {&pair.near, &pair.far};
    for (size_t i = 0; i < COUNT(members); i++) {
        EXPECT(remote_attach(members[i]->remote, members[i]->qp, group), ==, 0);
        for (uint32_t id = 0; id < burst; id++)
            end_post_receive(members[i], end_receive(members[i], id, 8192, FULL + GRH));
    }
    return pair;
}

static void leave(struct pair *pair, const union ibv_gid *group)
{
    EXPECT(remote_detach(pair->near.remote, pair->near.qp, group), ==, 0);
    EXPECT(remote_detach(pair->far.remote, pair->far.qp, group), ==, 0);
}

static void send_burst(struct pair *pair, const union ibv_gid *group, int count)
{
    struct send send = to_group(pair, group);
    send.sge[0].length = FULL;
    for (int i = 0; i < count; i++)
        end_post(&pair->near, send);
    for (int i = 0; i < count; i++)
        end_expect_sent(&pair->near, 5, IBV_WC_SUCCESS);
    remote_destroy(pair->near.remote, KIND_AH, send.ah);
}

static void a_burst_to_a_group_reaches_all_its_members(const void *row)
{
    union ibv_gid group = group_gid(10);
    struct pair pair = open_members(&group, BURST);
    send_burst(&pair, &group, BURST);
    for (uint64_t id = 0; id < BURST; id++) {
        end_expect_received(&pair.near, id, IBV_WC_SUCCESS, FULL + GRH);
        end_expect_received(&pair.far, id, IBV_WC_SUCCESS, FULL + GRH);
    }
    leave(&pair, &group);
}

/* The number of messages that both processes count as dropped because a member had no room. */
static int count_missed(void)
{
    char text[1 << 16], name[16];
    snprintf(name, sizeof name, "\"%d\":", REASON_PACKET_MEMBER);
    FILE *answer = popen(COMMAND " stat --once --json", "r");
    EXPECT_TRUE(answer);
    text[fread(text, 1, sizeof text - 1, answer)] = 0;
    EXPECT(pclose(answer), ==, 0);
    int sum = 0;
    for (const char *devices = text; (devices = strstr(devices, "\"traffic\":[")); devices++) { /* of each process */
        const char *count = strstr(devices, name), *end = strstr(devices, "\"strays\"");
        sum += count && count < end ? atoi(count + strlen(name)) : 0;
    }
    return sum;
}

static int count_received(struct end *end)
{
    struct ibv_wc wc;
    int count = 0;
    while (remote_poll(end->remote, end->receive_cq, 1, &wc, 100) == 1)
        count++;
    return count;
}

/* A member that takes nothing holds up the others for a moment, once, misses the messages that it has no room for, and
 * is a member again as soon as it continues. */
static void a_member_that_takes_nothing_misses_what_it_has_no_room_for(const void *row)
{
    union ibv_gid group = group_gid(11);
    struct pair pair = open_members(&group, BURST);
    struct timespec from, to;
    int before = count_missed();
    remote_stop(pair.far.remote, true);
    clock_gettime(CLOCK_MONOTONIC, &from);
    send_burst(&pair, &group, BURST / 2);
    int near = count_received(&pair.near);
    clock_gettime(CLOCK_MONOTONIC, &to);
    remote_stop(pair.far.remote, false);
    EXPECT(near, ==, BURST / 2);
    EXPECT(to.tv_sec - from.tv_sec, <, 10); /* as many as that were held up would take half a minute */
    int missed = count_missed() - before;
    EXPECT(missed, >, 0);
    EXPECT(count_received(&pair.far), ==, BURST / 2 - missed);
    send_burst(&pair, &group, BURST / 4);
    EXPECT(count_received(&pair.far), ==, BURST / 4);
    EXPECT(count_missed() - before, ==, missed);
    leave(&pair, &group);
}

static void joining_twice_counts_once_and_leaving_what_was_not_joined_is_EINVAL(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    union ibv_gid group = group_gid(9), unicast = pair.near.gid;
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &group), ==, 0);
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &group), ==, 0);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &group), ==, 0);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &group), ==, EINVAL);
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &unicast), ==, EINVAL);
}

/* ibv_create_qp_ex(3), notes. */
static void a_queue_pair_that_is_attached_to_a_group_is_busy(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    union ibv_gid group = group_gid(12), other = group_gid(13);
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &group), ==, 0);
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &other), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_QP, pair.near.qp), ==, EBUSY);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &group), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_QP, pair.near.qp), ==, EBUSY);
    end_post_receive(&pair.near, end_receive(&pair.near, 1, 0, 512)); /* the member continues */
    end_post(&pair.far, to_group(&(struct pair){.near = pair.far, .far = pair.near}, &other));
    end_expect_received(&pair.near, 1, IBV_WC_SUCCESS, 100 + GRH);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &other), ==, 0);
    EXPECT(remote_destroy(pair.near.remote, KIND_QP, pair.near.qp), ==, 0);
}

static void closing_the_device_detaches(const void *row)
{
    struct fixture fixture = fixture_open();
    union ibv_gid group = group_gid(14);
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_UD);
    EXPECT(ibv_attach_mcast(qp, &group, 0), ==, 0);
    EXPECT(ibv_destroy_qp(qp), ==, EBUSY);
    fixture_close(&fixture);
}

static struct ibv_qp *blocking_qp(const struct fixture *fixture, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr plain = fixture_describe(fixture, type);
    struct ibv_qp_init_attr_ex init = {.send_cq = plain.send_cq,
                                       .recv_cq = plain.recv_cq,
                                       .qp_type = type,
                                       .cap = plain.cap,
                                       .pd = fixture->pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                       .create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
    return ibv_create_qp_ex(fixture->context, &init);
}

/* A member of the group with receives for 100 bytes and a GRH. */
static void join(const struct fixture *fixture, struct ibv_qp *qp, union ibv_gid *group)
{
    struct ibv_sge sge = {(uintptr_t)fixture->memory, 512, fixture->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    local_initialize(qp);
    local_receive_from(qp, 0);
    local_send(qp);
    EXPECT(ibv_attach_mcast(qp, group, 0), ==, 0);
    EXPECT(ibv_post_recv(qp, &wr, &bad), ==, 0);
    EXPECT(ibv_post_recv(qp, &wr, &bad), ==, 0);
}

static void send_to_members(const struct fixture *fixture, struct ibv_qp *qp, struct ibv_ah *ah)
{
    struct ibv_sge sge = {(uintptr_t)fixture->memory + 1024, 100, fixture->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = 0x11}},
                       *bad;
    EXPECT(ibv_post_send(qp, &wr, &bad), ==, 0);
}

/* The flag keeps the sender's own copy from it, and no other member's. REASON_RAW_CREATE_FLAGS */
static void own_multicast_messages_can_be_blocked(const void *row)
{
    struct fixture fixture = fixture_open();
    union ibv_gid group = group_gid(15);
    struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.dgid = group, .sgid_index = 1, .hop_limit = 1}};
    struct ibv_qp *blocking = blocking_qp(&fixture, IBV_QPT_UD), *plain = fixture_qp(&fixture, IBV_QPT_UD);
    struct ibv_ah *ah = ibv_create_ah(fixture.pd, &way);
    EXPECT_TRUE(blocking && ah);
    join(&fixture, blocking, &group);
    join(&fixture, plain, &group);
    send_to_members(&fixture, blocking, ah);
    EXPECT(local_poll(fixture.cq).qp_num, ==, plain->qp_num);
    local_poll_nothing(fixture.cq);
    send_to_members(&fixture, plain, ah);
    EXPECT(local_poll(fixture.cq).qp_num + local_poll(fixture.cq).qp_num, ==, plain->qp_num + blocking->qp_num);
    EXPECT_ERRNO(blocking_qp(&fixture, IBV_QPT_RC), EOPNOTSUPP);
    fixture_close(&fixture);
}

static void only_datagrams_can_join(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    union ibv_gid group = group_gid(9);
    EXPECT(remote_attach(pair.near.remote, pair.near.qp, &group), ==, EINVAL);
    EXPECT(remote_detach(pair.near.remote, pair.near.qp, &group), ==, EINVAL);
}

/* IBA 10.3.1.6: an error of the send queue alone; receives continue, and RTS makes it whole. */
static void a_local_error_stops_only_the_send_queue(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_UD);
    struct end *near = &pair.near;
    struct send send = end_send(near, &pair.far, IBV_WR_SEND, 1, 0, 64);
    send.sge[0].lkey ^= 0x100;
    end_post_receive(near, end_receive(near, 8, 0, 256));
    end_post(near, send);
    end_expect_sent(near, 1, IBV_WC_LOC_PROT_ERR);
    EXPECT(end_state(near), ==, IBV_QPS_SQE);
    end_post(near, end_send(near, &pair.far, IBV_WR_SEND, 2, 0, 8));
    end_expect_sent(near, 2, IBV_WC_WR_FLUSH_ERR);
    end_post(&pair.far, end_send(&pair.far, near, IBV_WR_SEND, 3, 0, 8));
    end_expect_sent(&pair.far, 3, IBV_WC_SUCCESS);
    end_expect_received(near, 8, IBV_WC_SUCCESS, 8 + GRH);
    EXPECT(end_move(near, IBV_QPS_RTS), ==, 0);
    pair_ping(&pair, near, &pair.far);
}

static void all(void)
{
    harness_run("the IPv4 header stands before the payload", the_GRH_stands_before_the_payload, &(int){1});
    harness_run("the IPv6 header stands before the payload", the_GRH_stands_before_the_payload, &(int){0});
    CASE(a_wrong_QKey_is_dropped);
    CASE(a_privileged_QKey_stands_for_the_senders_own);
    CASE(a_queue_pair_that_is_not_there_swallows);
    CASE(what_is_longer_than_its_receive_is_dropped);
    CASE(a_message_fits_exactly);
    CASE(one_datagram_queue_pair_talks_to_many);
    CASE(a_multicast_reaches_all_members);
    CASE(a_burst_to_a_group_reaches_all_its_members);
    if (harness_link() == LINK_SHM)
        CASE(a_member_that_takes_nothing_misses_what_it_has_no_room_for);
    CASE(a_queue_pair_that_is_attached_to_a_group_is_busy);
    CASE(closing_the_device_detaches);
    CASE(joining_twice_counts_once_and_leaving_what_was_not_joined_is_EINVAL);
    CASE(own_multicast_messages_can_be_blocked);
    CASE(only_datagrams_can_join);
    CASE(a_local_error_stops_only_the_send_queue);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
