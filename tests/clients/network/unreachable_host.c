/* How a program learns that a host can't be reached, or that it can: reach WHAT ... prints a line for each. For
 * unreachable_hosts.py.
 *
 * - rtr GID_INDEX ADDRESS...: a queue pair moves from INIT to RTR. The line has the error, milliseconds, the hop limit.
 * - ah GID_INDEX ADDRESS...: an address handle is made. The line has the same.
 * - send GID_INDEX ADDRESS...: a SEND to queue pair 0x123456 there. The line says how it ends.
 * - resolve MILLISECONDS ADDRESS...: rdma_resolve_addr. The line has the event, its status, milliseconds.
 * - again ADDRESS: resolves a link-local address, takes the source that was found, and resolves from there. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

static union ibv_gid gid_of(const char *text)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, 0xff}};
    if (inet_pton(AF_INET, text, gid.raw + 12) != 1 && inet_pton(AF_INET6, text, gid.raw) != 1)
        die("%s is no address", text);
    return gid;
}

static struct ibv_ah_attr way_to(const char *index, const char *address)
{
    return (struct ibv_ah_attr){.is_global = 1,
                                .port_num = 1,
                                .grh = {.dgid = gid_of(address), .sgid_index = (uint8_t)atoi(index), .hop_limit = 1}};
}

static void print_end(const char *address, int error, double begun, unsigned hops)
{
    printf("%s: %s, %.0f ms, hop limit %u\n", address, error ? strerror(error) : "done", (now_seconds() - begun) * 1000,
           hops);
}

static int enter_rtr(struct ibv_qp *qp, const struct ibv_ah_attr *way)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_256,
                               .dest_qp_num = 0x123456,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = *way};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void rtr(struct endpoint *endpoint, const char *index, const char *address)
{
    struct ibv_qp *qp = endpoint_create_qp(endpoint, IBV_QPT_RC, 1, 1);
    struct ibv_ah_attr way = way_to(index, address);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    double begun = now_seconds();
    int error = enter_rtr(qp, &way);
    if (ibv_query_qp(qp, &attr, IBV_QP_AV, &init))
        die("ibv_query_qp");
    print_end(address, error, begun, attr.ah_attr.grh.hop_limit);
    ibv_destroy_qp(qp);
}

static void ah(struct endpoint *endpoint, const char *index, const char *address)
{
    struct ibv_ah_attr way = way_to(index, address);
    double begun = now_seconds();
    struct ibv_ah *handle = ibv_create_ah(endpoint->pd, &way);
    print_end(address, handle ? 0 : errno, begun, way.grh.hop_limit);
    if (handle)
        ibv_destroy_ah(handle);
}

static void send_there(struct endpoint *endpoint, const char *index, const char *address)
{
    struct ibv_qp *qp = endpoint_create_qp(endpoint, IBV_QPT_RC, 1, 1);
    struct ibv_ah_attr way = way_to(index, address);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 5, .max_rd_atomic = 1};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    if (enter_rtr(qp, &way) ||
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_MAX_QP_RD_ATOMIC) ||
        ibv_post_send(qp, &wr, &bad))
        die("%s is not connected to", address);
    while (!ibv_poll_cq(endpoint->cq, 1, &wc))
        ;
    printf("%s: %s, vendor_err %u\n", address, ibv_wc_status_str(wc.status), wc.vendor_err);
    ibv_destroy_qp(qp);
}

/* --- librdmacm */

static void read_address(const char *text, struct sockaddr_storage *to)
{
    static const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found;
    if (getaddrinfo(text, "7174", &hints, &found))
        die("%s is no address", text);
    memcpy(to, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
}

static struct rdma_cm_id *resolve_from(struct rdma_event_channel *channel, struct sockaddr *source, const char *address,
                                       int milliseconds)
{
    struct sockaddr_storage to;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id;
    read_address(address, &to);
    double begun = now_seconds();
    if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
        die("rdma_create_id");
    if (rdma_resolve_addr(id, source, (struct sockaddr *)&to, milliseconds)) {
        printf("%s: %s\n", address, strerror(errno));
        return id;
    }
    if (rdma_get_cm_event(channel, &event))
        die("rdma_get_cm_event");
    printf("%s: %s, status %d, %.0f ms\n", address, rdma_event_str(event->event), event->status,
           (now_seconds() - begun) * 1000);
    rdma_ack_cm_event(event);
    return id;
}

static void again(struct rdma_event_channel *channel, const char *address)
{
    struct rdma_cm_id *id = resolve_from(channel, NULL, address, 2000);
    struct sockaddr_in6 source = *(struct sockaddr_in6 *)rdma_get_local_addr(id);
    source.sin6_port = 0;
    rdma_destroy_id(id);
    rdma_destroy_id(resolve_from(channel, (struct sockaddr *)&source, address, 2000));
}

static void with_librdmacm(const char *what, int count, char **rest)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        die("rdma_create_event_channel");
    if (!strcmp(what, "again"))
        again(channel, rest[0]);
    for (int i = 1; i < count && strcmp(what, "again"); i++)
        rdma_destroy_id(resolve_from(channel, NULL, rest[i], atoi(rest[0])));
    rdma_destroy_event_channel(channel);
}

static void with_verbs(void (*each)(struct endpoint *, const char *, const char *), int count, char **rest)
{
    struct endpoint endpoint;
    endpoint_open(&endpoint, 16);
    for (int i = 1; i < count; i++)
        each(&endpoint, rest[0], rest[i]);
    endpoint_close(&endpoint);
}

int main(int count, char **words)
{
    const char *what = count > 2 ? words[1] : "";
    if (!strcmp(what, "rtr"))
        with_verbs(rtr, count - 2, words + 2);
    else if (!strcmp(what, "ah"))
        with_verbs(ah, count - 2, words + 2);
    else if (!strcmp(what, "send"))
        with_verbs(send_there, count - 2, words + 2);
    else
        with_librdmacm(what, count - 2, words + 2);
    return 0;
}
