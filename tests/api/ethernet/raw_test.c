/* Raw packets: which frames flow rules steer where, and what arrives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"

static void a_frame_goes_where_a_rule_wants_it(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, RECEIVES);
    uint8_t frame[FRAME];
    struct ibv_flow *flow = RAW_FLOW(receiver, .mac = mac);
    raw_far_sends_to(&pair, other_mac);
    raw_far_sends_to(&pair, mac);
    struct got got = raw_gets(receiver);
    raw_fill_frame(frame, mac, FRAME);
    EXPECT(got.length, ==, FRAME);
    EXPECT(got.number, ==, receiver->qp->qp_num);
    EXPECT(got.tag, ==, 0);
    EXPECT(memcmp(receiver->memory[got.id], frame, FRAME), ==, 0);
    raw_gets_nothing(receiver);
    EXPECT(ibv_destroy_flow(flow), ==, 0);
    struct receiver *witness = raw_make_receiver(&pair, 0, RECEIVES);
    flow = RAW_FLOW(witness, .type = IBV_FLOW_ATTR_SNIFFER);
    raw_far_sends_to(&pair, mac);
    EXPECT(raw_gets(witness).length, ==, FRAME);
    raw_gets_nothing(receiver); /* whose rule is gone */
    ibv_destroy_flow(flow);
    raw_destroy_receiver(receiver);
    raw_destroy_receiver(witness);
}

static void the_better_priority_takes_the_frame(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *first = raw_make_receiver(&pair, 0, RECEIVES), *second = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_flow *low = RAW_FLOW(second, .mac = mac, .priority = 2, .tag = 2);
    raw_far_sends_to(&pair, mac);
    EXPECT(raw_gets(second).tag, ==, 2);
    struct ibv_flow *high = RAW_FLOW(first, .mac = mac, .priority = 1, .tag = 1);
    raw_far_sends_to(&pair, mac);
    EXPECT(raw_gets(first).tag, ==, 1);
    raw_gets_nothing(second);
    ibv_destroy_flow(high);
    high = RAW_FLOW(first, .mac = mac, .priority = 1, .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
    raw_far_sends_to(&pair, mac);
    raw_gets(first);
    raw_gets(second);
    ibv_destroy_flow(high);
    high = RAW_FLOW(first, .mac = mac, .priority = 2);
    raw_far_sends_to(&pair, mac);
    raw_gets(first);
    raw_gets(second);
    ibv_destroy_flow(high);
    ibv_destroy_flow(low);
    raw_destroy_receiver(first);
    raw_destroy_receiver(second);
}

static void default_rules_get_what_nobody_took(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *normal = raw_make_receiver(&pair, 0, RECEIVES), *all = raw_make_receiver(&pair, 0, RECEIVES),
                    *group = raw_make_receiver(&pair, 0, RECEIVES), *sniffer = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_flow *flows[] = {
        RAW_FLOW(normal, .mac = mac),
        RAW_FLOW(all, .type = IBV_FLOW_ATTR_ALL_DEFAULT),
        RAW_FLOW(group, .type = IBV_FLOW_ATTR_MC_DEFAULT),
        RAW_FLOW(sniffer, .type = IBV_FLOW_ATTR_SNIFFER),
    };
    raw_far_sends_to(&pair, mac);
    raw_gets(sniffer);
    raw_gets(normal);
    raw_gets_nothing(all);
    raw_far_sends_to(&pair, other_mac);
    raw_gets(sniffer);
    raw_gets(all);
    raw_gets_nothing(group);
    raw_far_sends_to(&pair, group_mac);
    raw_gets(sniffer);
    raw_gets(all);
    raw_gets(group);
    raw_gets_nothing(normal);
    for (unsigned i = 0; i < COUNT(flows); i++)
        EXPECT(ibv_destroy_flow(flows[i]), ==, 0);
    raw_destroy_receiver(normal);
    raw_destroy_receiver(all);
    raw_destroy_receiver(group);
    raw_destroy_receiver(sniffer);
}

static void dropped_frames_are_counted_and_gone(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, RECEIVES), *witness = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_counters_init_attr init = {0};
    struct ibv_counters *counters = ibv_create_counters(receiver->qp->context, &init);
    struct ibv_counter_attach_attr packets = {IBV_COUNTER_PACKETS, 0, 0}, bytes = {IBV_COUNTER_BYTES, 3, 0};
    uint64_t values[6] = {[5] = 77};
    EXPECT(ibv_attach_counters_point_flow(counters, &packets, NULL), ==, 0);
    EXPECT(ibv_attach_counters_point_flow(counters, &bytes, NULL), ==, 0);
    struct ibv_flow *sniffer = RAW_FLOW(witness, .type = IBV_FLOW_ATTR_SNIFFER);
    struct ibv_flow *low = RAW_FLOW(receiver, .mac = mac, .priority = 1);
    struct ibv_flow *drop = RAW_FLOW(receiver, .mac = mac, .drop = true, .counters = counters);
    EXPECT(ibv_attach_counters_point_flow(counters, &bytes, NULL), ==, EBUSY);
    EXPECT(ibv_destroy_counters(counters), ==, EBUSY);
    for (int i = 0; i < 3; i++) {
        raw_far_sends_to(&pair, mac);
        raw_gets(witness);
    }
    raw_flush_to(&pair, witness);
    raw_gets_nothing(receiver);
    EXPECT(ibv_read_counters(counters, values, 5, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), ==, 0);
    EXPECT(values[0], ==, 3);
    EXPECT(values[3], ==, 3 * FRAME);
    EXPECT(values[1] + values[2] + values[4], ==, 0);
    EXPECT(values[5], ==, 77);
    EXPECT(ibv_destroy_flow(drop), ==, 0);
    EXPECT(ibv_destroy_counters(counters), ==, 0);
    raw_far_sends_to(&pair, mac);
    raw_gets(receiver);
    ibv_destroy_flow(low);
    ibv_destroy_flow(sniffer);
    raw_destroy_receiver(receiver);
    raw_destroy_receiver(witness);
}

