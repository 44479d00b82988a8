/* Commands that query an identifier's addresses, its route, and the attributes of its queue pair. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_address.h"
#include "abi/ucma/ucma_call.h"
#include "cm/queue_pair/attributes.h"
#include "events/refusal.h"

enum { QUERY_ADDR, QUERY_PATH, QUERY_GID };
enum { PATH_FLAGS = 0x2b, NO_INDEX = UINT32_MAX, EXACTLY = 2, REVERSIBLE = 0x80, RATE_2_5_GBPS = 2 };

static uint64_t guid_of(const struct identifier *identifier)
{
    return identifier->has_port ? htobe64(identifier->port.guid) : 0;
}

static uint16_t pkey_of(const struct identifier *identifier)
{
    return identifier->has_port ? htons(DEVICE_PKEY) : 0;
}

/* The GID that packets carry, once the identifier has a port (and the query of a destination's address was answered);
 * before that the address itself. */
static const uint8_t *source_gid(const struct identifier *identifier)
{
    return identifier->has_port ? identifier->port.gid : identifier->source.gid;
}

static const uint8_t *destination_gid(const struct identifier *identifier)
{
    bool known = identifier->has_port && identifier->state > IDENTIFIER_ADDR_QUERY;
    return known ? identifier->route.gid : identifier->destination.gid;
}

/* The address in the form AF_IB, with this GID and its service ID; an AF_IB address stays as it is. */
static struct cm_address as_gid(const struct identifier *identifier, const struct cm_address *address,
                                const uint8_t *gid)
{
    if (address->family == AF_IB)
        return *address;
    struct cm_address made = {.family = AF_IB,
                              .pkey = DEVICE_PKEY,
                              .service = identifier_service(identifier, address),
                              .service_mask = UINT64_MAX};
    memcpy(made.gid, gid, 16);
    return made;
}

static int query_addresses(struct ucma_call *call, const struct identifier *identifier)
{
    const struct ucma_named *in = call->in;
    struct cm_address source = identifier->source, destination = identifier->destination;
    struct ucma_address_response reply = {.node_guid = guid_of(identifier),
                                          .port = identifier->has_port ? identifier->port.number : 0,
                                          .pkey = pkey_of(identifier),
                                          .device_index = NO_INDEX};
    if (in->value == QUERY_GID) {
        source = as_gid(identifier, &source, source_gid(identifier));
        destination = as_gid(identifier, &destination, destination_gid(identifier));
    }
    reply.source_size = (uint16_t)ucma_address_write(&source, reply.source, UCMA_ADDRESS);
    reply.destination_size = (uint16_t)ucma_address_write(&destination, reply.destination, UCMA_ADDRESS);
    ucma_respond(call, in->response, &reply, sizeof reply);
    return 0;
}

/* A PathRecord (IBA table 205), from its ServiceID on. */
static void write_path(const struct cm_route *route, uint8_t path[64])
{
    uint32_t flow = htonl(route->flow_label << 8 | route->hop_limit);
    memcpy(path + 8, route->gid, 16);
    memcpy(path + 24, route->from.gid, 16);
    memcpy(path + 44, &flow, sizeof flow);
    path[48] = route->traffic_class;
    path[49] = REVERSIBLE;
    path[50] = path[51] = 0xff;
    path[54] = (uint8_t)(EXACTLY << 6 | route->from.mtu);
    path[55] = EXACTLY << 6 | RATE_2_5_GBPS;
    path[56] = (uint8_t)(EXACTLY << 6 | route->lifetime);
}

static int ucma_no_room(const struct ucma_call *call, size_t wanted)
{
    return refuse(ENOSPC, REASON_CM_ANSWER_ROOM, "room for %zu bytes, at least %zu", call->out, wanted);
}

