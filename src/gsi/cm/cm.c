#include "gsi/cm/cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/container.h"
#include "base/static_lock.h"
#include "base/text/text.h"
#include "base/time_scale.h"
#include "cm/connection.h"
#include "config/config.h"
#include "config/gid.h"
#include "config/settings.h"
#include "diag/log.h"
#include "gsi/cleanup/cleanup.h"
#include "gsi/cm/cm_address.h"
#include "gsi/cm/cm_refusal.h"
#include "gsi/cm/cm_send.h"
#include "gsi/served.h"
#include "ipc/ports.h"
#include "runtime/clock.h"
#include "script/rules.h"
#include "tap/traffic.h"
#include "wire/op.h"

enum { IP_SERVICES = 1 /* the upper 40 bits of the service ID of an IP service (annex A11) */ };

static const nanos retry_after = NANOS_MILLISECOND; /* the wait of a message that found no room, or no listener */
static const nanos listener_timeout = 50 * NANOS_MILLISECOND; /* how long a request waits for a listener */
static const nanos partner_timeout = NANOS_SECOND;            /* how long, if its host has a session here already */

static struct cm *cm_of(struct manager *manager)
{
    return container_of(manager, struct cm, manager);
}

/* --- what the engine asks of its owner */

static void *allocate(struct manager *manager, size_t size)
{
    return calloc(1, size);
}

static void cm_release(struct manager *manager, void *memory)
{
    free(memory);
}

static int find_port(struct manager *manager, const struct cm_address *address, struct cm_port *port)
{
    return cm_address_port(address, port);
}

/* Returns true if a script wants this search (`happening`) for the address to get no answer. */
static bool is_lost(enum script_call happening, const struct cm_address *address)
{
    char name[INET6_ADDRSTRLEN];
    bool ipv4 = cm_is_mapped(address->gid);
    if (!rules_wants(happening))
        return false;
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address->gid + (ipv4 ? 12 : 0), name, sizeof name);
    struct script_verdict verdict = rules_apply((struct script_event){.call = happening, .peer = name});
    return verdict_has(&verdict, SCRIPT_DROP);
}

static bool loses(struct manager *manager, unsigned kind, const struct cm_address *address)
{
    return is_lost(kind == CM_ROUTE_ERROR ? SCRIPT_route : SCRIPT_group, address);
}

static int find_route(struct manager *manager, const struct cm_port *from, struct cm_address *source,
                      const struct cm_address *destination, struct cm_route *route)
{
    return is_lost(SCRIPT_address, destination) ? EAGAIN : cm_address_route(from, source, destination, route);
}

static nanos linger(struct manager *manager)
{
    if (!rules_wants(SCRIPT_timewait))
        return 0;
    return rules_apply((struct script_event){.call = SCRIPT_timewait}).delay;
}

/* The range from which the kernel gives ports to sockets. */
static struct ports_range read_range(void)
{
    char text[32];
    unsigned low = 0, high = 0;
    text_read_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_local_port_range", text, sizeof text);
    if (sscanf(text, "%u %u", &low, &high) != 2)
        low = high = 0;
    return low && low <= high && high <= UINT16_MAX ? (struct ports_range){(uint16_t)low, (uint16_t)high}
                                                    : (struct ports_range){32768, 60999};
}

static int bind_port(struct manager *manager, struct identifier *identifier)
{
    struct ports_range range = identifier->source.port ? (struct ports_range){1, 1} : read_range();
    struct port_claim claim = {.space = identifier->port_space,
                               .port = identifier->source.port,
                               .reuse = identifier->options.reuse,
                               .only_family = identifier->options.only_family,
                               .source = identifier->source};
    uint32_t entry;
    int error = ports_bind(cm_of(manager)->process->node, &range, &claim, &entry);
    if (error)
        return cm_refusal_of_port(error, identifier);
    identifier->source.port = claim.port;
    identifier->reservation = entry;
    return 0;
}

static int listen_port(struct manager *manager, struct identifier *identifier)
{
    int error = ports_listen(cm_of(manager)->process->node, (uint32_t)identifier->reservation);
    return error ? cm_refusal_of_port(error, identifier) : 0;
}

static void release_port(struct manager *manager, struct identifier *identifier)
{
    ports_release(cm_of(manager)->process->node, (uint32_t)identifier->reservation);
}

