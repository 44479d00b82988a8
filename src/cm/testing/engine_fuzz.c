/* libFuzzer: a host whose programs do what the bytes say, in any order, and which gets messages that the bytes make up:
 * from nothing, or by changing what it sent itself (both its addresses are its own, so it talks with itself), and time.
 * For all inputs, events are counted exactly, memory is bounded, and nothing is left when all identifiers are destroyed
 * and the timers have run out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/address/address_query.h"
#include "cm/address/route_query.h"
#include "cm/queue_pair/attributes.h"
#include "cm/service.h"
#include "cm/testing/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { IDENTIFIERS = 8, KEPT = 4, BACKLOG = 3, STEPS_MOST = 400 };

struct input {
    const uint8_t *at, *end;
};

struct bench {
    struct host host;
    struct input input;
    nanos now;
    uint32_t numbers[IDENTIFIERS]; /* numbers of possible identifiers */
    unsigned fetched[IDENTIFIERS];
    struct dispatch_datagram kept[KEPT]; /* the datagrams that were sent last */
    unsigned sent;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static uint8_t next_byte(struct input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static void next_bytes(struct input *input, void *to, size_t length)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)to)[i] = next_byte(input);
}

/* --- what programs do */

static struct identifier *choose(struct bench *bench, unsigned *index)
{
    *index = next_byte(&bench->input) % IDENTIFIERS;
    return identifier_find(&bench->host.manager, bench->numbers[*index]);
}

static struct cm_address draw_address(struct bench *bench)
{
    uint8_t what = next_byte(&bench->input);
    struct cm_address address = {.family = AF_INET, .port = what & 3 ? 7000 + (what & 3) : 0};
    memcpy(address.gid, bench->host.port.gid, 16);
    if (what & 4)
        address = cm_any(what & 8 ? AF_INET6 : AF_INET);
    if (what & 16)
        address.gid[15] ^= 1;
    return address;
}

static struct cm_parameters draw_parameters(struct bench *bench)
{
    struct cm_parameters parameters = {.private_length = next_byte(&bench->input), .qpn = next_byte(&bench->input)};
    next_bytes(&bench->input, parameters.private_data, 4);
    return parameters;
}

static void create(struct bench *bench)
{
    static const uint16_t spaces[] = {CM_SPACE_TCP, CM_SPACE_UDP, CM_SPACE_IB, CM_SPACE_TCP};
    struct identifier *identifier, *old;
    uint8_t what = next_byte(&bench->input);
    unsigned index;
    old = choose(bench, &index);
    if (old)
        return;
    if (!identifier_create(&bench->host.manager, &bench->host.queue, 1 + index, spaces[what & 3], what >> 4,
                           &identifier)) {
        bench->numbers[index] = identifier_number(identifier);
        bench->fetched[index] = 0;
    }
}

static void destroy(struct bench *bench, unsigned index)
{
    struct identifier *identifier = identifier_find(&bench->host.manager, bench->numbers[index]);
    if (identifier)
        require(identifier_destroy(identifier, bench->now) == bench->fetched[index]);
    bench->numbers[index] = UINT32_MAX;
    bench->fetched[index] = 0;
}

/* A new identifier replaces a destroyed one, or an identifier is destroyed. */
static void adopt(struct bench *bench, uint32_t number)
{
    for (unsigned i = 0; i < IDENTIFIERS; i++)
        if (!identifier_find(&bench->host.manager, bench->numbers[i])) {
            bench->numbers[i] = number;
            bench->fetched[i] = 0;
            return;
        }
    struct identifier *identifier = identifier_find(&bench->host.manager, number);
    require(identifier);
    require(identifier_destroy(identifier, bench->now) == 0);
}

static void fetch(struct bench *bench)
{
    struct cm_event *event = event_fetch(&bench->host.queue);
    if (!event)
        return;
    bench->host.signalled--;
    struct identifier *known = NULL;
    for (unsigned i = 0; i < IDENTIFIERS; i++) {
        struct identifier *identifier = identifier_find(&bench->host.manager, bench->numbers[i]);
        if (!identifier || event->account != &identifier->account)
            continue;
        known = identifier;
        bench->fetched[i]++;
    }
    require(known);
    uint32_t number = event->number;
    bool request = event->kind == CM_CONNECT_REQUEST;
    bench->host.manager.operations->release(&bench->host.manager, event);
    if (request)
        adopt(bench, number);
}

