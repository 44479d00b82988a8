#include "cm/testing/rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/container.h"
#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "cm/connect.h"

int rig_make(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig->now = NANOS_SECOND;
    host_make(&rig->a, 1);
    host_make(&rig->b, 2);
    rig->a.space = rig->b.space = CM_SPACE_TCP;
    rig->a.peer = &rig->b;
    rig->b.peer = &rig->a;
    *state = rig;
    return 0;
}

static struct cm_event *last_event;

static void free_host(struct host *host)
{
    free(last_event);
    last_event = NULL;
    assert_int_equal(host->blocks, 0);
    assert_int_equal(host->port_count, 0);
    assert_int_equal(host->manager.sessions, 0);
    assert_int_equal(dispatch_deadline(&host->manager), NANOS_NEVER);
    host_free(host);
}

int rig_free(void **state)
{
    struct rig *rig = *state;
    free_host(&rig->a);
    free_host(&rig->b);
    free(rig);
    return 0;
}

/* --- the wire */

static void put(struct rig *rig, struct host *from, const struct dispatch_datagram *datagram)
{
    assert_true(rig->count < RIG_WIRE);
    rig->wire[rig->count] = *datagram;
    rig->to[rig->count++] = from->peer;
    rig->sent[datagram->message.attribute]++;
}

static void deliver(struct rig *rig, struct host *to, const struct dispatch_datagram *sent)
{
    struct dispatch_datagram reply, datagram = host_arrival(to, to->peer, sent);
    if (dispatch_receive(&to->manager, &datagram, &reply, rig->now))
        put(rig, to, &reply);
}

void rig_pull(struct rig *rig)
{
    struct host *hosts[] = {&rig->a, &rig->b};
    struct dispatch_datagram datagram;
    for (unsigned i = 0; i < 2; i++)
        while (dispatch_transmit(&hosts[i]->manager, &datagram))
            put(rig, hosts[i], &datagram);
}

struct dispatch_datagram *rig_next(struct rig *rig, enum cm_attribute attribute)
{
    rig_pull(rig);
    if (!rig->count)
        fail_msg("no %s on the wire", cm_name(attribute));
    if (rig->wire[0].message.attribute != attribute)
        fail_msg("%s on the wire, not %s", cm_name(rig->wire[0].message.attribute), cm_name(attribute));
    return &rig->wire[0];
}

static void drop_first(struct rig *rig)
{
    rig->count--;
    memmove(rig->wire, rig->wire + 1, rig->count * sizeof *rig->wire);
    memmove(rig->to, rig->to + 1, rig->count * sizeof *rig->to);
}

void rig_twice(struct rig *rig, enum cm_attribute attribute)
{
    struct dispatch_datagram datagram = *rig_next(rig, attribute);
    deliver(rig, rig->to[0], &datagram);
}

void rig_lose(struct rig *rig, enum cm_attribute attribute)
{
    rig_next(rig, attribute);
    drop_first(rig);
}

void rig_pass(struct rig *rig, enum cm_attribute attribute)
{
    struct dispatch_datagram datagram = *rig_next(rig, attribute);
    struct host *to = rig->to[0];
    drop_first(rig);
    deliver(rig, to, &datagram);
}

void rig_quiet(struct rig *rig)
{
    rig_pull(rig);
    if (rig->count)
        fail_msg("%s on the wire", cm_name(rig->wire[0].message.attribute));
}

void rig_settle(struct rig *rig)
{
    for (rig_pull(rig); rig->count; rig_pull(rig))
        rig_pass(rig, rig->wire[0].message.attribute);
}

void rig_wait(struct rig *rig, nanos time)
{
    nanos end = rig->now + time;
    for (;;) {
        nanos a = dispatch_deadline(&rig->a.manager), b = dispatch_deadline(&rig->b.manager), next = a < b ? a : b;
        if (next > end)
            break;
        rig->now = next > rig->now ? next : rig->now;
        dispatch_expire(&rig->a.manager, rig->now);
        dispatch_expire(&rig->b.manager, rig->now);
        rig_pull(rig);
    }
    rig->now = end;
}

