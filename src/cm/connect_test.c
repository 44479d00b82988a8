/* Scripts of connections: both sides are this engine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "cm/connect.h"
#include "cm/queue_pair/attributes.h"
#include "cm/testing/rig.h"

static const struct cm_ece no_ece;
static const nanos req_wait = 6144 * NANOS_MILLISECOND;

static void both_ends_hear_what_the_other_said(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0x11);
    struct cm_ece ece = {.vendor = 0xb1b2b3, .options = 0x1234};
    struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT), .active = rig_resolve(&rig->a, RIG_PORT)};
    assert_int_equal(service_connect(all.active, &parameters, &ece, rig->now), 0);
    rig_pass(rig, CM_REQ);
    const struct cm_event *request = rig_event(&rig->b, CM_CONNECT_REQUEST);
    assert_int_equal(request->uid, 0xb0);
    assert_int_equal(request->status, 0);
    assert_int_equal(request->parameters.qpn, 0x11);
    assert_int_equal(request->parameters.responder_resources, 5);
    assert_int_equal(request->parameters.initiator_depth, 3);
    assert_int_equal(request->parameters.retry_count, 7);
    assert_int_equal(request->parameters.rnr_retry_count, 6);
    assert_int_equal(request->parameters.private_length, 56);
    assert_string_equal((char *)request->parameters.private_data, "data");
    assert_int_equal(request->ece.vendor, 0xb1b2b3);
    assert_int_equal(request->ece.options, 0x1234);
    all.passive = identifier_find(&rig->b.manager, request->number);
    assert_int_equal(all.passive->source.port, RIG_PORT);
    assert_int_equal(all.passive->destination.port, all.active->source.port);
    assert_memory_equal(all.passive->destination.gid, rig->a.port.gid, 16);

    parameters = rig_parameters(0x22);
    parameters.responder_resources = 1;
    parameters.initiator_depth = 2;
    assert_int_equal(service_accept(all.passive, 0xc0, &parameters, &ece, rig->now), 0);
    rig_pass(rig, CM_REP);
    const struct cm_event *response = rig_event(&rig->a, CM_CONNECT_RESPONSE);
    assert_int_equal(response->uid, 0xa0);
    assert_int_equal(response->parameters.qpn, 0x22);
    assert_int_equal(response->parameters.responder_resources, 2);
    assert_int_equal(response->parameters.initiator_depth, 1);
    assert_int_equal(response->parameters.private_length, 196);
    assert_int_equal(response->ece.vendor, 0xb1b2b3);
    assert_int_equal(service_confirm(all.active, rig->now), 0);
    rig_pass(rig, CM_RTU);
    assert_int_equal(rig_event(&rig->b, CM_ESTABLISHED)->uid, 0xc0);
    rig_quiet(rig);
    rig_end(rig, &all);
}

/* --- each field of the messages that the program and the route decide */

static void a_request_has_the_path_of_its_route(void **state)
{
    static const struct {
        uint8_t hops;
        uint16_t remote_lid;
        bool local;
    } rows[] = {{64, 0xffff, false}, {2, 0xffff, false}, {1, 0, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig *rig = *state;
        struct cm_parameters parameters = rig_parameters(0x11);
        struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT), .active = rig_resolve(&rig->a, RIG_PORT)};
        struct cm_route *route = &all.active->route;
        route->hop_limit = rows[i].hops;
        route->flow_label = 0x12345;
        route->traffic_class = 0x68;
        route->lifetime = 20;
        assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
        const struct cm_path *path = &rig_next(rig, CM_REQ)->message.req.primary;
        assert_int_equal(path->local_lid, 0xffff);
        assert_int_equal(path->remote_lid, rows[i].remote_lid);
        assert_int_equal(path->subnet_local, rows[i].local);
        assert_int_equal(path->hop_limit, rows[i].hops);
        assert_int_equal(path->flow_label, 0x12345);
        assert_int_equal(path->traffic_class, 0x68);
        assert_int_equal(path->ack_timeout, 21);
        assert_memory_equal(path->local_gid, rig->a.port.gid, 16);
        assert_memory_equal(path->remote_gid, rig->b.port.gid, 16);
        rig_lose(rig, CM_REQ);
        rig_end(rig, &all);
    }
}

