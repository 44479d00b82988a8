#include "gsi/cleanup/cleanup_goodbye.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "config/gid.h"
#include "gsi/cm/cm_send.h"
#include "link/udp/udp.h"
#include "wire/wire.h"

enum { PORTS = 16, BUDGET = 256, NAP_MILLISECONDS = 50 };

static const nanos hurried = NANOS_SECOND; /* the longest time after a SIGTERM */
static const nanos sends_at[] = {0,
                                 100 * NANOS_MILLISECOND,
                                 400 * NANOS_MILLISECOND,
                                 NANOS_SECOND,
                                 2 * NANOS_SECOND,
                                 4 * NANOS_SECOND}; /* when a DREQ is sent, after the end of the program */
enum { SENDS = sizeof sends_at / sizeof *sends_at, DREP_SENDS = 3 /* two may be lost */ };

/* A session that the program had at its end. */
struct left {
    const struct cleanup_record *record;
    struct cm_message message; /* the message that is sent */
    unsigned sends, most;      /* how often it was sent, and how often it is sent at most */
    nanos begun;               /* when it was sent first, as time since the end of the program */
    bool listens;              /* the answer to a DREQ may arrive, or the peer's DREQ */
};

struct farewell {
    struct left *left;
    unsigned count;
    nanos now;                  /* since the end of the program */
    struct udp_port *receiving; /* NULL: no message can arrive any more */
    struct {                    /* a port for each interface through which messages are sent */
        unsigned interface;
        struct udp_port *port;
    } ports[PORTS];
    unsigned port_count;
};

/* --- sending */

static struct udp_port *find_sender(struct farewell *farewell, unsigned interface)
{
    for (unsigned i = 0; i < farewell->port_count; i++)
        if (farewell->ports[i].interface == interface)
            return farewell->ports[i].port;
    struct udp_port *port;
    if (farewell->port_count == PORTS || udp_open_last(&port, interface))
        return NULL;
    farewell->ports[farewell->port_count].interface = interface;
    farewell->ports[farewell->port_count++].port = port;
    return port;
}

/* A packet that has no room now is lost, as on a network. */
static void send_on(struct link *link, const struct cm_packet *made)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct frame frame = {.kind = FRAME_ROCE, .headers = headers, .payload = made->packet.payload};
    frame.headers_length = (uint16_t)wire_encode(&made->packet, headers);
    link->operations->begin(link);
    if (link->operations->ready(link))
        link->operations->send(link, &frame);
    link->operations->end(link);
    link->operations->close(link);
}

static void send_to(struct farewell *farewell, const struct cleanup_record *record, const struct cm_message *message)
{
    struct cm_packet made;
    struct udp_port *port = find_sender(farewell, record->interface);
    struct udp_route route = {.apart = true};
    struct dispatch_datagram datagram = {.message = *message};
    memcpy(route.source, record->source, 16);
    memcpy(route.destination, record->destination, 16);
    struct link *link = port ? udp_connect(port, &route) : NULL;
    if (!link)
        return;
    cm_make_packet(&datagram, &made);
    send_on(link, &made);
}

/* A DREQ is repeated until it is answered. A DREP is repeated without a repeated DREQ, as no process may be there to
 * answer that; other messages are sent once, as kernels do. */
static void begin_sending(struct left *left, nanos since_end)
{
    uint16_t attribute = left->message.attribute;
    left->sends = 0;
    left->most = attribute == CM_DREQ ? SENDS : attribute == CM_DREP ? DREP_SENDS : 1;
    left->listens = attribute == CM_DREQ;
    left->begun = since_end;
}

static bool is_over(const struct left *left)
{
    return !left->listens && left->sends == left->most;
}

static void send_what_is_due(struct farewell *farewell, nanos since_end)
{
    for (unsigned i = 0; i < farewell->count; i++) {
        struct left *left = &farewell->left[i];
        if (left->sends == left->most || since_end - left->begun < sends_at[left->sends])
            continue;
        send_to(farewell, left->record, &left->message);
        left->sends++;
    }
}

/* --- receiving */

static bool is_of(const struct cleanup_record *record, const struct udp_arrival *arrival,
                  const struct cm_message *message)
{
    union ibv_gid source, destination;
    gid_from_grh(arrival->packet->grh, &source, &destination);
    return record->remote_id && record->local_id == message->remote_id && record->remote_id == message->local_id &&
           !memcmp(record->destination, &source, 16) && !memcmp(record->source, &destination, 16);
}