/* --- what programs do */

struct cm_address rig_address(const struct host *host, uint16_t port)
{
    struct cm_address address = {.family = AF_INET, .port = port};
    memcpy(address.gid, host->port.gid, 16);
    return address;
}

static const struct cm_event *keep(struct host *host, struct cm_event *event)
{
    free(last_event);
    last_event = event;
    host->blocks--;
    return event;
}

const struct cm_event *rig_event(struct host *host, enum cm_event_kind kind)
{
    struct cm_event *event = event_fetch(&host->queue);
    if (!event)
        fail_msg("no event %u", kind);
    host->signalled--;
    assert_int_equal(event->kind, kind);
    assert_int_equal(host->signalled, host->queue.count);
    return keep(host, event);
}

void rig_no_event(struct host *host)
{
    if (host->queue.count)
        fail_msg("event %u waits", STAILQ_FIRST(&host->queue.events)->kind);
}

struct identifier *rig_listen(struct host *host, uint16_t port)
{
    struct identifier *listener;
    struct cm_address address = rig_address(host, port);
    assert_int_equal(identifier_create(&host->manager, &host->queue, 0xb0, host->space, 0, &listener), 0);
    assert_int_equal(identifier_bind(listener, &address), 0);
    assert_int_equal(identifier_listen(listener, 10, 0), 0);
    return listener;
}

struct identifier *rig_resolve(struct host *host, uint16_t port)
{
    static const struct cm_address none;
    struct identifier *identifier;
    struct cm_address address = rig_address(host->peer, port);
    assert_int_equal(identifier_create(&host->manager, &host->queue, 0xa0, host->space, 0, &identifier), 0);
    assert_int_equal(address_query_start(identifier, &none, &address, 2000, 0), 0);
    rig_event(host, CM_ADDR_RESOLVED);
    assert_int_equal(route_query_start(identifier, 2000, 0), 0);
    rig_event(host, CM_ROUTE_RESOLVED);
    return identifier;
}

struct cm_parameters rig_parameters(uint32_t qpn)
{
    return (struct cm_parameters){.qpn = qpn,
                                  .responder_resources = 3,
                                  .initiator_depth = 5,
                                  .retry_count = 7,
                                  .rnr_retry_count = 6,
                                  .private_length = 5,
                                  .private_data = "data"};
}

static const struct cm_ece no_ece;

struct connected rig_start(struct rig *rig)
{
    struct cm_parameters parameters = rig_parameters(0x11);
    struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT), .active = rig_resolve(&rig->a, RIG_PORT)};
    assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
    return all;
}

void rig_arrive(struct rig *rig, struct connected *all)
{
    rig_pass(rig, rig->a.space == CM_SPACE_UDP ? CM_SIDR_REQ : CM_REQ);
    all->passive = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
    assert_non_null(all->passive);
}

void rig_accept(struct rig *rig, struct connected *all)
{
    struct cm_parameters parameters = rig_parameters(0x22);
    assert_int_equal(service_accept(all->passive, 0xc0, &parameters, &no_ece, rig->now), 0);
}

void rig_confirm(struct rig *rig, struct connected *all)
{
    rig_event(&rig->a, CM_CONNECT_RESPONSE);
    assert_int_equal(service_confirm(all->active, rig->now), 0);
}

struct connected rig_connect(struct rig *rig)
{
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    rig_accept(rig, &all);
    rig_pass(rig, CM_REP);
    rig_confirm(rig, &all);
    rig_pass(rig, CM_RTU);
    rig_event(&rig->b, CM_ESTABLISHED);
    return all;
}

void rig_end(struct rig *rig, struct connected *all)
{
    if (all->active)
        identifier_destroy(all->active, rig->now);
    if (all->passive)
        identifier_destroy(all->passive, rig->now);
    if (all->listener)
        identifier_destroy(all->listener, rig->now);
    rig_settle(rig);
    rig_wait(rig, 120 * NANOS_SECOND);
    rig_settle(rig);
}