static int query_path(struct ucma_call *call, const struct identifier *identifier)
{
    const struct ucma_named *in = call->in;
    struct ucma_path_response reply = {.count = identifier->has_route, .flags = PATH_FLAGS};
    size_t length = identifier->has_route ? sizeof reply : offsetof(struct ucma_path_response, flags);
    if (call->out < offsetof(struct ucma_path_response, flags))
        return ucma_no_room(call, offsetof(struct ucma_path_response, flags));
    write_path(&identifier->route, reply.path);
    ucma_respond(call, in->response, &reply, length);
    return 0;
}

int ucma_query(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    if (in->value == QUERY_PATH)
        return query_path(call, identifier);
    if (in->value != QUERY_ADDR && in->value != QUERY_GID)
        return refuse(ENOSYS, REASON_CM_QUERY, "identifier %u: question %u", in->id, in->value);
    if (call->out < offsetof(struct ucma_address_response, device_index))
        return ucma_no_room(call, offsetof(struct ucma_address_response, device_index));
    return query_addresses(call, identifier);
}

static void write_record(const struct identifier *identifier, struct ucma_path_record *record)
{
    const struct cm_route *route = &identifier->route;
    memcpy(record->sgid, source_gid(identifier), 16);
    memcpy(record->dgid, destination_gid(identifier), 16);
    record->pkey = htons(DEVICE_PKEY);
    if (!identifier->has_route)
        return;
    record->flow_label = htonl(route->flow_label);
    record->reversible = 1;
    record->mtu = route->from.mtu;
    record->hop_limit = route->hop_limit;
    record->traffic_class = route->traffic_class;
    record->mtu_selector = record->rate_selector = record->lifetime_selector = EXACTLY;
    record->rate = RATE_2_5_GBPS;
    record->lifetime = route->lifetime;
}

int ucma_query_route(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    struct ucma_route_response reply = {.node_guid = guid_of(identifier),
                                        .path_count = identifier->has_route,
                                        .port = identifier->has_port ? identifier->port.number : 0,
                                        .device_index = NO_INDEX};
    ucma_address_write(&identifier->source, reply.source, UCMA_IP_ADDRESS);
    ucma_address_write(&identifier->destination, reply.destination, UCMA_IP_ADDRESS);
    if (identifier->has_port)
        write_record(identifier, &reply.paths[0]);
    ucma_respond(call, in->response, &reply, sizeof reply);
    return 0;
}

/* --- attributes of the queue pair */

static struct ucma_ah_attr write_ah(const struct ibv_ah_attr *from)
{
    struct ucma_ah_attr ah = {.flow_label = from->grh.flow_label,
                              .sgid_index = from->grh.sgid_index,
                              .hop_limit = from->grh.hop_limit,
                              .traffic_class = from->grh.traffic_class,
                              .dlid = from->dlid,
                              .sl = from->sl,
                              .src_path_bits = from->src_path_bits,
                              .static_rate = from->static_rate,
                              .is_global = from->is_global,
                              .port = from->port_num};
    memcpy(ah.dgid, from->grh.dgid.raw, 16);
    return ah;
}

int ucma_init_qp_attr(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier;
    struct ibv_qp_attr attr;
    int mask, error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = attributes_of(identifier, in->value, &attr, &mask);
    if (error)
        return error;
    struct ucma_qp_attr_response reply = {.mask = (uint32_t)mask,
                                          .state = attr.qp_state,
                                          .path_mtu = attr.path_mtu,
                                          .qkey = attr.qkey,
                                          .rq_psn = attr.rq_psn,
                                          .sq_psn = attr.sq_psn,
                                          .dest_qpn = attr.dest_qp_num,
                                          .access = attr.qp_access_flags,
                                          .ah = write_ah(&attr.ah_attr),
                                          .max_rd_atomic = attr.max_rd_atomic,
                                          .max_dest_rd_atomic = attr.max_dest_rd_atomic,
                                          .port = attr.port_num,
                                          .timeout = attr.timeout,
                                          .retry_count = attr.retry_cnt,
                                          .rnr_retry = attr.rnr_retry};
    ucma_respond(call, in->response, &reply, sizeof reply);
    return 0;
}
