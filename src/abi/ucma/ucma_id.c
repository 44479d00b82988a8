/* Commands that make and unmake identifiers, and that say where they are and lead to. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_address.h"
#include "abi/ucma/ucma_call.h"
#include "cm/address/address_query.h"

int ucma_create_id(struct ucma_call *call)
{
    const struct ucma_create_id *in = call->in;
    struct identifier *identifier;
    int error = identifier_create(&call->channel->cm->manager, &call->channel->queue, in->uid, in->space, in->qp_type,
                                  &identifier);
    if (!error)
        ucma_respond(call, in->response, &(struct ucma_id){identifier_number(identifier)}, sizeof(struct ucma_id));
    return error;
}

int ucma_destroy_id(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    struct ucma_reported answer = {identifier_destroy(identifier, call->now)};
    ucma_respond(call, in->response, &answer, sizeof answer);
    return 0;
}

/* Written to the channel that the identifier comes to; its present one is named by a descriptor. */
int ucma_migrate_id(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier = identifier_find(&call->channel->cm->manager, in->id);
    struct event_channel *old = event_channel_find((int)in->value);
    int error = !old ? EINVAL : !identifier ? ENOENT : identifier->account.queue != &old->queue ? EINVAL : 0;
    if (!error) {
        identifier_migrate(identifier, &call->channel->queue);
        struct ucma_reported answer = {identifier->account.fetched};
        ucma_respond(call, in->response, &answer, sizeof answer);
    }
    if (old)
        event_channel_put(old);
    return error;
}

static int bind_to(struct ucma_call *call, uint32_t id, const struct cm_address *address)
{
    struct identifier *identifier;
    int error = address->family ? ucma_find(call, id, &identifier) : EINVAL;
    return error ? error : identifier_bind(identifier, address);
}

int ucma_bind_ip(struct ucma_call *call)
{
    const struct ucma_bind_ip *in = call->in;
    struct cm_address address = ucma_address_read(in->address, sizeof in->address);
    return bind_to(call, in->id, &address);
}

int ucma_bind(struct ucma_call *call)
{
    const struct ucma_bind *in = call->in;
    struct cm_address address = ucma_address_read(in->address, sizeof in->address);
    if (in->reserved || in->size != ucma_address_size(address.family))
        return EINVAL;
    return bind_to(call, in->id, &address);
}

static int resolve(struct ucma_call *call, uint32_t id, const struct cm_address *source,
                   const struct cm_address *destination, uint32_t milliseconds)
{
    struct identifier *identifier;
    int error = destination->family ? ucma_find(call, id, &identifier) : EINVAL;
    return error ? error : address_query_start(identifier, source, destination, milliseconds, call->now);
}

int ucma_resolve_ip(struct ucma_call *call)
{
    const struct ucma_resolve_ip *in = call->in;
    struct cm_address source = ucma_address_read(in->source, sizeof in->source);
    struct cm_address destination = ucma_address_read(in->destination, sizeof in->destination);
    uint16_t family;
    memcpy(&family, in->source, sizeof family);
    return family && !source.family ? EINVAL : resolve(call, in->id, &source, &destination, in->milliseconds);
}

int ucma_resolve_addr(struct ucma_call *call)
{
    const struct ucma_resolve_addr *in = call->in;
    struct cm_address source = ucma_address_read(in->source, sizeof in->source);
    struct cm_address destination = ucma_address_read(in->destination, sizeof in->destination);
    if (in->reserved || (in->source_size && in->source_size != ucma_address_size(source.family)) ||
        in->destination_size != ucma_address_size(destination.family))
        return EINVAL;
    if (!in->source_size)
        source.family = 0;
    return resolve(call, in->id, &source, &destination, in->milliseconds);
}

int ucma_resolve_route(struct ucma_call *call)
{
    const struct ucma_valued *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : identifier_resolve_route(identifier, in->value);
}

int ucma_listen(struct ucma_call *call)
{
    const struct ucma_valued *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : identifier_listen(identifier, (int)in->value, call->now);
}

/* Names of services are for a subnet's directory, which RoCE has not. */
int ucma_resolve_service(struct ucma_call *call)
{
    const struct ucma_resolve_service *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    return identifier->has_port && identifier->state == IDENTIFIER_ADDR_BOUND ? EOPNOTSUPP : EINVAL;
}

/* --- multicast */

enum { JOIN_SEND_ONLY = 1 }; /* 0: a full member */

static int ucma_id_join(struct ucma_call *call, uint32_t id, uint64_t uid, uint64_t response,
                        const struct cm_address *group)
{
    struct identifier *identifier;
    uint32_t number;
    int error = group->family ? ucma_find(call, id, &identifier) : EINVAL;
    if (!error)
        error = identifier_join(identifier, uid, group, &number);
    if (!error)
        ucma_respond(call, response, &(struct ucma_id){number}, sizeof(struct ucma_id));
    return error;
}

