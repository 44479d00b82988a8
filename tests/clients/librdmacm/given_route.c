/* A program that sets the route of its connections itself, by RDMA_OPTION_IB_PATH, and by rdma_create_ep with a route:
 *
 *     routed ADDRESS PORT          ends well when each wrong path was EINVAL and a right one led to the listener
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOW_LABEL = 0x12345, HOP_LIMIT = 7, TRAFFIC_CLASS = 0x40, LIFETIME = 12, EXACTLY = 2 << 6 };
enum { GOOD_FLAGS = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL };

static void check(int error, const char *what)
{
    if (error) {
        perror(what);
        exit(1);
    }
}

static struct rdma_addrinfo *find(const char *address, const char *port, int flags)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    check(rdma_getaddrinfo(address, port, &hints, &found), "rdma_getaddrinfo");
    return found;
}

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *id = event->id;
    if (event->event != type) {
        fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event), rdma_event_str(type));
        exit(1);
    }
    rdma_ack_cm_event(event);
    return id;
}

static struct ibv_path_data path_of(struct rdma_cm_id *id)
{
    struct ibv_path_data data = {.flags = GOOD_FLAGS};
    data.path.sgid = id->route.addr.addr.ibaddr.sgid;
    data.path.dgid = id->route.addr.addr.ibaddr.dgid;
    data.path.flowlabel_hoplimit = htonl(FLOW_LABEL << 8 | HOP_LIMIT);
    data.path.tclass = TRAFFIC_CLASS;
    data.path.mtu = EXACTLY | IBV_MTU_256;
    data.path.packetlifetime = EXACTLY | LIFETIME;
    return data;
}

static int set(struct rdma_cm_id *id, void *data, size_t length)
{
    return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, length) ? errno : 0;
}

static void expect_error(int got, int error, const char *what)
{
    if (got != error) {
        fprintf(stderr, "%s: error %d instead of %d\n", what, got, error);
        exit(1);
    }
}

static void refuse_wrong_ones(struct rdma_cm_id *id)
{
    struct ibv_path_data data = path_of(id);
    expect_error(set(id, &data, sizeof data - 1), EINVAL, "part of a path");
    expect_error(set(id, &data, 0), EINVAL, "no path");
    data.flags = IBV_PATH_FLAG_PRIMARY;
    expect_error(set(id, &data, sizeof data), EINVAL, "a path that is not for both directions");
    data = path_of(id);
    data.path.dgid.raw[15] ^= 0xff;
    expect_error(set(id, &data, sizeof data), EINVAL, "a path to another GID");
    expect_error(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH + 1, &data, sizeof data) ? errno : 0, ENOSYS,
                 "an unknown option");
}

static void expect_route(struct rdma_cm_id *id)
{
    struct ibv_sa_path_rec *path = id->route.path_rec;
    if (id->route.num_paths != 1 || ntohl(path->flow_label) != FLOW_LABEL || path->hop_limit != HOP_LIMIT ||
        path->traffic_class != TRAFFIC_CLASS || path->mtu != IBV_MTU_256 || path->packet_life_time != LIFETIME) {
        fprintf(stderr, "the route is not the one that was set\n");
        exit(1);
    }
}

/* An alternate is first, which is passed over. */
static void set_right_one(struct rdma_cm_id *id)
{
    struct ibv_path_data data[2] = {path_of(id), path_of(id)};
    data[0].flags = IBV_PATH_FLAG_ALTERNATE;
    expect_error(set(id, data, sizeof data), 0, "a path");
    expect(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    expect_error(set(id, data, sizeof data), EINVAL, "a second path");
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *channel, struct sockaddr *to)
{
    struct rdma_cm_id *id;
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    struct ibv_path_data nothing = {.flags = GOOD_FLAGS};
    expect_error(set(id, &nothing, sizeof nothing), EINVAL, "a path before the address");
    check(rdma_resolve_addr(id, NULL, to, 2000), "rdma_resolve_addr");
    expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    return id;
}

static void connect_and_part(struct rdma_event_channel *channel, struct rdma_cm_id *active)
{
    struct ibv_qp_init_attr attr = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    check(rdma_create_qp(active, NULL, &attr), "rdma_create_qp");
    check(rdma_connect(active, NULL), "rdma_connect");
    struct rdma_cm_id *passive = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    check(rdma_create_qp(passive, NULL, &attr), "rdma_create_qp");
    check(rdma_accept(passive, NULL), "rdma_accept");
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    expect(channel, RDMA_CM_EVENT_ESTABLISHED);
    check(rdma_disconnect(active), "rdma_disconnect");
    rdma_destroy_ep(active);
    rdma_destroy_ep(passive);
}

/* The use that librdmacm makes of a route of rdma_getaddrinfo, which the program frees with rdma_freeaddrinfo. */
static void make_endpoint(struct rdma_addrinfo *to, const struct ibv_path_data *path)
{
    struct rdma_cm_id *id;
    to->ai_route = malloc(sizeof *path);
    check(!to->ai_route, "malloc");
    memcpy(to->ai_route, path, sizeof *path);
    to->ai_route_len = sizeof *path;
    check(rdma_create_ep(&id, to, NULL, NULL), "rdma_create_ep");
    expect_route(id);
    rdma_destroy_ep(id);
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_addrinfo *own = find(words[1], words[2], RAI_PASSIVE), *to = find(words[1], words[2], 0);
    struct rdma_cm_id *listener;
    check(!channel, "rdma_create_event_channel");
    check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    check(rdma_bind_addr(listener, own->ai_src_addr), "rdma_bind_addr");
    check(rdma_listen(listener, 1), "rdma_listen");
    struct rdma_cm_id *active = resolve(channel, to->ai_dst_addr);
    struct ibv_path_data path = path_of(active);
    refuse_wrong_ones(active);
    set_right_one(active);
    expect_route(active);
    connect_and_part(channel, active);
    make_endpoint(to, &path);
    rdma_destroy_id(listener);
    rdma_freeaddrinfo(own);
    rdma_freeaddrinfo(to);
    return 0;
}