static void bad_rules_and_counters_are_refused(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, 0);
    struct ibv_flow_attr attr = {.port = 2}, mask = {.port = 1, .comp_mask = 1};
    struct ibv_counters_init_attr init = {0}, unknown = {1};
    EXPECT_TRUE(!ibv_create_flow(receiver->qp, &attr) && errno == EINVAL);
    EXPECT_TRUE(!ibv_create_flow(receiver->qp, &mask) && errno == EINVAL);
    EXPECT_TRUE(!RAW_TRY_FLOW(receiver->qp, .type = (enum ibv_flow_attr_type)4) && errno == EINVAL);
    EXPECT_TRUE(!RAW_TRY_FLOW(receiver->qp, .flags = 1) && errno == EINVAL);
    EXPECT_TRUE(!RAW_TRY_FLOW(receiver->qp, .type = IBV_FLOW_ATTR_SNIFFER, .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP) &&
                errno == EINVAL);
    EXPECT_TRUE(!RAW_TRY_FLOW(receiver->qp, .flags = IBV_FLOW_ATTR_FLAGS_EGRESS, .tag = 5) && errno == EOPNOTSUPP);
    EXPECT_TRUE(!ibv_create_counters(receiver->qp->context, &unknown) && errno == EINVAL);
    struct ibv_counters *counters = ibv_create_counters(receiver->qp->context, &init);
    struct ibv_counter_attach_attr what = {(enum ibv_counter_description)7, 0, 0}, index = {0, 1024, 0};
    EXPECT(ibv_attach_counters_point_flow(counters, &what, NULL), ==, ENOTSUP);
    EXPECT(ibv_attach_counters_point_flow(counters, &index, NULL), ==, EINVAL);
    EXPECT(ibv_read_counters(counters, &(uint64_t){0}, 1, 2), ==, EINVAL);
    EXPECT(ibv_destroy_counters(counters), ==, 0);
    struct ibv_flow *flow = RAW_FLOW(receiver, .mac = mac);
    EXPECT(ibv_destroy_qp(receiver->qp), ==, EBUSY);
    ibv_destroy_flow(flow);
    struct ibv_flow_action_esp_attr esp = {0};
    EXPECT_TRUE(!ibv_create_flow_action_esp(receiver->qp->context, &esp) && errno == EOPNOTSUPP);
    raw_destroy_receiver(receiver);
}