int ucma_join_ip(struct ucma_call *call)
{
    const struct ucma_join_ip *in = call->in;
    struct cm_address group = ucma_address_read(in->address, sizeof in->address);
    return ucma_id_join(call, in->id, in->uid, in->response, &group);
}

/* Who only sends joins nothing on the network: attaching the queue pair does that, which such a program leaves out. */
int ucma_join(struct ucma_call *call)
{
    const struct ucma_join *in = call->in;
    struct cm_address group = ucma_address_read(in->address, sizeof in->address);
    if (in->size != ucma_address_size(group.family) || in->flags > JOIN_SEND_ONLY)
        return EINVAL;
    return ucma_id_join(call, in->id, in->uid, in->response, &group);
}

int ucma_leave(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct ucma_reported answer;
    int error = identifier_leave(&call->channel->cm->manager, &call->channel->queue, in->id, &answer.events);
    if (!error)
        ucma_respond(call, in->response, &answer, sizeof answer);
    return error;
}

/* --- options */

enum { LEVEL_ID = 0, LEVEL_IB = 1 };
enum { OPTION_TOS = 0, OPTION_REUSEADDR = 1, OPTION_AFONLY = 2, OPTION_ACK_TIMEOUT = 3 };
enum { OPTION_PATH = 1 }; /* of LEVEL_IB */

static int set_byte(struct identifier *identifier, const struct ucma_set_option *in, const uint8_t *value,
                    int (*set)(struct identifier *, uint8_t))
{
    return in->length == sizeof *value ? set(identifier, *value) : EINVAL;
}

static int set_flag(struct identifier *identifier, const struct ucma_set_option *in, const void *value,
                    int (*set)(struct identifier *, bool))
{
    int flag;
    if (in->length != sizeof flag)
        return EINVAL;
    memcpy(&flag, value, sizeof flag);
    return set(identifier, flag != 0);
}

static struct chosen_path read_path(const uint8_t record[64])
{
    enum { LABEL_MASK = 0xfffff, VALUE_MASK = 0x3f }; /* a value shares its byte with a selector of two bits */
    uint32_t flow;
    memcpy(&flow, record + 44, sizeof flow);
    flow = ntohl(flow);
    struct chosen_path path = {.flow_label = flow >> 8 & LABEL_MASK,
                               .hop_limit = (uint8_t)flow,
                               .traffic_class = record[48],
                               .mtu = record[54] & VALUE_MASK,
                               .lifetime = record[56] & VALUE_MASK};
    memcpy(path.destination, record + 8, 16);
    memcpy(path.source, record + 24, 16);
    return path;
}

/* Of several the first counts that is for both directions, for messages of the CM, and not an alternate. */
static int set_path(struct identifier *identifier, const struct ucma_set_option *in, const uint8_t *value)
{
    enum {
        GMP = 1,
        PRIMARY = 2,
        OUTBOUND = 8,
        INBOUND_REVERSE = 32,
        FLAGS = GMP | PRIMARY | OUTBOUND | INBOUND_REVERSE
    };
    struct ucma_path given;
    if (in->length % sizeof given)
        return EINVAL;
    for (uint32_t at = 0; at < in->length; at += (uint32_t)sizeof given) {
        memcpy(&given, value + at, sizeof given);
        if (given.flags != FLAGS)
            continue;
        struct chosen_path path = read_path(given.record);
        return identifier_set_path(identifier, &path);
    }
    return EINVAL;
}

static int set_ib_option(struct identifier *identifier, const struct ucma_set_option *in)
{
    return in->name == OPTION_PATH ? set_path(identifier, in, (const uint8_t *)(uintptr_t)in->value) : ENOSYS;
}

static int set_option(struct identifier *identifier, const struct ucma_set_option *in)
{
    const void *value = (const void *)(uintptr_t)in->value;
    if (in->level == LEVEL_IB)
        return set_ib_option(identifier, in);
    if (in->level != LEVEL_ID)
        return ENOSYS;
    switch (in->name) {
    case OPTION_TOS:
        return set_byte(identifier, in, value, identifier_set_tos);
    case OPTION_REUSEADDR:
        return set_flag(identifier, in, value, identifier_set_reuse);
    case OPTION_AFONLY:
        return set_flag(identifier, in, value, identifier_set_only_family);
    case OPTION_ACK_TIMEOUT:
        return set_byte(identifier, in, value, identifier_set_ack_timeout);
    default:
        return ENOSYS;
    }
}

int ucma_set_option(struct ucma_call *call)
{
    const struct ucma_set_option *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : set_option(identifier, in);
}
