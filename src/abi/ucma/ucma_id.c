/* Commands that create and destroy identifiers, and that set their addresses, routes and groups. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "abi/ucma/ucma_address.h"
#include "abi/ucma/ucma_call.h"
#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "events/events.h"
#include "events/refusal.h"

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
    struct ucma_reported reply = {identifier_destroy(identifier, call->now)};
    if (reply.events)
        event_note(in->id, EVENT_IDENTIFIER_ENDED, reply.events, 0);
    ucma_respond(call, in->response, &reply, sizeof reply);
    return 0;
}

static int may_migrate(const struct ucma_named *in, const struct identifier *identifier,
                       const struct event_channel *old)
{
    if (!identifier)
        return refuse(ENOENT, REASON_CM_NO_IDENTIFIER, "identifier %u", in->id);
    if (!old)
        return refuse(EINVAL, REASON_CM_NO_CHANNEL, "identifier %u: descriptor %d", in->id, (int)in->value);
    if (identifier->account.queue != &old->queue)
        return refuse(EINVAL, REASON_CM_OTHER_CHANNEL, "identifier %u, and the old channel is descriptor %d", in->id,
                      (int)in->value);
    return 0;
}

/* The program writes the command to the identifier's new channel; `value` is a descriptor of the present one. */
int ucma_migrate_id(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct identifier *identifier = identifier_find(&call->channel->cm->manager, in->id);
    struct event_channel *old = event_channel_find((int)in->value);
    int error = may_migrate(in, identifier, old);
    if (!error) {
        identifier_migrate(identifier, &call->channel->queue);
        struct ucma_reported reply = {identifier->account.fetched};
        ucma_respond(call, in->response, &reply, sizeof reply);
    }
    if (old)
        event_channel_put(old);
    return error;
}

static uint16_t family_of(const uint8_t *address)
{
    uint16_t family;
    memcpy(&family, address, sizeof family);
    return family;
}

static int refuse_size(uint32_t id, const char *what, const uint8_t *address, size_t size)
{
    size_t wanted = ucma_address_size(family_of(address));
    if (!wanted)
        return refuse(EINVAL, REASON_CM_FAMILY, "identifier %u: %s has family %u", id, what, family_of(address));
    return refuse(EINVAL, REASON_CM_ADDRESS_SIZE, "identifier %u: %s has family %u and %zu bytes, not %zu", id, what,
                  family_of(address), size, wanted);
}

/* Checks the address in a command that has room for addresses of IP; `read` is the result of ucma_address_read. */
static int check_family(uint32_t id, const char *what, const uint8_t *address, const struct cm_address *read)
{
    return read->family ? 0 : refuse_size(id, what, address, UCMA_IP_ADDRESS);
}

static int check_size(uint32_t id, const char *what, const uint8_t *address, size_t size)
{
    size_t wanted = ucma_address_size(family_of(address));
    return wanted && size == wanted ? 0 : refuse_size(id, what, address, size);
}

static int check_reserved(uint32_t id, uint32_t reserved)
{
    return reserved ? refuse(EINVAL, REASON_UNKNOWN_BITS, "identifier %u: reserved is 0x%x", id, reserved) : 0;
}

int ucma_bind_ip(struct ucma_call *call)
{
    const struct ucma_bind_ip *in = call->in;
    struct cm_address address = ucma_address_read(in->address, sizeof in->address);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = check_family(in->id, "the address", in->address, &address);
    return error ? error : identifier_bind(identifier, &address);
}

int ucma_bind(struct ucma_call *call)
{
    const struct ucma_bind *in = call->in;
    struct cm_address address = ucma_address_read(in->address, sizeof in->address);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = check_reserved(in->id, in->reserved);
    if (!error)
        error = check_size(in->id, "the address", in->address, in->size);
    return error ? error : identifier_bind(identifier, &address);
}

int ucma_resolve_ip(struct ucma_call *call)
{
    const struct ucma_resolve_ip *in = call->in;
    struct cm_address source = ucma_address_read(in->source, sizeof in->source);
    struct cm_address destination = ucma_address_read(in->destination, sizeof in->destination);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error && family_of(in->source))
        error = check_family(in->id, "the source", in->source, &source);
    if (!error)
        error = check_family(in->id, "the destination", in->destination, &destination);
    return error ? error : address_query_start(identifier, &source, &destination, in->milliseconds, call->now);
}

int ucma_resolve_addr(struct ucma_call *call)
{
    const struct ucma_resolve_addr *in = call->in;
    struct cm_address source = ucma_address_read(in->source, sizeof in->source);
    struct cm_address destination = ucma_address_read(in->destination, sizeof in->destination);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = check_reserved(in->id, in->reserved);
    if (!error && in->source_size)
        error = check_size(in->id, "the source", in->source, in->source_size);
    if (!error)
        error = check_size(in->id, "the destination", in->destination, in->destination_size);
    if (!in->source_size)
        source.family = 0;
    return error ? error : address_query_start(identifier, &source, &destination, in->milliseconds, call->now);
}

int ucma_resolve_route(struct ucma_call *call)
{
    const struct ucma_valued *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : route_query_start(identifier, in->value, call->now);
}

int ucma_listen(struct ucma_call *call)
{
    const struct ucma_valued *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : identifier_listen(identifier, (int)in->value, call->now);
}

