/* Every command in every state that an identifier of a connected service can be in; and where it is bound. */
#include "cm/identifier.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "cm/queue_pair/attributes.h"
#include "cm/queue_pair/qp_type.h"
#include "cm/testing/rig.h"

static const struct cm_ece no_ece;

/* --- states */

static const struct cm_address none;

static struct identifier *create(struct host *host)
{
    struct identifier *identifier;
    assert_int_equal(identifier_create(&host->manager, &host->queue, 1, CM_SPACE_TCP, 0, &identifier), 0);
    return identifier;
}

static struct identifier *bound_to(struct host *host, const struct cm_address *address)
{
    struct identifier *identifier = create(host);
    assert_int_equal(identifier_bind(identifier, address), 0);
    return identifier;
}

static struct identifier *idle(struct rig *rig, struct connected *all)
{
    return create(&rig->a);
}

static struct identifier *bound(struct rig *rig, struct connected *all)
{
    struct cm_address address = rig_address(&rig->a, 0);
    return bound_to(&rig->a, &address);
}

static struct identifier *wildcard(struct rig *rig, struct connected *all)
{
    struct cm_address address = cm_any(AF_INET);
    return bound_to(&rig->a, &address);
}

static struct identifier *address_resolved(struct rig *rig, struct connected *all)
{
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = rig_address(&rig->b, RIG_PORT);
    assert_int_equal(address_query_start(identifier, &none, &address, 2000, rig->now), 0);
    return identifier;
}

static struct identifier *address_query(struct rig *rig, struct connected *all)
{
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = rig_address(&rig->b, RIG_PORT);
    rig->a.questions = 1;
    assert_int_equal(address_query_start(identifier, &none, &address, 2000, rig->now), 0);
    assert_int_equal(identifier->state, IDENTIFIER_ADDR_QUERY);
    return identifier;
}

static struct identifier *route_query(struct rig *rig, struct connected *all)
{
    struct identifier *identifier = address_resolved(rig, all);
    rig->a.loses = true;
    assert_int_equal(route_query_start(identifier, 500, rig->now), 0);
    assert_int_equal(identifier->state, IDENTIFIER_ROUTE_QUERY);
    return identifier;
}

static struct identifier *route_resolved(struct rig *rig, struct connected *all)
{
    return rig_resolve(&rig->a, RIG_PORT);
}

static struct identifier *req_sent(struct rig *rig, struct connected *all)
{
    struct cm_parameters parameters = rig_parameters(0x11);
    all->active = rig_resolve(&rig->a, RIG_PORT);
    assert_int_equal(service_connect(all->active, &parameters, &no_ece, rig->now), 0);
    return all->active;
}

static struct identifier *rejected(struct rig *rig, struct connected *all)
{
    req_sent(rig, all);
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_REJ);
    return all->active;
}

static struct identifier *listening(struct rig *rig, struct connected *all)
{
    return all->listener = rig_listen(&rig->b, RIG_PORT);
}

static struct identifier *req_rcvd(struct rig *rig, struct connected *all)
{
    listening(rig, all);
    req_sent(rig, all);
    rig_pass(rig, CM_REQ);
    return all->passive = identifier_find(&rig->b.manager, rig_event(&rig->b, CM_CONNECT_REQUEST)->number);
}

static struct identifier *rep_sent(struct rig *rig, struct connected *all)
{
    struct cm_parameters parameters = rig_parameters(0x22);
    req_rcvd(rig, all);
    assert_int_equal(service_accept(all->passive, 2, &parameters, &no_ece, rig->now), 0);
    return all->passive;
}

static struct identifier *rep_rcvd(struct rig *rig, struct connected *all)
{
    rep_sent(rig, all);
    rig_pass(rig, CM_REP);
    return all->active;
}

static struct identifier *established(struct rig *rig, struct connected *all)
{
    *all = rig_connect(rig);
    return all->active;
}

static struct identifier *established_passive(struct rig *rig, struct connected *all)
{
    *all = rig_connect(rig);
    return all->passive;
}

static struct identifier *dreq_sent(struct rig *rig, struct connected *all)
{
    established(rig, all);
    assert_int_equal(service_disconnect(all->active, rig->now), 0);
    return all->active;
}

static struct identifier *dreq_rcvd(struct rig *rig, struct connected *all)
{
    dreq_sent(rig, all);
    rig_pass(rig, CM_DREQ);
    return all->passive;
}