static void a_request_has_what_its_program_says(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0xff000011);
    struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT), .active = rig_resolve(&rig->a, RIG_PORT)};
    all.active->route.from.mtu = 4;
    assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
    const struct cm_message *message = &rig_next(rig, CM_REQ)->message;
    const struct cm_req *req = &message->req;
    assert_int_equal(message->transaction, 0x100000000 | message->local_id);
    assert_int_equal(req->service, (uint64_t)CM_SPACE_TCP << 16 | RIG_PORT);
    assert_int_equal(req->guid, rig->a.port.guid);
    assert_int_equal(req->qpn, 0x11);
    assert_int_equal(req->transport, CM_TRANSPORT_RC);
    assert_int_equal(req->responder_resources, 3);
    assert_int_equal(req->initiator_depth, 5);
    assert_int_equal(req->retry_count, 7);
    assert_int_equal(req->rnr_retry_count, 6);
    assert_int_equal(req->remote_response_timeout, 20);
    assert_int_equal(req->local_response_timeout, 20);
    assert_int_equal(req->max_cm_retries, MANAGER_RETRIES);
    assert_int_equal(req->pkey, 0xffff);
    assert_int_equal(req->mtu, 4);
    rig_lose(rig, CM_REQ);
    rig_end(rig, &all);
}

/* Programs read them in event->param.conn. */
static void flags_and_retries_come_to_the_other_program(void **state)
{
    for (unsigned flags = 0; flags < 4; flags++) {
        struct rig *rig = *state;
        struct cm_parameters parameters = rig_parameters(0x11), answer = rig_parameters(0x22);
        struct connected all = {.listener = rig_listen(&rig->b, RIG_PORT), .active = rig_resolve(&rig->a, RIG_PORT)};
        parameters.flow_control = answer.srq = flags & 1;
        parameters.srq = answer.flow_control = flags >> 1;
        answer.rnr_retry_count = 4;
        assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
        rig_pass(rig, CM_REQ);
        const struct cm_event *event = rig_event(&rig->b, CM_CONNECT_REQUEST);
        assert_int_equal(event->parameters.flow_control, flags & 1);
        assert_int_equal(event->parameters.srq, flags >> 1);
        all.passive = identifier_find(&rig->b.manager, event->number);
        assert_int_equal(service_accept(all.passive, 0xc0, &answer, &no_ece, rig->now), 0);
        rig_pass(rig, CM_REP);
        event = rig_event(&rig->a, CM_CONNECT_RESPONSE);
        assert_int_equal(event->parameters.flow_control, flags >> 1);
        assert_int_equal(event->parameters.srq, flags & 1);
        assert_int_equal(event->parameters.rnr_retry_count, 4);
        assert_int_equal(service_confirm(all.active, rig->now), 0);
        rig_pass(rig, CM_RTU);
        rig_event(&rig->b, CM_ESTABLISHED);
        rig_end(rig, &all);
    }
}

/* A refusal has the private data of the refusing end; if no end answered, the route says which one was asked. */
static void an_end_without_a_connection_says_what_is_known(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    rig_arrive(rig, &all);
    assert_int_equal(service_reject(all.passive, 0, "sorry", 6, rig->now), 0);
    rig_pass(rig, CM_REJ);
    const struct cm_event *event = rig_event(&rig->a, CM_REJECTED);
    assert_int_equal(event->status, CM_REJECT_CONSUMER);
    assert_int_equal(event->parameters.private_length, 148);
    assert_string_equal((char *)event->parameters.private_data, "sorry");
    rig_end(rig, &all);
    all = rig_start(rig);
    for (unsigned i = 0; i <= MANAGER_RETRIES; i++) {
        rig_lose(rig, CM_REQ);
        rig_no_event(&rig->a);
        rig_wait(rig, req_wait);
    }
    event = rig_event(&rig->a, CM_UNREACHABLE);
    assert_int_equal(event->status, -ETIMEDOUT);
    assert_memory_equal(event->route.gid, rig->b.port.gid, 16);
    assert_int_equal(event->parameters.private_length, 0);
    rig_settle(rig);
    rig_end(rig, &all);
}