static void drop(struct manager *manager, enum reason reason, const struct identifier *identifier,
                 const struct cm_message *message)
{
    cm_note_unused(&cm_of(manager)->counts, reason, identifier, message);
}

static void note_event(struct manager *manager, uint32_t communication_id, enum event event, uint64_t a, uint64_t b)
{
    const char *was = connection_state_name((enum connection_state)a);
    const char *now = connection_state_name((enum connection_state)b);
    event_say(communication_id, event, (uintptr_t)was, (uintptr_t)now, "%s to %s", was, now);
}

static void note_identifier(struct manager *manager, struct identifier *identifier, enum event event, uint64_t a,
                            uint64_t b)
{
    cm_note_identifier(cm_of(manager), identifier, event, a, b);
}

static void note_session(struct manager *manager, struct session *session)
{
    cleanup_note(&cm_of(manager)->cleanup, cm_of(manager)->process, session, clock_about_now());
}

static void forget_session(struct manager *manager, struct session *session)
{
    cleanup_forget(cm_of(manager)->cleanup, session);
}

static const struct manager_operations operations = {.allocate = allocate,
                                                     .release = cm_release,
                                                     .find_port = find_port,
                                                     .find_route = find_route,
                                                     .loses = loses,
                                                     .bind_port = bind_port,
                                                     .listen_port = listen_port,
                                                     .release_port = release_port,
                                                     .note = note_session,
                                                     .forget = forget_session,
                                                     .refuse = cm_refusal_write,
                                                     .drop = drop,
                                                     .linger = linger,
                                                     .event = note_event,
                                                     .happened = note_identifier};

/* --- joining and leaving */

static void expired(struct timer *, nanos now);

MUTEX_STATIC(joining, LOCK_CM_JOINING);

static int cm_make(struct process *process, struct cm **to)
{
    struct manager_settings settings = {.buckets = NULL};
    struct cm *cm = calloc(1, sizeof *cm);
    if (!cm)
        return ENOMEM;
    lock_set_rank(&cm->lock, LOCK_CM);
    schedule_initialize_timer(&cm->timer, expired);
    int error = node_claim_numbers(process->node, NODE_NUMBERS, &cm->first_id);
    if (!error && (getrandom(&settings.seed, sizeof settings.seed, 0) != sizeof settings.seed ||
                   getrandom(&settings.agent, sizeof settings.agent, 0) != sizeof settings.agent))
        error = EIO;
    if (error) {
        free(cm);
        return error;
    }
    settings.buckets = cm->buckets;
    settings.first_id = cm->first_id;
    settings.retries = (uint8_t)setting_number(SETTING_CM_RETRIES);
    cm->process = process;
    manager_initialize(&cm->manager, &operations, &settings);
    *to = cm;
    return 0;
}

/* Opens the ports of all devices: a program that listens at all addresses of the host gets the requests for each of
 * them, even if it has opened no device. A port that can't be opened is logged, and opening its device will be
 * refused. */
static void open_ports(struct process *process)
{
    mutex_take(&process->control);
    CONFIG_EACH (device)
        served_open(process, device);
    mutex_release(&process->control);
}

/* The connection manager lives as long as the process, which counts its users. */
int cm_join(struct cm **to, const struct process_parts *parts)
{
    struct process *process = process_join(parts);
    if (!process)
        return errno;
    mutex_take(&joining);
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    int error = cm ? 0 : cm_make(process, &cm);
    if (!error && !atomic_load(&process_objects(process)->cm)) {
        atomic_store(&process_objects(process)->cm, cm);
        atomic_store(&process->loop.departed, &cm->timer);
        open_ports(process);
    }
    mutex_release(&joining);
    *to = cm;
    if (error)
        process_leave(process);
    return error;
}

void cm_leave(struct cm *cm)
{
    process_leave(cm->process);
}

void cm_destroy(struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (!cm)
        return;
    manager_end(&cm->manager);
    cleanup_end(&cm->cleanup);
    cm_neighbors_forget(&cm->neighbors, process->node);
    free(cm);
}

void cm_lock(struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (cm)
        lock_take(&cm->lock);
}

void cm_unlock(struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (cm)
        lock_release(&cm->lock);
}

void cm_inherit(struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (cm)
        cleanup_end(&cm->cleanup);
}