static struct identifier *disconnected(struct rig *rig, struct connected *all)
{
    dreq_rcvd(rig, all);
    assert_int_equal(service_disconnect(all->passive, rig->now), 0);
    rig_pass(rig, CM_DREP);
    return all->active;
}

typedef struct identifier *make_state(struct rig *, struct connected *);

static make_state *const states[] = {
    idle,      bound,         wildcard,    address_resolved, route_resolved,
    req_sent,  rep_rcvd,      established, dreq_sent,        disconnected,
    rejected,  listening,     req_rcvd,    rep_sent,         established_passive,
    dreq_rcvd, address_query, route_query,
};

enum { STATES = sizeof states / sizeof *states };

/* --- commands */

static int bind_command(struct rig *rig, struct identifier *identifier)
{
    struct cm_address any = cm_any(AF_INET);
    return identifier_bind(identifier, &any);
}

static int resolve_address(struct rig *rig, struct identifier *identifier)
{
    struct cm_address address = rig_address(&rig->b, RIG_PORT);
    return address_query_start(identifier, &none, &address, 2000, rig->now);
}

static int resolve_route(struct rig *rig, struct identifier *identifier)
{
    return route_query_start(identifier, 2000, rig->now);
}

static int set_path(struct rig *rig, struct identifier *identifier)
{
    struct chosen_path path = {.lifetime = 1};
    memcpy(path.source, identifier->route.from.gid, 16);
    memcpy(path.destination, identifier->route.gid, 16);
    return identifier_set_path(identifier, &path);
}

static int connect_command(struct rig *rig, struct identifier *identifier)
{
    struct cm_parameters parameters = rig_parameters(0x33);
    return service_connect(identifier, &parameters, &no_ece, rig->now);
}

static int listen_command(struct rig *rig, struct identifier *identifier)
{
    return identifier_listen(identifier, 1, rig->now);
}

static int accept_command(struct rig *rig, struct identifier *identifier)
{
    struct cm_parameters parameters = rig_parameters(0x33);
    return service_accept(identifier, 3, &parameters, &no_ece, rig->now);
}

static int confirm(struct rig *rig, struct identifier *identifier)
{
    return service_confirm(identifier, rig->now);
}

static int reject(struct rig *rig, struct identifier *identifier)
{
    return service_reject(identifier, 0, NULL, 0, rig->now);
}

static int disconnect(struct rig *rig, struct identifier *identifier)
{
    return service_disconnect(identifier, rig->now);
}

static int notify(struct rig *rig, struct identifier *identifier)
{
    return service_notify(identifier, IBV_EVENT_COMM_EST, rig->now);
}

static int ask_attributes(struct identifier *identifier, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr;
    int mask;
    return attributes_of(identifier, state, &attr, &mask);
}

static int init(struct rig *rig, struct identifier *identifier)
{
    return ask_attributes(identifier, IBV_QPS_INIT);
}

static int rtr(struct rig *rig, struct identifier *identifier)
{
    return ask_attributes(identifier, IBV_QPS_RTR);
}

static int rts(struct rig *rig, struct identifier *identifier)
{
    return ask_attributes(identifier, IBV_QPS_RTS);
}

static int reuse(struct rig *rig, struct identifier *identifier)
{
    return identifier_set_reuse(identifier, true);
}

static int no_reuse(struct rig *rig, struct identifier *identifier)
{
    return identifier_set_reuse(identifier, false);
}

static int only_family(struct rig *rig, struct identifier *identifier)
{
    return identifier_set_only_family(identifier, true);
}

static int join(struct rig *rig, struct identifier *identifier)
{
    struct cm_address group = {.family = AF_INET, .gid = {[10] = 0xff, [11] = 0xff, [12] = 239}};
    uint32_t number;
    return identifier_join(identifier, 4, &group, &number);
}

