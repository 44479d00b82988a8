#include "gsi/cm/cm_report.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/container.h"
#include "base/lock.h"
#include "base/read_clock.h"
#include "cm/connect.h"
#include "cm/identifier.h"
#include "cm/resolve.h"
#include "config/config.h"
#include "diag/clean.h"
#include "events/last_events.h"
#include "events/lines.h"
#include "facts/fill.h"
#include "gsi/cm/cm.h"
#include "runtime/clock.h"

enum { PLACE_ROOM = INET6_ADDRSTRLEN + 8 };

static const char *space_name(uint16_t space)
{
    switch (space) {
    case CM_SPACE_TCP:
        return "TCP";
    case CM_SPACE_UDP:
        return "UDP";
    case CM_SPACE_IB:
        return "IB";
    default:
        return "IPOIB";
    }
}

typedef char place[PLACE_ROOM];

/* Writes an address as 10.0.0.1:7174 or [fd00::1]:7174; NULL: there is no address. */
static const char *describe_place(const struct cm_address *address, place to)
{
    char text[INET6_ADDRSTRLEN];
    bool ipv4 = cm_is_mapped(address->gid);
    if (!address->family)
        return NULL;
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address->gid + (ipv4 ? 12 : 0), text, sizeof text);
    snprintf(to, sizeof(place), ipv4 ? "%s:%u" : "[%s]:%u", text, address->port);
    return to;
}

/* Writes for how many whole seconds the state has lasted. */
static void put_age(struct facts_identifier *facts, nanos since)
{
    fact_put(&facts->seconds, true, nanos_since(since, clock_now()) / NANOS_SECOND);
}

static void fill_connection(struct facts_identifier *facts, const struct connection *connection)
{
    bool waits = connection->deadline != NANOS_NEVER && connection->state != CONNECTION_TIMEWAIT;
    fact_put(&facts->qp, connection->local.qpn, connection->local.qpn);
    fact_put(&facts->peer_qp, connection->remote.qpn, connection->remote.qpn);
    if (connection->state == CONNECTION_IDLE || connection->state == CONNECTION_TIMEWAIT)
        facts->over = (struct fact_flag){true, true};
    fact_put(&facts->rejected, connection->peers_reason, connection->peers_reason);
    fact_put(&facts->repeats, true, waits ? connection->max_retries - connection->retries : 0);
    put_age(facts, connection->since);
}

const char *cm_report_state(const struct identifier *identifier)
{
    const struct connection *connection = identifier->session ? connect_of(identifier->session) : NULL;
    const struct resolution *resolution = identifier->session ? resolve_of(identifier->session) : NULL;
    if (connection)
        return connection_state_name(connection->state);
    return resolution ? resolution_state_name(resolution->state) : identifier_state_name(identifier->state);
}

/* Writes the facts of a session's connection, and its peer's process. */
static void fill_session(struct facts_identifier *facts, const struct cm *cm, const struct session *session)
{
    const struct connection *connection = connect_of(session);
    const struct peer *peer = cm_neighbors_find(&cm->neighbors, session->route.neighbor);
    if (connection)
        fill_connection(facts, connection);
    if (peer)
        fact_put(&facts->peer_pid, true, (uint64_t)peer->pid);
}

static void report_identifier(FILE *out, const struct cm *cm, const struct identifier *from)
{
    place local, peer;
    struct facts_identifier these = {.id = {identifier_number(from), true},
                                     .state = cm_report_state(from),
                                     .space = space_name(from->space),
                                     .device = from->has_port ? config_device(from->port.device)->name : NULL,
                                     .local = describe_place(&from->source, local),
                                     .peer = describe_place(&from->destination, peer)};
    struct facts_identifier *facts = &these;
    FACTS_identifier(FACT_FILL) if (from->state == IDENTIFIER_LISTEN) put_age(facts, from->listening_since);
    else facts->requests = facts->backlog = (struct fact_number){0};
    if (from->session)
        fill_session(facts, cm, from->session);
    facts_write(out, &facts_of_identifier, facts);
}

static void write_identifiers(FILE *out, const void *of)
{
    struct cm *cm = (struct cm *)of;
    const char *separator = "";
    lock_take(&cm->lock); /* no thread holds it for long */
    const struct hash *table = &cm->manager.identifiers;
    fputs("[", out);
    for (uint32_t i = 0; i <= table->mask; i++)
        for (const struct hash_entry *entry = table->buckets[i]; entry; entry = entry->next) {
            const struct identifier *identifier = identifier_of(&cm->manager, entry);
            if (!identifier)
                continue;
            fputs(separator, out);
            report_identifier(out, cm, identifier);
            separator = ",";
        }
    lock_release(&cm->lock);
    fputs("]", out);
}

static const char *message_name(unsigned i)
{
    return cm_name(CM_REQ + i);
}

static const char *drop_name(unsigned i)
{
    return reason_name(REASON_CM_BACKLOG + i);
}

static const char *fault_name(unsigned i)
{
    return event_lines[event_of_fault(i)].part;
}