void cm_say_goodbye(struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (!cm)
        return;
    cm_begin(cm);
    cm_note_end(cm);
    identifiers_destroy(&cm->manager, NULL, clock_now());
    cm_end(cm);
}

static void add_event_of_device(struct process *process, unsigned device, enum cm_event_kind kind)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (!cm)
        return;
    cm_begin(cm);
    identifiers_event_of_device(&cm->manager, device, kind);
    cm_end(cm);
}

void cm_remove_device(struct process *process, unsigned device)
{
    add_event_of_device(process, device, CM_DEVICE_REMOVAL);
}

void cm_change_address(struct process *process, unsigned device)
{
    add_event_of_device(process, device, CM_ADDR_CHANGE);
}

bool cm_is_inherited(const struct cm *cm)
{
    return cm->process->forked;
}

bool cm_is_over(const struct cm *cm)
{
    return cm->process->forked && !cm->process->inherited;
}

/* --- in and out */

/* Keeps a request for a moment until it has a listener. Programs agree over a first connection to make a second one,
 * and then the program that connects may be faster than the one that listens. On a network the way takes some time;
 * within a host the request would be rejected. */
static void wait_for_listener(struct cm *cm, const struct dispatch_datagram *request)
{
    cm->early[cm->early_count].datagram = *request;
    cm->early[cm->early_count++].until = clock_now() + listener_timeout;
}

/* Makes the session of the message lead to the process that took it. */
static void note_neighbor(struct cm *cm, const struct cm_message *message, struct peer *peer)
{
    struct session *session = manager_find_local(&cm->manager, message->local_id);
    if (session)
        session->route.neighbor = cm_neighbors_number(&cm->neighbors, cm->process->node, peer);
    node_put(cm->process->node, peer);
}

static enum cm_sent send_one(struct cm *cm, const struct dispatch_datagram *datagram, bool insist)
{
    struct peer *to, *partner = cm_neighbors_find(&cm->neighbors, datagram->route.neighbor);
    enum cm_sent sent = cm_send(cm->process, datagram, partner, insist, &to);
    if (to)
        note_neighbor(cm, &datagram->message, to);
    return sent == CM_UNSENT ? CM_SENT : sent; /* lost, as on a network */
}

static bool is_withdrawn(const struct cm *cm, const struct dispatch_datagram *request)
{
    const struct session *session = manager_find_local(&cm->manager, request->message.local_id);
    return !session || !session->identifier;
}

static void retry_early(struct cm *cm, nanos now)
{
    for (unsigned i = 0; i < cm->early_count;) {
        const struct dispatch_datagram *request = &cm->early[i].datagram;
        if (is_withdrawn(cm, request) || send_one(cm, request, now >= cm->early[i].until) == CM_SENT)
            cm->early[i] = cm->early[--cm->early_count];
        else
            i++;
    }
}

/* Sends what the engine has to send. A message for which its link has no room holds up the others for a moment. */
static void cm_flush(struct cm *cm)
{
    while (cm->has_stuck || dispatch_transmit(&cm->manager, &cm->stuck)) {
        enum cm_sent sent = send_one(cm, &cm->stuck, cm->early_count == CM_EARLY_MAX);
        cm->has_stuck = sent == CM_NO_ROOM;
        if (cm->has_stuck)
            return;
        if (sent == CM_NOBODY)
            wait_for_listener(cm, &cm->stuck);
    }
}

static nanos next_look(const struct cm *cm, nanos now)
{
    nanos deadline = dispatch_deadline(&cm->manager);
    if (cm->neighbors.departures != node_departures(cm->process->node))
        return now;
    bool soon = cm->has_stuck || cm->early_count || cm->waiting.count;
    return soon && now + retry_after < deadline ? now + retry_after : deadline;
}

void cm_begin(struct cm *cm)
{
    lock_take(&cm->lock);
}

void cm_end(struct cm *cm)
{
    cm_flush(cm);
    nanos deadline = next_look(cm, clock_now());
    lock_release(&cm->lock);
    schedule_by(&cm->process->schedule, &cm->timer, deadline);
}

/* Finds the device that a packet is for, and its sender. */
static bool find_way(const struct packet *packet, struct cm_route *route)
{
    union ibv_gid source, destination;
    *route = (struct cm_route){.neighbor = CM_NOWHERE, .hop_limit = 64};
    gid_from_grh(packet->grh, &source, &destination);
    memcpy(route->gid, source.raw, 16);
    return cm_address_of_gid(destination.raw, &route->from);
}