/* The answers have a letter for each state, in the order of the table above: . is 0, E EINVAL, C EISCONN. */
static const struct {
    const char *name;
    int (*run)(struct rig *, struct identifier *);
    const char *answers;
} commands[] = {
    {"bind", bind_command, ".EEEEEEEEEEEEEEEEE"},
    {"resolve address", resolve_address, "...EEEEEEEEEEEEEEE"},
    {"resolve route", resolve_route, "EEE.EEEEEEEEEEEEEE"},
    {"set path", set_path, "EEE.EEEEEEEEEEEEEE"},
    {"connect", connect_command, "EEEE.EEEEEEEEEEEEE"},
    {"listen", listen_command, "...EEEEEEEEEEEEEEE"},
    {"accept", accept_command, "EEEEEEEEEEEE.EEEEE"},
    {"accept, active", confirm, "EEEEEE.EEEEEEEEEEE"},
    {"reject", reject, "EEEEE..EEEEE..EEEE"},
    {"disconnect", disconnect, "EEEEE......E....EE"},
    {"notify", notify, "EEEEEEECEEEEE.CEEE"},
    {"attributes for INIT", init, "E.E.....EEE....EE."},
    {"attributes for RTR", rtr, "E.E..E..EEE....EE."},
    {"attributes for RTS", rts, "E.E..E..EEE....EE."},
    {"REUSEADDR", reuse, "...........E......"},
    {"no REUSEADDR", no_reuse, ".EEEEEEEEEEEEEEEEE"},
    {"AFONLY", only_family, "...EEEEEEEEEEEEEEE"},
    {"join", join, "EEEEEEEEEEEEEEEEEE"},
};

static int expected(char letter)
{
    return letter == '.' ? 0 : letter == 'C' ? EISCONN : EINVAL;
}

static void drop_events(struct host *host)
{
    struct cm_event *event;
    while ((event = event_fetch(&host->queue)))
        host->manager.operations->release(&host->manager, event);
    host->signalled = 0;
}

/* Destroying is a command for every state, too: the rig finds all leftovers. */
static void every_command_in_every_state(void **state)
{
    for (unsigned i = 0; i < STATES; i++)
        for (unsigned j = 0; j < sizeof commands / sizeof *commands; j++) {
            struct connected all = {NULL};
            rig_make(state);
            struct rig *rig = *state;
            struct identifier *identifier = states[i](rig, &all);
            int answer = commands[j].run(rig, identifier);
            if (answer != expected(commands[j].answers[i]))
                fail_msg("%s answers %d in state %u", commands[j].name, answer, i);
            if (identifier != all.active && identifier != all.passive && identifier != all.listener)
                identifier_destroy(identifier, rig->now);
            drop_events(&rig->a);
            drop_events(&rig->b);
            rig_end(rig, &all);
            drop_events(&rig->a);
            rig_free(state);
        }
}

/* --- addresses */

static void an_address_of_another_host_is_refused(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = rig_address(&rig->b, 1);
    assert_int_equal(identifier_bind(identifier, &address), EADDRNOTAVAIL);
    address = rig_address(&rig->a, 1);
    assert_int_equal(identifier_bind(identifier, &address), 0);
    identifier_destroy(identifier, rig->now);
}

static void a_link_local_address_needs_a_scope(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = {.family = AF_INET6, .gid = {0xfe, 0x80, [15] = 1}};
    assert_int_equal(identifier_bind(identifier, &address), EINVAL);
    address.scope = 2;
    assert_int_equal(identifier_bind(identifier, &address), EADDRNOTAVAIL);
    identifier_destroy(identifier, rig->now);
}

static void a_failed_bind_gives_everything_back(void **state)
{
    struct rig *rig = *state;
    struct cm_address address = rig_address(&rig->a, 1234);
    struct identifier *first = bound_to(&rig->a, &address), *second = create(&rig->a);
    assert_int_equal(identifier_bind(second, &address), EADDRINUSE);
    assert_int_equal(second->state, IDENTIFIER_IDLE);
    assert_false(second->has_port || second->has_reservation);
    identifier_destroy(first, rig->now);
    assert_int_equal(identifier_bind(second, &address), 0);
    identifier_destroy(second, rig->now);
}

static void the_first_listener_with_reuseaddr_wins(void **state)
{
    struct rig *rig = *state;
    struct cm_address address = rig_address(&rig->a, 1234);
    struct identifier *first = create(&rig->a), *second = create(&rig->a);
    identifier_set_reuse(first, true);
    identifier_set_reuse(second, true);
    assert_int_equal(identifier_bind(first, &address), 0);
    assert_int_equal(identifier_bind(second, &address), 0);
    assert_int_not_equal(identifier_listen(first, 1, rig->now), 0); /* a share of it is another's */
    identifier_destroy(second, rig->now);
    assert_int_equal(identifier_listen(first, 1, rig->now), 0);
    identifier_destroy(first, rig->now);
}