/* Writes the counts under the key of the event. */
static void report_counts(FILE *out, enum event event, const uint64_t counts[], unsigned count,
                          const char *(*name)(unsigned))
{
    const char *separator = "";
    fprintf(out, "\"%s\":{", event_lines[event].key);
    for (unsigned i = 0; i < count; i++)
        if (counts[i]) {
            fprintf(out, "%s\"%s\":%llu", separator, name(i), (unsigned long long)counts[i]);
            separator = ",";
        }
    fputs("},", out);
}

void cm_report_messages(FILE *out, const struct cm *cm)
{
    const struct cm_counts *counts = &cm->counts;
    fputs("{", out);
    report_counts(out, EVENT_MESSAGE_SENT, counts->sent, CM_MESSAGES, message_name);
    report_counts(out, EVENT_MESSAGE_RECEIVED, counts->received, CM_MESSAGES, message_name);
    report_counts(out, EVENT_MESSAGE_DROPPED, counts->dropped, CM_DROPS, drop_name);
    report_counts(out, event_of_fault(0), counts->faults, FAULT_KINDS, fault_name);
    fprintf(out, "\"sessions\":%u}", cm->manager.sessions);
}

static void write_messages(FILE *out, const void *of)
{
    struct cm *cm = (struct cm *)of;
    lock_take(&cm->lock);
    cm_report_messages(out, cm);
    lock_release(&cm->lock);
}

void cm_report(struct facts_process *facts, struct process *process)
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (!cm)
        return;
    fact_put_inner(&facts->connections, write_identifiers, cm);
    fact_put_inner(&facts->messages, write_messages, cm);
}

/* --- the last events of an identifier */

bool cm_report_is_between(const struct identifier *identifier)
{
    const struct connection *connection = connect_of(identifier->session);
    const struct resolution *resolution = resolve_of(identifier->session);
    return connection ? connection->state > CONNECTION_IDLE && connection->state < CONNECTION_ESTABLISHED
                      : resolution && resolution->deadline != NANOS_NEVER;
}

/* An identifier and its manager. */
struct identifier_told {
    const struct cm *cm;
    const struct identifier *identifier;
};

static void write_identifier(FILE *out, const void *of)
{
    const struct identifier_told *told = of;
    report_identifier(out, told->cm, told->identifier);
}

/* Writes an identifier and its last events, with the communication IDs of both ends, by which tools find each end. */
static void report_story(FILE *out, const struct cm *cm, const struct identifier *identifier)
{
    int64_t now = (int64_t)read_clock(CLOCK_REALTIME);
    const struct connection *connection = connect_of(identifier->session);
    struct identifier_told told = {cm, identifier};
    struct last_events_told events = {identifier->told, now - (int64_t)read_clock(CLOCK_MONOTONIC)};
    struct facts_connection facts = {.number = {identifier_number(identifier), true}, .time = {(uint64_t)now, true}};
    fact_put_inner(&facts.identifier, write_identifier, &told);
    fact_put_inner(&facts.events, last_events_write, &events);
    if (connection) {
        fact_put(&facts.communication_id, true, connection->local.communication_id);
        fact_put(&facts.peer_communication_id, true, connection->remote.communication_id);
    }
    fputs(",\"id\":", out);
    facts_write(out, &facts_of_connection, &facts);
}

void cm_report_ended(FILE *out, const struct cm *cm, const struct identifier *identifier)
{
    fprintf(out, "{\"pid\":%d,\"program\":", (int)getpid());
    clean_json(out, program_invocation_short_name);
    report_story(out, cm, identifier);
    fputs("}\n", out);
}

static const struct identifier *find_partner(const struct cm *cm, uint32_t id)
{
    const struct hash *table = &cm->manager.local;
    for (uint32_t i = 0; i <= table->mask; i++)
        for (struct hash_entry *entry = table->buckets[i]; entry; entry = entry->next) {
            const struct session *session = container_of(entry, struct session, by_local);
            const struct connection *connection = connect_of(session);
            if (session->identifier && connection && connection->remote.communication_id == id)
                return session->identifier;
        }
    return NULL;
}

static const struct identifier *find_number(const struct cm *cm, uint32_t number)
{
    return identifier_find(&cm->manager, number);
}

static const struct identifier *find_communication(const struct cm *cm, uint32_t id)
{
    const struct session *session = manager_find_local(&cm->manager, id);
    return session ? session->identifier : NULL;
}

static void report_found(FILE *out, struct process *process, uint32_t number,
                         const struct identifier *(*find)(const struct cm *, uint32_t number))
{
    struct cm *cm = atomic_load(&process_objects(process)->cm);
    if (!cm)
        return;
    lock_take(&cm->lock);
    const struct identifier *identifier = find(cm, number);
    if (identifier)
        report_story(out, cm, identifier);
    lock_release(&cm->lock);
}

void cm_report_identifier(FILE *out, struct process *process, uint32_t number)
{
    report_found(out, process, number, find_number);
}

void cm_report_partner(FILE *out, struct process *process, uint32_t id)
{
    report_found(out, process, id, find_partner);
}

void cm_report_communication(FILE *out, struct process *process, uint32_t id)
{
    report_found(out, process, id, find_communication);
}