static bool is_zero(const void *memory, size_t size)
{
    const uint8_t *bytes = memory;
    return !*bytes && !memcmp(bytes, bytes + 1, size - 1);
}

/* A request without IP addressing is AF_IB's, and has the packet's addresses. */
static void a_request_without_ip_addresses_is_from_the_packets(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    struct dispatch_datagram request = host_arrival(&rig->b, &rig->a, rig_next(rig, CM_REQ));
    request.route.neighbor = UINT32_MAX;
    assert_true(connect_requested(all.listener, &request.message, NULL, &request.route, rig->now));
    const struct cm_event *event = rig_event(&rig->b, CM_CONNECT_REQUEST);
    assert_int_equal(event->parameters.private_length, 92);
    all.passive = identifier_find(&rig->b.manager, event->number);
    assert_int_equal(all.passive->source.family, AF_IB);
    assert_memory_equal(all.passive->source.gid, rig->b.port.gid, 16);
    assert_int_equal(all.passive->destination.family, AF_IB);
    assert_memory_equal(all.passive->destination.gid, rig->a.port.gid, 16);
    assert_int_equal(all.passive->destination.port, 0);
    assert_true(is_zero(&all.passive->options, sizeof all.passive->options));
    rig_lose(rig, CM_REQ);
    rig_end(rig, &all);
}

static void a_request_without_memory_has_not_come(void **state)
{
    for (unsigned i = 1;; i++) {
        struct rig *rig = *state;
        struct connected all = rig_start(rig);
        struct dispatch_datagram request = host_arrival(&rig->b, &rig->a, rig_next(rig, CM_REQ));
        unsigned blocks = rig->b.blocks;
        rig->b.fail_after = i;
        bool had_memory = connect_requested(all.listener, &request.message, NULL, &request.route, rig->now);
        rig->b.fail_after = 0;
        if (!had_memory) {
            assert_int_equal(rig->b.blocks, blocks);
            rig_no_event(&rig->b);
            assert_int_equal(all.listener->account.requests, 0);
        } else {
            rig_event(&rig->b, CM_CONNECT_REQUEST);
            assert_true(i > 3); /* identifier, event and session */
        }
        rig_lose(rig, CM_REQ);
        rig_settle(rig);
        identifiers_destroy(&rig->b.manager, NULL, rig->now);
        all.listener = NULL;
        rig_end(rig, &all);
        if (had_memory)
            break;
        assert_true(i < 10);
    }
}

static struct ibv_qp_attr attributes(const struct identifier *identifier, enum ibv_qp_state state, int expected)
{
    struct ibv_qp_attr attr;
    int mask;
    assert_int_equal(attributes_of(identifier, state, &attr, &mask), 0);
    assert_int_equal(mask, expected);
    return attr;
}