static void nowhere_is_an_event_and_no_route_an_error(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = create(&rig->a);
    rig->a.route_error = ENODEV;
    assert_int_equal(resolve_address(rig, identifier), 0);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_ERROR)->status, -ENODEV);
    rig->a.route_error = ENETUNREACH;
    assert_int_equal(resolve_address(rig, identifier), ENETUNREACH);
    rig_no_event(&rig->a);
    rig->a.route_error = 0;
    assert_int_equal(resolve_address(rig, identifier), 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

/* --- the neighbour */

static struct identifier *query(struct rig *rig, unsigned questions, uint32_t milliseconds)
{
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = rig_address(&rig->b, RIG_PORT);
    rig->a.questions = questions;
    assert_int_equal(address_query_start(identifier, &none, &address, milliseconds, rig->now), 0);
    return identifier;
}

static void who_is_asked_for_and_answers_is_resolved_then(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = query(rig, 4, 2000);
    rig_wait(rig, 6 * NANOS_MILLISECOND);
    rig_no_event(&rig->a);
    assert_int_equal(identifier->has_port, false);
    rig_wait(rig, 9 * NANOS_MILLISECOND);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_RESOLVED)->status, 0);
    assert_memory_equal(identifier->route.gid, rig->b.port.gid, 16);
    assert_int_equal(resolve_route(rig, identifier), 0);
    rig_event(&rig->a, CM_ROUTE_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

static void who_never_answers_is_an_error_after_the_timeout_and_can_be_asked_anew(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = query(rig, UINT32_MAX, 500);
    rig_wait(rig, 499 * NANOS_MILLISECOND);
    rig_no_event(&rig->a);
    rig_wait(rig, NANOS_MILLISECOND);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_ERROR)->status, -ETIMEDOUT);
    assert_int_equal(identifier->state, IDENTIFIER_ADDR_BOUND);
    rig->a.questions = 0;
    assert_int_equal(resolve_address(rig, identifier), 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

static void without_patience_one_more_question_is_asked(void **state)
{
    struct rig *rig = *state;
    struct identifier *patient = query(rig, 1, 0);
    rig_wait(rig, 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
    struct identifier *impatient = query(rig, 2, 0);
    rig_wait(rig, 0);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_ERROR)->status, -ETIMEDOUT);
    identifier_destroy(patient, rig->now);
    identifier_destroy(impatient, rig->now);
}

static void a_route_that_goes_meanwhile_ends_the_query(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = query(rig, 1, UINT32_MAX);
    rig->a.route_error = ENETUNREACH;
    rig_wait(rig, NANOS_MILLISECOND);
    assert_int_equal(rig_event(&rig->a, CM_ADDR_ERROR)->status, -ENETUNREACH);
    rig->a.route_error = 0;
    identifier_destroy(identifier, rig->now);
}

static void who_goes_is_asked_for_no_more(void **state)
{
    struct rig *rig = *state;
    identifier_destroy(query(rig, UINT32_MAX, UINT32_MAX), rig->now);
    assert_int_equal(dispatch_deadline(&rig->a.manager), NANOS_NEVER);
}

