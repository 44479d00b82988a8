#include "cm/testing/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/container.h"

/* Also for fuzzers, which have no test framework. */
static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct host *host_of(struct manager *manager)
{
    return container_of(manager, struct host, manager);
}

/* --- the owner's operations */

static void drop(struct manager *manager, enum reason reason, const struct identifier *identifier,
                 const struct cm_message *message)
{
    host_of(manager)->dropped[reason - REASON_CM_BACKLOG]++;
}

static void *allocate(struct manager *manager, size_t size)
{
    struct host *host = host_of(manager);
    if (host->fail_after && !--host->fail_after) {
        host->fail_after = host->fails_again ? host->fails_again : 1;
        return NULL;
    }
    host->blocks++;
    return calloc(1, size);
}

static void release(struct manager *manager, void *memory)
{
    host_of(manager)->blocks--;
    free(memory);
}

static int find_port(struct manager *manager, const struct cm_address *address, struct cm_port *port)
{
    struct host *host = host_of(manager);
    if (memcmp(address->gid, host->port.gid, 16))
        return EADDRNOTAVAIL;
    *port = host->port;
    return 0;
}

static int find_route(struct manager *manager, const struct cm_port *from, struct cm_address *source,
                      const struct cm_address *destination, struct cm_route *route)
{
    struct host *host = host_of(manager);
    if (host->questions) {
        host->questions--;
        return EAGAIN;
    }
    *route = (struct cm_route){.from = host->port, .neighbor = CM_NOWHERE, .hop_limit = 64};
    memcpy(route->gid, destination->gid, 16);
    memcpy(source->gid, host->port.gid, 16);
    return host->route_error;
}

static bool loses(struct manager *manager, unsigned kind, const struct cm_address *address)
{
    return host_of(manager)->loses;
}

static unsigned list_claims(struct host *host, const struct port_claim *wanted, const struct port_claim **list)
{
    unsigned count = 0;
    for (unsigned i = 0; i < host->port_count; i++)
        if (host->ports[i].space == wanted->space && host->ports[i].port == wanted->port && &host->ports[i] != wanted)
            list[count++] = &host->ports[i];
    return count;
}

static int bind_port(struct manager *manager, struct identifier *identifier)
{
    static const struct ports_range range = {40000, 40000 + HOST_PORTS - 1};
    struct host *host = host_of(manager);
    const struct port_claim *others[HOST_PORTS];
    struct port_claim claim = {.space = identifier->port_space,
                               .port = identifier->source.port,
                               .reuse = identifier->options.reuse,
                               .only_family = identifier->options.only_family,
                               .source = identifier->source};
    for (uint32_t attempt = 0; !identifier->source.port && attempt < HOST_PORTS; attempt++) {
        claim.port = ports_candidate(&range, host->next_port, attempt);
        if (!list_claims(host, &claim, others))
            identifier->source.port = claim.port;
    }
    int error = ports_conflict(others, list_claims(host, &claim, others), &claim, true);
    if (error)
        return error;
    require(host->port_count < HOST_PORTS);
    host->ports[host->port_count++] = claim;
    host->next_port++;
    return 0;
}

static struct port_claim *find_claim(struct host *host, const struct identifier *identifier)
{
    for (unsigned i = 0; i < host->port_count; i++)
        if (host->ports[i].space == identifier->port_space && host->ports[i].port == identifier->source.port)
            return &host->ports[i];
    abort();
}

static int listen_port(struct manager *manager, struct identifier *identifier)
{
    const struct port_claim *others[HOST_PORTS], *own = find_claim(host_of(manager), identifier);
    return ports_conflict(others, list_claims(host_of(manager), own, others), own, false);
}

static void release_port(struct manager *manager, struct identifier *identifier)
{
    struct host *host = host_of(manager);
    struct port_claim *claim = find_claim(host, identifier);
    *claim = host->ports[--host->port_count];
}

static void note(struct manager *manager, struct session *session)
{
}

/* A refusal says why. */
static void refuse(struct manager *manager, const struct manager_refusal *refusal, const char *format, va_list values)
{
    char text[200];
    vsnprintf(text, sizeof text, format, values);
    require(refusal->error && refusal->reason && text[0]);
    host_of(manager)->refused = refusal->reason;
}

static nanos linger(struct manager *manager)
{
    return host_of(manager)->linger;
}

static const struct manager_operations operations = {.allocate = allocate,
                                                     .release = release,
                                                     .find_port = find_port,
                                                     .find_route = find_route,
                                                     .loses = loses,
                                                     .bind_port = bind_port,
                                                     .listen_port = listen_port,
                                                     .release_port = release_port,
                                                     .note = note,
                                                     .forget = note,
                                                     .refuse = refuse,
                                                     .linger = linger,
                                                     .drop = drop};

static void added(struct event_queue *queue)
{
    container_of(queue, struct host, queue)->signalled++;
}

static void removed(struct event_queue *queue)
{
    container_of(queue, struct host, queue)->signalled--;
}

static const struct event_queue_operations signals = {.added = added, .removed = removed};

/* --- making */

void host_make(struct host *host, uint8_t number)
{
    *host = (struct host){.address = number};
    host->port = (struct cm_port){.guid = 0x1000 + number, .number = 1, .gid_index = 1, .mtu = 3, .ack_delay = 15};
    host->port.gid[10] = host->port.gid[11] = 0xff;
    host->port.gid[12] = 10;
    host->port.gid[15] = number;
    host->buckets = calloc(4 * MANAGER_BUCKETS, sizeof *host->buckets);
    struct manager_settings settings = {.buckets = host->buckets,
                                        .agent = number,
                                        .seed = number,
                                        .first_id = number * 0x10000u,
                                        .retries = MANAGER_RETRIES};
    manager_initialize(&host->manager, &operations, &settings);
    event_queue_initialize(&host->queue, &signals);
}

void host_free(struct host *host)
{
    free(host->buckets);
}

struct dispatch_datagram host_arrival(const struct host *at, const struct host *from,
                                      const struct dispatch_datagram *sent)
{
    uint8_t bytes[MAD_BYTES];
    struct dispatch_datagram datagram = {
        .route = {.from = at->port, .neighbor = from->address, .hop_limit = sent->route.hop_limit}};
    memcpy(datagram.route.gid, from->port.gid, 16);
    cm_encode(&sent->message, bytes);
    require(cm_decode(bytes, sizeof bytes, &datagram.message) == CM_FINE);
    return datagram;
}