static void an_egress_rule_withholds_what_it_drops(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_flow *in = RAW_FLOW(receiver, .type = IBV_FLOW_ATTR_SNIFFER);
    struct ibv_flow *out = RAW_FLOW(receiver, .mac = mac, .flags = IBV_FLOW_ATTR_FLAGS_EGRESS, .drop = true);
    uint8_t *frame = receiver->memory[RECEIVES - 1];
    struct ibv_sge sge = {(uintptr_t)frame, FRAME, receiver->mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
    raw_fill_frame(frame, mac, FRAME);
    EXPECT(ibv_post_send(receiver->qp, &wr, &bad), ==, 0);
    raw_fill_frame(frame, other_mac, FRAME);
    EXPECT(ibv_post_send(receiver->qp, &wr, &bad), ==, 0);
    struct got got = raw_gets(receiver);
    EXPECT(memcmp(receiver->memory[got.id], other_mac, 6), ==, 0);
    raw_gets_nothing(receiver);
    ibv_destroy_flow(in);
    ibv_destroy_flow(out);
    raw_destroy_receiver(receiver);
}

/* ---- what is received */

static void tags_are_stripped_on_request(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *plain = raw_make_receiver(&pair, 0, RECEIVES),
                    *stripped = raw_make_receiver(&pair, IBV_QP_CREATE_CVLAN_STRIPPING, RECEIVES),
                    *checked = raw_make_receiver(&pair, IBV_QP_CREATE_SCATTER_FCS, RECEIVES);
    struct ibv_flow *flows[] = {RAW_FLOW(plain, .mac = mac, .tag = 7), RAW_FLOW(stripped, .mac = mac, .tag = 8),
                                RAW_FLOW(checked, .mac = mac)};
    uint8_t frame[FRAME];
    raw_fill_frame(frame, mac, FRAME);
    memcpy(frame + 12, (uint8_t[]){0x81, 0x00, 0x60, 0x05}, 4);
    raw_far_sends(&pair, frame, FRAME, 0);
    struct got got = raw_gets(plain);
    EXPECT(got.length, ==, FRAME);
    EXPECT(got.cvlan, ==, 0);
    EXPECT(got.tag, ==, 7);
    got = raw_gets(stripped);
    EXPECT(got.length, ==, FRAME - 4);
    EXPECT(got.cvlan, ==, 0x6005);
    EXPECT(got.tag, ==, 8);
    EXPECT(memcmp(stripped->memory[got.id] + 12, frame + 16, FRAME - 16), ==, 0);
    EXPECT(raw_gets(checked).length, ==, FRAME + 4);
    for (unsigned i = 0; i < COUNT(flows); i++)
        ibv_destroy_flow(flows[i]);
    raw_destroy_receiver(plain);
    raw_destroy_receiver(stripped);
    raw_destroy_receiver(checked);
}

static void checksums_are_written_and_verified(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_flow *flow = RAW_FLOW(receiver, .mac = mac);
    uint8_t frame[UDP_FRAME];
    raw_fill_udp(frame, 9);
    raw_far_sends(&pair, frame, UDP_FRAME, 0);
    EXPECT(raw_gets(receiver).flags & IBV_WC_IP_CSUM_OK, ==, 0);
    raw_far_sends(&pair, frame, UDP_FRAME, IBV_SEND_IP_CSUM);
    EXPECT(raw_gets(receiver).flags & IBV_WC_IP_CSUM_OK, ==, IBV_WC_IP_CSUM_OK);
    ibv_destroy_flow(flow);
    raw_destroy_receiver(receiver);
}

static void frames_without_a_receive_are_lost(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, 2), *witness = raw_make_receiver(&pair, 0, RECEIVES);
    struct ibv_flow *flow = RAW_FLOW(receiver, .mac = mac), *sniffer = RAW_FLOW(witness, .type = IBV_FLOW_ATTR_SNIFFER);
    for (int i = 0; i < 3; i++) {
        raw_far_sends_to(&pair, mac);
        raw_gets(witness);
    }
    raw_flush_to(&pair, witness);
    raw_gets(receiver);
    raw_gets(receiver);
    raw_gets_nothing(receiver);
    ibv_destroy_flow(flow);
    ibv_destroy_flow(sniffer);
    raw_destroy_receiver(receiver);
    raw_destroy_receiver(witness);
}