/* Linux's cma_bind_addr; so the source that is found can be bound again. */
static void an_unbound_source_takes_the_scope_of_the_destination(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = create(&rig->a);
    struct cm_address address = {.family = AF_INET6, .port = 1, .scope = 5, .gid = {0xfe, 0x80, [15] = 2}};
    assert_int_equal(address_query_start(identifier, &none, &address, 2000, rig->now), 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
    assert_int_equal(identifier->source.scope, 5);
    identifier_destroy(identifier, rig->now);
}

static void families_do_not_mix(void **state)
{
    struct rig *rig = *state;
    struct cm_address any = cm_any(AF_INET6);
    struct identifier *identifier = bound_to(&rig->a, &any);
    assert_int_equal(resolve_address(rig, identifier), EINVAL);
    identifier_destroy(identifier, rig->now);
}

/* Every librdmacm does this first, to learn whether AF_IB is known. */
static void the_probe_for_af_ib_succeeds(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier;
    struct cm_address any = {.family = AF_IB, .service = 0x1060000, .service_mask = ~0xffffull};
    assert_int_equal(identifier_create(&rig->a.manager, &rig->a.queue, 1, CM_SPACE_IB, QP_TYPE_CONNECTED, &identifier),
                     0);
    assert_int_equal(identifier_bind(identifier, &any), 0);
    assert_int_equal(identifier->port_space, CM_SPACE_TCP);
    assert_int_not_equal(identifier->source.port, 0);
    identifier_destroy(identifier, rig->now);
}

/* A service ID's low 16 bits are the port, and the rest says the port space. */
static void a_service_of_af_ib_says_its_port_space(void **state)
{
    static const struct {
        uint64_t service, mask;
        uint16_t own, space;
    } rows[] = {
        {0x1060007, UINT64_MAX, CM_SPACE_IB, CM_SPACE_TCP},
        {0x1110007, UINT64_MAX, CM_SPACE_IB, CM_SPACE_UDP},
        {0x13f0007, UINT64_MAX, CM_SPACE_IB, CM_SPACE_IB},
        {0x1060007, UINT64_MAX, CM_SPACE_TCP, CM_SPACE_TCP},
        {0x1110007, UINT64_MAX, CM_SPACE_TCP, 0},
        {0x1070007, UINT64_MAX, CM_SPACE_IB, 0},
        {0x1060000 | 1ull << 60, UINT64_MAX, CM_SPACE_IB, 0},
    };
    struct rig *rig = *state;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct identifier *identifier;
        struct cm_address address = {
            .family = AF_IB, .service = rows[i].service, .service_mask = rows[i].mask, .port = 7};
        assert_int_equal(
            identifier_create(&rig->a.manager, &rig->a.queue, 1, rows[i].own, QP_TYPE_CONNECTED, &identifier), 0);
        assert_int_equal(identifier_bind(identifier, &address), rows[i].space ? 0 : EPROTONOSUPPORT);
        if (rows[i].space) {
            assert_int_equal(identifier->port_space, rows[i].space);
            assert_true(identifier->source.service == ((uint64_t)rows[i].space << 16 | 7));
            assert_true(identifier->source.service_mask == UINT64_MAX);
        }
        identifier_destroy(identifier, rig->now);
    }
}

static void port_spaces_have_their_queue_pairs(void **state)
{
    struct rig *rig = *state;
    static const struct {
        uint16_t space;
        uint8_t asked, got;
        int error;
    } cases[] = {{CM_SPACE_TCP, 4, QP_TYPE_CONNECTED, 0},
                 {CM_SPACE_UDP, 2, QP_TYPE_DATAGRAM, 0},
                 {CM_SPACE_IPOIB, 2, QP_TYPE_DATAGRAM, 0},
                 {CM_SPACE_IB, 3, 3, 0},
                 {CM_SPACE_IB, 0, 0, 0},
                 {0x1234, 2, 0, EINVAL}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct identifier *identifier;
        int error = identifier_create(&rig->a.manager, &rig->a.queue, 1, cases[i].space, cases[i].asked, &identifier);
        assert_int_equal(error, cases[i].error);
        if (error)
            continue;
        assert_int_equal(identifier->qp_type, cases[i].got);
        identifier_destroy(identifier, rig->now);
    }
}

static void flow_labels_follow_from_the_ports(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = rig_resolve(&rig->a, RIG_PORT);
    assert_int_equal(identifier->route.flow_label, (identifier->source.port * 31 + RIG_PORT) & 0xfffff);
    identifier_destroy(identifier, rig->now);
}

static struct identifier *resolve_and_set(struct rig *rig, struct chosen_path path, int error)
{
    struct identifier *identifier = create(&rig->a);
    assert_int_equal(resolve_address(rig, identifier), 0);
    rig_event(&rig->a, CM_ADDR_RESOLVED);
    memcpy(path.source, identifier->route.from.gid, 16);
    assert_int_equal(identifier_set_path(identifier, &path), error);
    return identifier;
}

static void a_path_of_the_program_is_the_route(void **state)
{
    struct rig *rig = *state;
    struct chosen_path path = {
        .flow_label = 0x12345, .hop_limit = 3, .traffic_class = 0x60, .mtu = IBV_MTU_256, .lifetime = 9};
    memcpy(path.destination, rig->b.port.gid, 16);
    struct identifier *identifier = resolve_and_set(rig, path, 0);
    rig_event(&rig->a, CM_ROUTE_RESOLVED);
    assert_int_equal(identifier->state, IDENTIFIER_ROUTE_RESOLVED);
    assert_true(identifier->has_route);
    assert_int_equal(identifier->route.flow_label, 0x12345);
    assert_int_equal(identifier->route.hop_limit, 3);
    assert_int_equal(identifier->route.traffic_class, 0x60);
    assert_int_equal(identifier->route.from.mtu, IBV_MTU_256);
    assert_int_equal(identifier->route.lifetime, 9);
    identifier_destroy(identifier, rig->now);
}