static struct left *find_left(const struct farewell *farewell, const struct udp_arrival *arrival,
                              const struct cm_message *message)
{
    for (unsigned i = 0; i < farewell->count; i++)
        if (is_of(farewell->left[i].record, arrival, message))
            return &farewell->left[i];
    return NULL;
}

static bool cleanup_take(void *context, const struct udp_arrival *arrival)
{
    struct cm_message message;
    struct farewell *farewell = context;
    if (!cm_read_packet(arrival->packet, &message) || (message.attribute != CM_DREQ && message.attribute != CM_DREP))
        return false;
    struct left *left = find_left(farewell, arrival, &message);
    if (!left)
        return false;
    left->sends = left->most;
    left->listens = false;
    if (message.attribute == CM_DREP)
        return false;
    left->message = (struct cm_message){.attribute = CM_DREP,
                                        .transaction = message.transaction,
                                        .local_id = message.remote_id,
                                        .remote_id = message.local_id};
    begin_sending(left, farewell->now);
    return false;
}

static void cleanup_drop(void *context, const struct udp_refusal *refusal)
{
}

/* --- from the end of the program to the last answer */

static bool read_record(struct left *left, const struct cleanup_record *record)
{
    uint8_t mad[MAD_BYTES] = {0};
    uint32_t state = atomic_load(&record->state);
    memcpy(mad, record->goodbye, sizeof record->goodbye);
    *left = (struct left){.record = record, .listens = state == CLEANUP_SILENT && record->remote_id};
    if (state == CLEANUP_GOODBYES && cm_decode(mad, sizeof mad, &left->message) == CM_FINE)
        begin_sending(left, 0);
    return !is_over(left);
}

static void read_all(struct farewell *farewell, const struct cleanup_shared *shared)
{
    for (unsigned i = 0; i < CLEANUP_SESSIONS; i++)
        farewell->count += read_record(&farewell->left[farewell->count], &shared->records[i]);
}

static bool is_told_to_end(void)
{
    sigset_t pending;
    return !sigpending(&pending) && sigismember(&pending, SIGTERM);
}

/* Returns true if sessions are left, or, if `owing`, sessions with a message for their peer. */
static bool has_left(const struct farewell *farewell, bool owing)
{
    for (unsigned i = 0; i < farewell->count; i++)
        if (!is_over(&farewell->left[i]) && (farewell->left[i].most || !owing))
            return true;
    return false;
}

static bool has_listeners(const struct farewell *farewell)
{
    for (unsigned i = 0; i < farewell->count; i++)
        if (farewell->left[i].listens)
            return true;
    return false;
}

static bool may_end(const struct farewell *farewell, nanos since_end)
{
    bool told = is_told_to_end();
    return since_end >= CLEANUP_TIMEOUT * NANOS_SECOND || !has_left(farewell, told) || (told && since_end >= hurried);
}

/* Gives the UDP port up when no message can arrive any more, as another user may want it. Sending does not need it. */
static void listen_for_answers(struct farewell *farewell)
{
    if (has_listeners(farewell))
        udp_listen_last(farewell->receiving);
    else if (farewell->receiving) {
        udp_close(farewell->receiving);
        farewell->receiving = NULL;
    }
}

static void look_for_answers(struct farewell *farewell)
{
    struct pollfd socket = {.fd = farewell->receiving ? udp_fd(farewell->receiving) : -1, .events = POLLIN};
    if (poll(&socket, 1, NAP_MILLISECONDS) > 0)
        udp_woken(farewell->receiving);
    if (farewell->receiving)
        udp_receive(farewell->receiving, cleanup_take, cleanup_drop, farewell, BUDGET);
}

void cleanup_say_goodbye(const struct cleanup_shared *shared, nanos (*clock)(void))
{
    struct farewell farewell = {.left = calloc(CLEANUP_SESSIONS + 1, sizeof *farewell.left)};
    nanos end = clock();
    if (!farewell.left || udp_open_last(&farewell.receiving, 0))
        return;
    read_all(&farewell, shared);
    for (nanos now = end; !may_end(&farewell, now - end); now = clock()) {
        farewell.now = now - end;
        listen_for_answers(&farewell);
        send_what_is_due(&farewell, farewell.now);
        look_for_answers(&farewell);
    }
}