static void own_multicast_comes_back_unless_blocked(const void *row)
{
    struct pair pair = raw_open_pair();
    for (int blocked = 0; blocked < 2; blocked++) {
        struct receiver *receiver = raw_make_receiver(&pair, blocked ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0, RECEIVES),
                        *witness = raw_make_receiver(&pair, 0, RECEIVES);
        struct ibv_flow *flow = RAW_FLOW(receiver, .mac = group_mac),
                        *all = RAW_FLOW(witness, .type = IBV_FLOW_ATTR_SNIFFER);
        uint8_t *frame = receiver->memory[RECEIVES - 1];
        struct ibv_sge sge = {(uintptr_t)frame, FRAME, receiver->mr->lkey};
        struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
        raw_fill_frame(frame, group_mac, FRAME);
        EXPECT(ibv_post_send(receiver->qp, &wr, &bad), ==, 0);
        raw_gets(witness);
        raw_flush_to(&pair, witness);
        if (blocked)
            raw_gets_nothing(receiver);
        else
            raw_gets(receiver);
        ibv_destroy_flow(flow);
        ibv_destroy_flow(all);
        raw_destroy_receiver(receiver);
        raw_destroy_receiver(witness);
    }
}

static void large_data_arrives_in_segments(const void *row)
{
    struct pair pair = raw_open_pair();
    struct receiver *receiver = raw_make_receiver(&pair, 0, RECEIVES - 1);
    struct ibv_flow *flow = RAW_FLOW(receiver, .mac = mac);
    uint8_t header[42], *data = receiver->memory[RECEIVES - 1];
    raw_fill_udp(data, 9);
    memcpy(header, data, sizeof header);
    struct ibv_sge sge = {(uintptr_t)data, 250, receiver->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 77, .opcode = IBV_WR_TSO, .sg_list = &sge, .num_sge = 1};
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.tso.hdr = header;
    wr.tso.hdr_sz = sizeof header;
    wr.tso.mss = 0;
    EXPECT(ibv_post_send(receiver->qp, &wr, &bad), ==, EINVAL);
    wr.tso.mss = 100;
    EXPECT(ibv_post_send(receiver->qp, &wr, &bad), ==, 0);
    EXPECT(raw_gets(receiver).id, ==, 77);
    for (int i = 0; i < 3; i++) {
        struct got got = raw_gets(receiver);
        EXPECT(got.length, ==, sizeof header + (i < 2 ? 100 : 50));
        EXPECT(got.flags & IBV_WC_IP_CSUM_OK, ==, IBV_WC_IP_CSUM_OK);
        EXPECT(memcmp(receiver->memory[got.id] + sizeof header, data + i * 100, i < 2 ? 100 : 50), ==, 0);
    }
    ibv_destroy_flow(flow);
    raw_destroy_receiver(receiver);
}

static void all(void)
{
    CASE(a_frame_goes_where_a_rule_wants_it);
    CASE(the_better_priority_takes_the_frame);
    CASE(default_rules_get_what_nobody_took);
    CASE(dropped_frames_are_counted_and_gone);
    CASE(bad_rules_and_counters_are_refused);
    CASE(an_egress_rule_withholds_what_it_drops);
    CASE(tags_are_stripped_on_request);
    CASE(checksums_are_written_and_verified);
    CASE(frames_without_a_receive_are_lost);
    CASE(own_multicast_comes_back_unless_blocked);
    CASE(large_data_arrives_in_segments);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