static void a_path_above_the_port_has_the_mtu_of_the_port(void **state)
{
    struct rig *rig = *state;
    struct chosen_path path = {.mtu = IBV_MTU_4096 + 1};
    memcpy(path.destination, rig->b.port.gid, 16);
    struct identifier *identifier = resolve_and_set(rig, path, 0);
    rig_event(&rig->a, CM_ROUTE_RESOLVED);
    assert_int_equal(identifier->route.from.mtu, rig->a.port.mtu);
    identifier_destroy(identifier, rig->now);
}

static void a_path_to_another_gid_is_refused(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier = resolve_and_set(rig, (struct chosen_path){.destination = {0xfe}}, EINVAL);
    rig_no_event(&rig->a);
    assert_int_equal(identifier->state, IDENTIFIER_ADDR_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

/* Linux destroys what is below such an identifier. */
static void behind_a_removal_each_command_of_the_service_is_refused(void **state)
{
    static int (*const refused[])(struct rig *, struct identifier *) = {connect_command, accept_command, confirm,
                                                                        reject,          disconnect,     notify};
    for (unsigned i = 0; i < STATES; i++) {
        struct connected all = {NULL};
        rig_make(state);
        struct rig *rig = *state;
        struct identifier *identifier = states[i](rig, &all);
        identifiers_event_of_device(&rig->a.manager, rig->a.port.device, CM_DEVICE_REMOVAL);
        identifiers_event_of_device(&rig->b.manager, rig->b.port.device, CM_DEVICE_REMOVAL);
        for (unsigned j = 0; j < sizeof refused / sizeof *refused; j++)
            assert_int_equal(refused[j](rig, identifier), EINVAL);
        if (identifier != all.active && identifier != all.passive && identifier != all.listener)
            identifier_destroy(identifier, rig->now);
        drop_events(&rig->a);
        drop_events(&rig->b);
        rig_end(rig, &all);
        drop_events(&rig->a);
        rig_free(state);
    }
}

static void without_memory_nothing_remains(void **state)
{
    struct rig *rig = *state;
    struct identifier *identifier;
    rig->a.fail_after = 1;
    assert_int_equal(identifier_create(&rig->a.manager, &rig->a.queue, 1, CM_SPACE_TCP, 0, &identifier), ENOMEM);
    rig->a.fail_after = 0;
    identifier = rig_resolve(&rig->a, RIG_PORT);
    struct cm_parameters parameters = rig_parameters(0x11);
    rig->a.fail_after = 1;
    assert_int_equal(service_connect(identifier, &parameters, &no_ece, rig->now), ENOMEM);
    rig->a.fail_after = 0;
    assert_int_equal(identifier->state, IDENTIFIER_ROUTE_RESOLVED);
    identifier_destroy(identifier, rig->now);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_in_every_state),
        cmocka_unit_test(behind_a_removal_each_command_of_the_service_is_refused),
        TEST(an_address_of_another_host_is_refused),
        TEST(a_link_local_address_needs_a_scope),
        TEST(a_failed_bind_gives_everything_back),
        TEST(the_first_listener_with_reuseaddr_wins),
        TEST(nowhere_is_an_event_and_no_route_an_error),
        TEST(families_do_not_mix),
        TEST(who_is_asked_for_and_answers_is_resolved_then),
        TEST(who_never_answers_is_an_error_after_the_timeout_and_can_be_asked_anew),
        TEST(without_patience_one_more_question_is_asked),
        TEST(a_route_that_goes_meanwhile_ends_the_query),
        TEST(who_goes_is_asked_for_no_more),
        TEST(an_unbound_source_takes_the_scope_of_the_destination),
        TEST(the_probe_for_af_ib_succeeds),
        TEST(a_service_of_af_ib_says_its_port_space),
        TEST(port_spaces_have_their_queue_pairs),
        TEST(flow_labels_follow_from_the_ports),
        TEST(a_path_of_the_program_is_the_route),
        TEST(a_path_above_the_port_has_the_mtu_of_the_port),
        TEST(a_path_to_another_gid_is_refused),
        TEST(without_memory_nothing_remains),
    };
    return cmocka_run_group_tests_name("identifier", tests, NULL, NULL);
}