/* The subnet administrator of InfiniBand resolves names of services, and RoCE lacks it. */
int ucma_resolve_service(struct ucma_call *call)
{
    const struct ucma_resolve_service *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (error)
        return error;
    if (identifier->state != IDENTIFIER_ADDR_BOUND)
        return identifier_refuse_state(identifier, "bound");
    if (!identifier->has_port)
        return identifier_refuse(identifier, EINVAL, REASON_CM_UNBOUND, "its state is bound");
    return identifier_refuse_usual(identifier, EOPNOTSUPP, REASON_CM_IB_SERVICE, "its state is bound");
}

/* --- multicast */

enum { JOIN_SEND_ONLY = 1 }; /* 0: a full member */

static int ucma_id_join(struct ucma_call *call, struct identifier *identifier, uint64_t uid, uint64_t response,
                        const struct cm_address *group)
{
    uint32_t number;
    int error = identifier_join(identifier, uid, group, &number);
    if (!error)
        ucma_respond(call, response, &(struct ucma_id){number}, sizeof(struct ucma_id));
    return error;
}

int ucma_join_ip(struct ucma_call *call)
{
    const struct ucma_join_ip *in = call->in;
    struct cm_address group = ucma_address_read(in->address, sizeof in->address);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = check_family(in->id, "the group", in->address, &group);
    return error ? error : ucma_id_join(call, identifier, in->uid, in->response, &group);
}

/* JOIN_SEND_ONLY needs no code: the attachment of a queue pair joins the group on the network, and a program that only
 * sends attaches no queue pair. */
int ucma_join(struct ucma_call *call)
{
    const struct ucma_join *in = call->in;
    struct cm_address group = ucma_address_read(in->address, sizeof in->address);
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    if (!error)
        error = check_size(in->id, "the group", in->address, in->size);
    if (!error && in->flags > JOIN_SEND_ONLY)
        error = refuse(EINVAL, REASON_UNKNOWN_BITS, "identifier %u: join_flags %u", in->id, in->flags);
    return error ? error : ucma_id_join(call, identifier, in->uid, in->response, &group);
}

int ucma_leave(struct ucma_call *call)
{
    const struct ucma_named *in = call->in;
    struct ucma_reported reply;
    int error = identifier_leave(&call->channel->cm->manager, &call->channel->queue, in->id, &reply.events);
    if (!error)
        ucma_respond(call, in->response, &reply, sizeof reply);
    return error;
}

/* --- options */

enum { LEVEL_ID = 0, LEVEL_IB = 1 };
enum { OPTION_TOS = 0, OPTION_REUSEADDR = 1, OPTION_AFONLY = 2, OPTION_ACK_TIMEOUT = 3 };
enum { OPTION_PATH = 1 }; /* an option of LEVEL_IB */

static int refuse_length(const struct ucma_set_option *in, size_t length)
{
    return refuse(EINVAL, REASON_CM_OPTION_LENGTH, "identifier %u: level %u, option %u, optlen %u, not %zu", in->id,
                  in->level, in->name, in->length, length);
}

static int refuse_option(const struct ucma_set_option *in)
{
    return refuse_offer(ENOSYS, REASON_CM_OPTION, "identifier %u: level %u, option %u", in->id, in->level, in->name);
}

static int set_byte(struct identifier *identifier, const struct ucma_set_option *in, const uint8_t *value,
                    int (*set)(struct identifier *, uint8_t))
{
    return in->length == sizeof *value ? set(identifier, *value) : refuse_length(in, sizeof *value);
}

static int set_flag(struct identifier *identifier, const struct ucma_set_option *in, const void *value,
                    int (*set)(struct identifier *, bool))
{
    int flag;
    if (in->length != sizeof flag)
        return refuse_length(in, sizeof flag);
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

/* Sets the first path that is for both directions and for messages of the CM, and not alternate; ignores the others. */
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
        return refuse_length(in, sizeof given);
    for (uint32_t at = 0; at < in->length; at += (uint32_t)sizeof given) {
        memcpy(&given, value + at, sizeof given);
        if (given.flags != FLAGS)
            continue;
        struct chosen_path path = read_path(given.record);
        return identifier_set_path(identifier, &path);
    }
    return refuse(EINVAL, REASON_CM_PATH_FLAGS, "identifier %u: %zu paths", in->id, in->length / sizeof given);
}

static int set_ib_option(struct identifier *identifier, const struct ucma_set_option *in)
{
    return in->name == OPTION_PATH ? set_path(identifier, in, (const uint8_t *)(uintptr_t)in->value)
                                   : refuse_option(in);
}

static int set_option(struct identifier *identifier, const struct ucma_set_option *in)
{
    const void *value = (const void *)(uintptr_t)in->value;
    if (!value && in->length)
        return refuse(EFAULT, REASON_NULL_ARGUMENT, "identifier %u: optval", in->id);
    if (in->level == LEVEL_IB)
        return set_ib_option(identifier, in);
    if (in->level != LEVEL_ID)
        return refuse_option(in);
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
        return refuse_option(in);
    }
}

int ucma_set_option(struct ucma_call *call)
{
    const struct ucma_set_option *in = call->in;
    struct identifier *identifier;
    int error = ucma_find(call, in->id, &identifier);
    return error ? error : set_option(identifier, in);
}
