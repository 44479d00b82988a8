/* Ports of InfiniBand (SOFTVERBS_LINK_LAYER=ib): addresses by LID, with a GRH and without. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "diag/diag.h"
#include "one_process.h"

enum { GRH = 40, MLID = 0xc005, QKEY = 0x1234, SL = 3, NOBODY = 99 };

static const union ibv_gid group = {.raw = {0xff, 0x12, 0xa0, 0x1b, [15] = 7}};

struct fixture {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp;
    struct ibv_port_attr port;
    union ibv_gid gid;
};

static struct ibv_qp *create(struct fixture *fixture, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = fixture->cq,
        .recv_cq = fixture->cq,
        .qp_type = type,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
    };
    return ibv_create_qp(fixture->pd, &attr);
}

static struct fixture begin(enum ibv_qp_type type)
{
    struct fixture fixture = {.context = local_open()};
    fixture.pd = ibv_alloc_pd(fixture.context);
    fixture.cq = ibv_create_cq(fixture.context, 16, NULL, NULL, 0);
    fixture.mr = local_register(fixture.pd);
    fixture.qp = create(&fixture, type);
    EXPECT(ibv_query_port(fixture.context, 1, &fixture.port), ==, 0);
    EXPECT(ibv_query_gid(fixture.context, 1, 0, &fixture.gid), ==, 0);
    return fixture;
}

static struct ibv_ah_attr address(const struct fixture *fixture)
{
    return (struct ibv_ah_attr){.dlid = fixture->port.lid, .sl = SL, .port_num = 1};
}

static void move(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    EXPECT(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), ==, 0);
}

static void start_datagrams(struct fixture *fixture)
{
    move(fixture->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY},
         IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    move(fixture->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR}, 0);
    move(fixture->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_SQ_PSN);
}

/* Moves the queue pair to RTR, where the address is looked at; returns the errno. */
static int receive_by(struct ibv_qp *qp, struct ibv_ah_attr way, uint32_t number)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = number, .ah_attr = way};
    move(qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
         IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    return ibv_modify_qp(qp, &attr,
                         qp->qp_type == IBV_QPT_UC ? mask : mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void post_receive(struct fixture *fixture)
{
    struct ibv_sge sge = {(uintptr_t)local_memory(fixture->mr) + 1024, 256, fixture->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT(ibv_post_recv(fixture->qp, &wr, &bad), ==, 0);
}

static void send_to(struct fixture *fixture, struct ibv_ah *ah, uint32_t number)
{
    struct ibv_sge sge = {(uintptr_t)local_memory(fixture->mr), 8, fixture->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = number;
    wr.wr.ud.remote_qkey = QKEY;
    EXPECT(ibv_post_send(fixture->qp, &wr, &bad), ==, 0);
}

/* The completion of the receive; the completion of the send is passed over. */
static struct ibv_wc received(struct fixture *fixture)
{
    struct ibv_wc wc;
    do {
        wc = local_poll(fixture->cq);
        EXPECT(wc.status, ==, IBV_WC_SUCCESS);
    } while (wc.opcode != IBV_WC_RECV);
    return wc;
}

static void end(struct fixture *fixture)
{
    void *memory = fixture->mr->addr;
    EXPECT(ibv_close_device(fixture->context), ==, 0);
    free(memory);
}

static void a_port_has_a_LID_and_one_GID_of_its_subnet(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_gid_entry entry;
    union ibv_gid none = {0}, second;
    EXPECT(fixture.port.link_layer, ==, IBV_LINK_LAYER_INFINIBAND);
    EXPECT(fixture.port.lid, !=, 0);
    EXPECT(fixture.port.lid, <, 0xc000);
    EXPECT(fixture.port.sm_lid, !=, 0);
    EXPECT(fixture.port.lmc, ==, 0);
    EXPECT(fixture.port.flags & IBV_QPF_GRH_REQUIRED, ==, 0);
    EXPECT(memcmp(fixture.gid.raw, (uint8_t[8]){0xfe, 0x80}, 8), ==, 0);
    EXPECT(fixture.gid.global.interface_id, ==, ibv_get_device_guid(fixture.context->device));
    EXPECT(ibv_query_gid(fixture.context, 1, 1, &second), ==, 0);
    EXPECT(memcmp(&second, &none, sizeof none), ==, 0);
    EXPECT(ibv_query_gid_ex(fixture.context, 1, 0, &entry, 0), ==, 0);
    EXPECT(entry.gid_type, ==, IBV_GID_TYPE_IB);
    EXPECT(entry.ndev_ifindex, ==, 0);
    end(&fixture);
}

static void a_datagram_without_a_GRH_tells_LID_and_service_level(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_ah_attr way = address(&fixture), back;
    start_datagrams(&fixture);
    memset(local_memory(fixture.mr), 0x5a, 8);
    post_receive(&fixture);
    send_to(&fixture, ibv_create_ah(fixture.pd, &way), fixture.qp->qp_num);
    struct ibv_wc wc = received(&fixture);
    EXPECT(wc.wc_flags & IBV_WC_GRH, ==, 0);
    EXPECT(wc.byte_len, ==, GRH + 8);
    EXPECT(wc.slid, ==, fixture.port.lid);
    EXPECT(wc.sl, ==, SL);
    EXPECT(wc.src_qp, ==, fixture.qp->qp_num);
    EXPECT(wc.pkey_index, ==, 0);
    EXPECT(wc.dlid_path_bits, ==, 0);
    EXPECT(local_memory(fixture.mr)[1024 + GRH + 7], ==, 0x5a);
    EXPECT(ibv_init_ah_from_wc(fixture.context, 1, &wc, NULL, &back), ==, 0);
    EXPECT(back.dlid, ==, fixture.port.lid);
    EXPECT(back.sl, ==, SL);
    EXPECT(back.is_global, ==, 0);
    end(&fixture);
}

static void a_datagram_with_a_GRH_shows_it(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_ah_attr way = address(&fixture), back;
    way.is_global = 1;
    way.grh = (struct ibv_global_route){.dgid = fixture.gid, .hop_limit = 5, .traffic_class = 0x12};
    start_datagrams(&fixture);
    post_receive(&fixture);
    send_to(&fixture, ibv_create_ah(fixture.pd, &way), fixture.qp->qp_num);
    struct ibv_wc wc = received(&fixture);
    const struct ibv_grh *grh = (struct ibv_grh *)(local_memory(fixture.mr) + 1024);
    EXPECT(wc.wc_flags & IBV_WC_GRH, ==, IBV_WC_GRH);
    EXPECT(wc.slid, ==, fixture.port.lid);
    EXPECT(grh->next_hdr, ==, 0x1b);
    EXPECT(be16toh(grh->paylen), ==, 12 + 8 + 8 + 4); /* BTH, DETH, payload, ICRC */
    EXPECT(grh->hop_limit, ==, 5);
    EXPECT(memcmp(&grh->sgid, &fixture.gid, sizeof fixture.gid), ==, 0);
    EXPECT(ibv_init_ah_from_wc(fixture.context, 1, &wc, (struct ibv_grh *)grh, &back), ==, 0);
    EXPECT(back.dlid, ==, fixture.port.lid);
    EXPECT(back.is_global, ==, 1);
    EXPECT(back.grh.traffic_class, ==, 0x12);
    end(&fixture);
}

static void a_connection_needs_no_GRH_and_shows_the_peers_LID(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UC);
    EXPECT(receive_by(fixture.qp, address(&fixture), fixture.qp->qp_num), ==, 0);
    move(fixture.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_SQ_PSN);
    post_receive(&fixture);
    send_to(&fixture, NULL, 0);
    struct ibv_wc wc = received(&fixture);
    EXPECT(wc.slid, ==, fixture.port.lid);
    EXPECT(wc.sl, ==, SL);
    end(&fixture);
}

/* REASON_NO_PORT_WITH_LID */
static void what_goes_to_a_LID_that_nobody_has_is_lost(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_RC);
    struct ibv_ah_attr way = address(&fixture);
    way.dlid = NOBODY;
    EXPECT(receive_by(fixture.qp, way, fixture.qp->qp_num), ==, 0);
    move(fixture.qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 5, .retry_cnt = 1},
         IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    post_receive(&fixture);
    send_to(&fixture, NULL, 0);
    struct ibv_wc wc = local_poll(fixture.cq);
    EXPECT(wc.status, ==, IBV_WC_RETRY_EXC_ERR);
    end(&fixture);
}

/* REASON_DLID */
static void addresses_that_cannot_be_are_refused(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_ah_attr way = address(&fixture);
    way.dlid = 0;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    way.dlid = 0xffff; /* the permissive LID */
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    way.dlid = MLID; /* a group without a GRH */
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    way.is_global = 1;
    way.grh.dgid = fixture.gid;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    way.grh.dgid = group;
    EXPECT_TRUE(ibv_create_ah(fixture.pd, &way));
    EXPECT(receive_by(create(&fixture, IBV_QPT_UC), way, 1), ==, EINVAL);
    way.dlid = fixture.port.lid;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    way.grh.dgid = fixture.gid;
    way.grh.sgid_index = 1;
    EXPECT_ERRNO(ibv_create_ah(fixture.pd, &way), EINVAL);
    end(&fixture);
}

/* REASON_GROUP */
static void a_group_has_a_LID_of_its_own(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_ah_attr way = address(&fixture);
    way.dlid = MLID;
    way.is_global = 1;
    way.grh.dgid = group;
    start_datagrams(&fixture);
    EXPECT(ibv_attach_mcast(fixture.qp, &group, fixture.port.lid), ==, EINVAL);
    EXPECT(ibv_attach_mcast(fixture.qp, &fixture.gid, MLID), ==, EINVAL);
    EXPECT(ibv_attach_mcast(fixture.qp, &group, MLID), ==, 0);
    post_receive(&fixture);
    send_to(&fixture, ibv_create_ah(fixture.pd, &way), 0xffffff);
    struct ibv_wc wc = received(&fixture);
    EXPECT(wc.wc_flags & IBV_WC_GRH, ==, IBV_WC_GRH);
    EXPECT(wc.slid, ==, fixture.port.lid);
    EXPECT(ibv_detach_mcast(fixture.qp, &group, MLID), ==, 0);
    end(&fixture);
}

/* REASON_RAW_ON_INFINIBAND */
static void raw_packets_are_for_ethernet(const void *row)
{
    struct fixture fixture = begin(IBV_QPT_UD);
    struct ibv_device_attr_ex attr;
    EXPECT_ERRNO(create(&fixture, IBV_QPT_RAW_PACKET), EOPNOTSUPP);
    EXPECT(ibv_query_device_ex(fixture.context, NULL, &attr), ==, 0);
    EXPECT(attr.raw_packet_caps, ==, 0);
    EXPECT(attr.tso_caps.max_tso, ==, 0);
    EXPECT(attr.rss_caps.supported_qpts, ==, 0);
    EXPECT(attr.max_wq_type_rq, ==, 0);
    EXPECT(attr.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET, ==, 0);
    EXPECT(attr.device_cap_flags_ex & (IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_RAW_IP_CSUM), ==, 0);
    EXPECT(attr.orig_attr.device_cap_flags & (IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING), ==, 0);
    struct ibv_wq_init_attr wq = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = fixture.pd, .cq = fixture.qp->recv_cq};
    EXPECT_ERRNO(ibv_create_wq(fixture.context, &wq), EOPNOTSUPP);
    end(&fixture);
}

static void all(void)
{
    CASE(a_port_has_a_LID_and_one_GID_of_its_subnet);
    CASE(a_datagram_without_a_GRH_tells_LID_and_service_level);
    CASE(a_datagram_with_a_GRH_shows_it);
    CASE(a_connection_needs_no_GRH_and_shows_the_peers_LID);
    CASE(what_goes_to_a_LID_that_nobody_has_is_lost);
    CASE(addresses_that_cannot_be_are_refused);
    CASE(a_group_has_a_LID_of_its_own);
    CASE(raw_packets_are_for_ethernet);
}

int main(int argc, char **argv)
{
    setenv("SOFTVERBS_LINK_LAYER", "ib", 1);
    return harness_main(argc, argv, all);
}