static void queue_pairs_get_what_both_agreed_on(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    struct ibv_qp_attr rtr = attributes(all.active, IBV_QPS_RTR, 0x129181);
    struct ibv_qp_attr rts = attributes(all.active, IBV_QPS_RTS, 0x12e01);
    struct ibv_qp_attr peer_rtr = attributes(all.passive, IBV_QPS_RTR, 0x129181);
    struct ibv_qp_attr peer_rts = attributes(all.passive, IBV_QPS_RTS, 0x12e01);
    assert_int_equal(attributes(all.active, IBV_QPS_INIT, 0x39).qp_access_flags,
                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    assert_int_equal(rtr.dest_qp_num, 0x22);
    assert_int_equal(peer_rtr.dest_qp_num, 0x11);
    assert_int_equal(rtr.rq_psn, peer_rts.sq_psn);
    assert_int_equal(rts.sq_psn, peer_rtr.rq_psn);
    assert_int_not_equal(rts.sq_psn, rtr.rq_psn);
    assert_int_equal(rtr.path_mtu, 3);
    assert_int_equal(rts.timeout, 19);
    assert_int_equal(rts.retry_cnt, 7);
    assert_int_equal(rts.rnr_retry, 6);
    assert_int_equal(rtr.ah_attr.is_global, 1);
    assert_memory_equal(rtr.ah_attr.grh.dgid.raw, rig->b.port.gid, 16);
    assert_memory_equal(peer_rtr.ah_attr.grh.dgid.raw, rig->a.port.gid, 16);
    assert_int_equal(rtr.ah_attr.grh.hop_limit, 64);
    rig_end(rig, &all);
}

/* Fields and their values are as in a capture of rping over the kernel's rxe. */
static void disconnecting_takes_both_programs(void **state)
{
    struct rig *rig = *state;
    struct connected all = rig_connect(rig);
    assert_int_equal(service_disconnect(all.active, rig->now), 0);
    rig_pass(rig, CM_DREQ);
    rig_quiet(rig);
    assert_int_equal(rig_event(&rig->b, CM_DISCONNECTED)->status, 0);
    rig_no_event(&rig->a);
    assert_int_equal(service_disconnect(all.passive, rig->now), 0);
    rig_pass(rig, CM_DREP);
    assert_int_equal(rig_event(&rig->a, CM_DISCONNECTED)->status, 0);
    rig_wait(rig, 2048 * NANOS_MILLISECOND);
    rig_event(&rig->a, CM_TIMEWAIT_EXIT);
    rig_event(&rig->b, CM_TIMEWAIT_EXIT);
    rig_end(rig, &all);
}

static void nobody_listening_is_a_reject(void **state)
{
    struct rig *rig = *state;
    struct cm_parameters parameters = rig_parameters(0x11);
    struct connected all = {.active = rig_resolve(&rig->a, RIG_PORT)};
    assert_int_equal(service_connect(all.active, &parameters, &no_ece, rig->now), 0);
    rig_pass(rig, CM_REQ);
    rig_pass(rig, CM_REJ);
    assert_int_equal(rig_event(&rig->a, CM_REJECTED)->status, CM_REJECT_INVALID_SERVICE);
    rig_end(rig, &all);
}

/* REQs of hosts other than the peer, each with another communication ID, queue pair and GUID. */
static struct dispatch_datagram forge_request(struct rig *rig, const struct dispatch_datagram *sent, uint32_t number)
{
    struct dispatch_datagram forged = host_arrival(&rig->b, &rig->a, sent);
    forged.message.local_id += number;
    forged.message.req.qpn = number & 0xffffff;
    forged.message.req.guid += number;
    forged.message.transaction += number;
    forged.route.gid[15] ^= (uint8_t)number;
    return forged;
}

/* Sanitizers make a request cost twenty times as much. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FLOOD = 50000 };
#else
enum { FLOOD = 1000000 };
#endif

static void a_flood_of_requests_takes_no_more_than_the_backlog_and_no_answer(void **state)
{
    enum { REQUESTS = FLOOD, BACKLOG = 10 };
    struct rig *rig = *state;
    struct connected all = rig_start(rig);
    all.listener->backlog = BACKLOG;
    struct dispatch_datagram sent = *rig_next(rig, CM_REQ), answer;
    unsigned before = rig->b.blocks, full = 0;
    for (uint32_t number = 1; number <= REQUESTS; number++) {
        struct dispatch_datagram forged = forge_request(rig, &sent, number);
        assert_false(dispatch_receive(&rig->b.manager, &forged, &answer, rig->now));
        full = number == BACKLOG ? rig->b.blocks : full;
    }
    assert_int_equal(all.listener->account.requests, BACKLOG);
    assert_int_equal(rig->b.blocks, full);
    assert_true(full - before <= 4 * BACKLOG);
    assert_int_equal(rig->b.dropped[REASON_CM_BACKLOG - REASON_CM_BACKLOG], REQUESTS - BACKLOG);
    rig_lose(rig, CM_REQ);
    rig_quiet(rig);
    rig_end(rig, &all);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_free)
TESTS_OF(TEST, both_ends_hear_what_the_other_said,
               a_request_has_the_path_of_its_route,
               a_request_has_what_its_program_says,
               flags_and_retries_come_to_the_other_program,
               an_end_without_a_connection_says_what_is_known,
               a_request_without_ip_addresses_is_from_the_packets,
               a_request_without_memory_has_not_come,
               queue_pairs_get_what_both_agreed_on,
               disconnecting_takes_both_programs,
               nobody_listening_is_a_reject,
               a_flood_of_requests_takes_no_more_than_the_backlog_and_no_answer)