static void command(struct bench *bench, uint8_t which)
{
    static const struct cm_address none;
    struct cm_ece ece = {1, 2};
    struct ibv_qp_attr attr;
    unsigned index;
    int mask;
    struct identifier *identifier = choose(bench, &index);
    if (!identifier)
        return;
    struct cm_address address = draw_address(bench);
    struct cm_parameters parameters = draw_parameters(bench);
    switch (which) {
    case 0:
        identifier_bind(identifier, &address);
        break;
    case 1:
        address_query_start(identifier, &none, &address, 100, bench->now);
        break;
    case 2:
        route_query_start(identifier, 1, bench->now);
        break;
    case 3:
        service_connect(identifier, &parameters, &ece, bench->now);
        break;
    case 4:
        if (!identifier_listen(identifier, BACKLOG, bench->now))
            require(identifier->backlog == BACKLOG);
        break;
    case 5:
        service_accept(identifier, 1 + index, &parameters, &ece, bench->now);
        break;
    case 6:
        service_confirm(identifier, bench->now);
        break;
    case 7:
        service_reject(identifier, 0, parameters.private_data, parameters.private_length, bench->now);
        break;
    case 8:
        service_disconnect(identifier, bench->now);
        break;
    case 9:
        service_notify(identifier, IBV_EVENT_COMM_EST, bench->now);
        break;
    case 10:
        attributes_of(identifier, parameters.qpn & 7, &attr, &mask);
        break;
    default:
        destroy(bench, index);
    }
}

/* --- the wire */

static void keep_output(struct bench *bench)
{
    struct dispatch_datagram datagram;
    while (dispatch_transmit(&bench->host.manager, &datagram))
        bench->kept[bench->sent++ % KEPT] = datagram;
}

static void deliver(struct bench *bench, const struct dispatch_datagram *sent)
{
    struct dispatch_datagram reply, datagram = host_arrival(&bench->host, &bench->host, sent);
    if (next_byte(&bench->input) % 8 == 0)
        datagram.route.gid[15] ^= 1;
    if (dispatch_receive(&bench->host.manager, &datagram, &reply, bench->now))
        bench->kept[bench->sent++ % KEPT] = reply;
}

/* Receives one of the last sent messages, with some bytes changed. */
static void receive_kept(struct bench *bench)
{
    struct dispatch_datagram datagram = bench->kept[next_byte(&bench->input) % KEPT];
    uint8_t raw[MAD_BYTES];
    if (!bench->sent)
        return;
    cm_encode(&datagram.message, raw);
    for (unsigned changes = next_byte(&bench->input) % 4; changes; changes--) {
        uint8_t at = next_byte(&bench->input);
        raw[at] = next_byte(&bench->input);
    }
    if (cm_decode(raw, sizeof raw, &datagram.message) == CM_FINE)
        deliver(bench, &datagram);
}

static void receive_made_up(struct bench *bench)
{
    struct dispatch_datagram datagram = {.route = {.hop_limit = 1}};
    uint8_t raw[MAD_BYTES] = {1, 7, 2, 3};
    raw[17] = (uint8_t)(CM_REQ + next_byte(&bench->input) % 11);
    next_bytes(&bench->input, raw + 24, 40);
    next_bytes(&bench->input, raw + 24 + 140, 4);
    if (cm_decode(raw, sizeof raw, &datagram.message) == CM_FINE)
        deliver(bench, &datagram);
}

static void pass_time(struct bench *bench)
{
    nanos deadline = dispatch_deadline(&bench->host.manager);
    if (deadline != NANOS_NEVER && deadline > bench->now)
        bench->now = deadline;
    dispatch_expire(&bench->host.manager, bench->now);
}

static void step(struct bench *bench)
{
    uint8_t what = next_byte(&bench->input) % 20;
    if (what < 12)
        command(bench, what);
    else if (what < 14)
        create(bench);
    else if (what < 15)
        fetch(bench);
    else if (what < 16)
        pass_time(bench);
    else if (what < 18)
        receive_kept(bench);
    else
        receive_made_up(bench);
    keep_output(bench);
    require(bench->host.signalled == bench->host.queue.count);
    /* an identifier, its session, requests in the backlog with theirs, and events that a program may never fetch */
    require(bench->host.manager.sessions <= STEPS_MOST);
}

static void end(struct bench *bench)
{
    identifiers_destroy(&bench->host.manager, NULL, bench->now);
    keep_output(bench);
    for (unsigned i = 0; i < STEPS_MOST && dispatch_deadline(&bench->host.manager) != NANOS_NEVER; i++) {
        pass_time(bench);
        keep_output(bench);
    }
    require(!bench->host.blocks && !bench->host.port_count && !bench->host.manager.sessions);
    require(!bench->host.queue.count && !bench->host.signalled);
    require(dispatch_deadline(&bench->host.manager) == NANOS_NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct bench bench;
    memset(&bench, 0, sizeof bench);
    bench.input = (struct input){bytes, bytes + length};
    bench.now = NANOS_SECOND;
    memset(bench.numbers, 0xff, sizeof bench.numbers);
    host_make(&bench.host, 1);
    for (unsigned i = 0; i < STEPS_MOST && bench.input.at < bench.input.end; i++)
        step(&bench);
    end(&bench);
    host_free(&bench.host);
    return 0;
}
