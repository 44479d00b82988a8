/* The address vector is changed in SQD from a peer of this host to another host, and back, while work has begun:
 * changed_path ADDRESS, which is of a host that does not answer. For unreachable_hosts.py. The ACK timer does not run,
 * so what a change of the way does not send again never arrives. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum { SIZE = 1 << 20, LONG = 20000, SHORT = 8 };

static struct {
    struct endpoint endpoint;
    struct ibv_qp *near, *far;
    struct ibv_mr *mr;
    struct ibv_ah_attr here, there;
    uint8_t *memory; /* what is sent, and what arrives */
} bench;

static struct ibv_ah_attr way_to(union ibv_gid gid)
{
    const char *index = getenv("ENDPOINT_GID");
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = gid, .sgid_index = (uint8_t)atoi(index ? index : "0"), .hop_limit = 64}};
}

static void begin(const char *address)
{
    struct address far;
    union ibv_gid gid = {.raw = {[10] = 0xff, 0xff}};
    if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
        die("%s is no address", address);
    endpoint_open(&bench.endpoint, 64);
    bench.memory = calloc(2, SIZE);
    bench.mr = endpoint_register(&bench.endpoint, bench.memory, (size_t)2 * SIZE);
    bench.near = endpoint_create_qp(&bench.endpoint, IBV_QPT_RC, 8, 8);
    bench.far = endpoint_create_qp(&bench.endpoint, IBV_QPT_RC, 8, 8);
    far = endpoint_address(&bench.endpoint, bench.far, bench.mr);
    struct address near = endpoint_address(&bench.endpoint, bench.near, bench.mr);
    endpoint_connect(bench.near, &far, 0);
    endpoint_connect(bench.far, &near, 0);
    bench.here = way_to(bench.endpoint.gid);
    bench.there = way_to(gid);
}

static void enter(enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    if (ibv_modify_qp(bench.near, &attr, IBV_QP_STATE))
        die("state %d", state);
}

static int go_by(struct ibv_ah_attr way)
{
    struct ibv_qp_attr attr = {.ah_attr = way};
    return ibv_modify_qp(bench.near, &attr, IBV_QP_AV);
}

static bool is_draining(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    if (ibv_query_qp(bench.near, &attr, IBV_QP_STATE, &init))
        die("ibv_query_qp");
    return attr.sq_draining;
}

static void post(enum ibv_wr_opcode opcode, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)bench.memory, length, bench.mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)bench.memory;
    wr.wr.rdma.rkey = bench.mr->rkey;
    for (uint32_t i = 0; i < length; i++)
        bench.memory[i] = (uint8_t)(i * 7 + length + i / 256);
    if (ibv_post_send(bench.near, &wr, &bad))
        die("ibv_post_send");
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)bench.memory + SIZE, SIZE, bench.mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    memset(bench.memory + SIZE, 0, SIZE);
    if (ibv_post_recv(bench.far, &wr, &bad))
        die("ibv_post_recv");
}

/* Both ends, in either order. */
static void expect_message(const char *what, uint32_t length)
{
    struct ibv_wc wc[2];
    for (int came = 0, more; came < 2; came += more)
        if ((more = endpoint_wait(&bench.endpoint, wc + came, 2 - came, PATIENCE_MANY_SECONDS)) <= 0)
            die("%s: %d of 2 completions came", what, came);
    for (int i = 0; i < 2; i++)
        if (wc[i].status || (wc[i].opcode == IBV_WC_RECV && wc[i].byte_len != length))
            die("%s: %s, %u bytes", what, ibv_wc_status_str(wc[i].status), wc[i].byte_len);
    if (memcmp(bench.memory, bench.memory + SIZE, length))
        die("%s: other bytes came", what);
    if (is_draining())
        die("%s: the send queue is not drained", what);
}

/* The message is sent by reference, or in packets larger than a network's. */
static void what_waits_for_a_receive_stays_on_this_host(uint32_t length)
{
    post(IBV_WR_SEND, length);
    enter(IBV_QPS_SQD);
    if (!is_draining() || go_by(bench.there) != EINVAL)
        die("%u bytes that had begun inside the host went to another", length);
    post_receive();
    expect_message("what was begun ends by its own way", length);
    if (go_by(bench.there) || go_by(bench.here))
        die("a drained send queue can't take another way");
    enter(IBV_QPS_RTS);
}

/* No answer arrives in it. */
static void begin_elsewhere(enum ibv_wr_opcode opcode, uint32_t length)
{
    enter(IBV_QPS_SQD);
    if (go_by(bench.there))
        die("no way to another host");
    enter(IBV_QPS_RTS);
    post(opcode, length);
    enter(IBV_QPS_SQD);
    if (!is_draining())
        die("nothing was begun");
}

static void what_was_lost_on_a_network_comes_inside_the_host(uint32_t length)
{
    begin_elsewhere(IBV_WR_SEND, length);
    post_receive();
    if (go_by(bench.here))
        die("no way back");
    expect_message("what was begun on a network", length);
    enter(IBV_QPS_RTS);
}

static void the_answer_of_a_read_is_not_cut_anew(void)
{
    begin_elsewhere(IBV_WR_RDMA_READ, LONG);
    if (go_by(bench.here) != EINVAL)
        die("a READ of packets on a network went on inside the host");
}

int main(int argc, char **argv)
{
    begin(argv[1]);
    what_waits_for_a_receive_stays_on_this_host(SIZE);
    what_waits_for_a_receive_stays_on_this_host(LONG);
    what_was_lost_on_a_network_comes_inside_the_host(SHORT);
    what_was_lost_on_a_network_comes_inside_the_host(LONG);
    what_waits_for_a_receive_stays_on_this_host(SIZE);
    the_answer_of_a_read_is_not_cut_anew();
    ibv_destroy_qp(bench.near);
    ibv_destroy_qp(bench.far);
    ibv_dereg_mr(bench.mr);
    endpoint_close(&bench.endpoint);
    return 0;
}