/* Gives a message to the engine. A script may lose a request, or reject it instead of the program that listens. */
static bool take_datagram(struct cm *cm, const struct dispatch_datagram *datagram, struct dispatch_datagram *reply,
                          nanos now)
{
    struct script_verdict verdict = {0};
    if (datagram->message.attribute == CM_REQ && rules_wants(SCRIPT_request))
        verdict = rules_apply((struct script_event){.call = SCRIPT_request});
    if (verdict_has(&verdict, SCRIPT_DROP))
        return false;
    const struct script_rejection *by = &verdict.rejection;
    return by->wanted ? dispatch_reject(datagram, reply, by->reason, by->data, strlen(by->data))
                      : dispatch_receive(&cm->manager, datagram, reply, now);
}

void cm_receive(struct process *process, struct peer *peer, const struct packet *packet)
{
    lock_assert_held(&process->progress);
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    struct dispatch_datagram datagram, reply;
    if (!cm || !packet->grh || !cm_read_packet(packet, &datagram.message) || !find_way(packet, &datagram.route))
        return;
    traffic_managed(&process->traffic, packet, NULL);
    cm_begin(cm);
    cm_note_received(&cm->counts, &datagram.message);
    datagram.route.neighbor = cm_neighbors_number(&cm->neighbors, process->node, peer);
    if (take_datagram(cm, &datagram, &reply, clock_now()))
        send_one(cm, &reply, true);
    cm_end(cm);
}

/* Only a request for an IP service waits: others have no listener that could appear soon. */
bool cm_wait(struct process *process, const struct udp_arrival *arrival, const struct cm_message *message)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    struct dispatch_datagram datagram = {.message = *message};
    uint64_t service = message->attribute == CM_REQ ? message->req.service : message->sidr_req.service;
    if (!cm || service >> 24 != IP_SERVICES || !find_way(arrival->packet, &datagram.route))
        return false;
    cm_begin(cm);
    nanos partner = time_scaled(partner_timeout); /* the sender of a request waits longer for an answer */
    bool long_known = partner > listener_timeout && dispatch_knows(&cm->manager, datagram.route.gid);
    nanos until = clock_now() + (long_known ? partner : listener_timeout);
    bool waits = cm_waiting_add(&cm->waiting, &datagram, arrival, until);
    cm_end(cm);
    return waits;
}

static void retry_waiting(struct cm *cm, nanos now)
{
    struct dispatch_datagram request, reply;
    while (cm_waiting_next(&cm->waiting, cm->process, &request, now))
        if (take_datagram(cm, &request, &reply, now))
            send_one(cm, &reply, true);
}

/* Returns true for a message of a connection, or a request. Under cm->lock. */
static bool is_known(const struct cm *cm, const struct cm_message *message)
{
    return !cm_is_reply(message->attribute) || !message->remote_id ||
           manager_find_local(&cm->manager, message->remote_id);
}

enum cm_taken cm_receive_remote(struct process *process, const struct packet *packet, const struct cm_message *message,
                                struct cm_message *answer)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    struct dispatch_datagram datagram = {.message = *message}, reply;
    if (!cm || !find_way(packet, &datagram.route))
        return CM_UNKNOWN;
    cm_begin(cm);
    bool known = is_known(cm, message);
    cm_note_received(&cm->counts, message);
    bool answers = take_datagram(cm, &datagram, &reply, clock_now());
    cm_end(cm);
    if (answers)
        *answer = reply.message;
    return answers ? CM_ANSWER : known ? CM_TAKEN : CM_UNKNOWN;
}

/* Does everything that is due in neighbors, dispatch and waiting requests. */
static void expired(struct timer *timer, nanos now)
{
    struct cm *cm = container_of(timer, struct cm, timer.timer);
    lock_assert_held(&cm->process->progress);
    lock_take(&cm->lock);
    cm_neighbors_check(&cm->neighbors, cm->process->node, &cm->manager, now);
    dispatch_expire(&cm->manager, now);
    if (cm->early_count)
        retry_early(cm, now);
    retry_waiting(cm, now);
    cm_flush(cm);
    nanos deadline = next_look(cm, now);
    lock_release(&cm->lock);
    schedule_by(&cm->process->schedule, &cm->timer, deadline);
}
