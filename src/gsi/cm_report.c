#include "gsi/cm_report.h"

#include <arpa/inet.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/container.h"
#include "base/lock.h"
#include "cm/connect.h"
#include "cm/identifier.h"
#include "cm/resolve.h"
#include "config/config.h"
#include "diag/clean.h"
#include "events/last_events.h"
#include "events/lines.h"
#include "gsi/cm.h"
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

/* As 10.0.0.1:7174 or [fd00::1]:7174. */
static void report_place(FILE *out, const char *name, const struct cm_address *address)
{
    char text[INET6_ADDRSTRLEN], place[PLACE_ROOM];
    bool ipv4 = cm_is_mapped(address->gid);
    if (!address->family)
        return;
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address->gid + (ipv4 ? 12 : 0), text, sizeof text);
    snprintf(place, sizeof place, ipv4 ? "%s:%u" : "[%s]:%u", text, address->port);
    fprintf(out, ",\"%s\":\"%s\"", name, place);
}

static void report_connection(FILE *out, const struct connection *connection)
{
    bool waits = connection->deadline != NANOS_NEVER && connection->state != CONNECTION_TIMEWAIT;
    if (connection->local.qpn)
        fprintf(out, ",\"qp\":%u", connection->local.qpn);
    if (connection->remote.qpn)
        fprintf(out, ",\"peer_qp\":%u", connection->remote.qpn);
    fprintf(out, ",\"repeats\":%u", waits ? connection->max_repeats - connection->repeats : 0);
}

/* Whole seconds in this state. */
static void report_age(FILE *out, nanos since)
{
    fprintf(out, ",\"seconds\":%llu", (unsigned long long)(nanos_since(since, clock_now()) / NANOS_SECOND));
}

static void report_peer(FILE *out, const struct cm *cm, uint32_t neighbor)
{
    const struct peer *peer = cm_neighbors_find(&cm->neighbors, neighbor);
    if (peer)
        fprintf(out, ",\"peer_pid\":%d", (int)peer->pid);
}

static const char *state_of(const struct identifier *identifier)
{
    const struct connection *connection = identifier->session ? connect_of(identifier->session) : NULL;
    const struct resolution *resolution = identifier->session ? resolve_of(identifier->session) : NULL;
    if (connection)
        return connection_state_name(connection->state);
    return resolution ? resolution_state_name(resolution->state) : identifier_state_name(identifier->state);
}

static void report_identifier(FILE *out, const struct cm *cm, const struct identifier *identifier)
{
    unsigned count;
    const struct device *devices = config_devices(&count);
    const struct connection *connection = identifier->session ? connect_of(identifier->session) : NULL;
    fprintf(out, "{\"id\":%u,\"state\":\"%s\",\"space\":\"%s\"", identifier_number(identifier), state_of(identifier),
            space_name(identifier->space));
    if (identifier->has_port) {
        fputs(",\"device\":", out);
        clean_json(out, devices[identifier->port.device].name);
    }
    report_place(out, "local", &identifier->source);
    report_place(out, "peer", &identifier->destination);
    if (identifier->state == IDENTIFIER_LISTEN) {
        fprintf(out, ",\"requests\":%u,\"backlog\":%u", identifier->account.requests, identifier->backlog);
        report_age(out, identifier->listening_since);
    }
    if (connection) {
        report_connection(out, connection);
        report_age(out, connection->since);
    }
    if (identifier->session)
        report_peer(out, cm, identifier->session->route.neighbor);
    fprintf(out, ",\"events\":%u}", identifier->account.queued);
}

static void report_identifiers(FILE *out, const struct cm *cm)
{
    const struct hash *table = &cm->manager.identifiers;
    const char *separator = "";
    fputs(",\"connections\":[", out);
    for (uint32_t i = 0; i <= table->mask; i++)
        for (const struct hash_entry *entry = table->buckets[i]; entry; entry = entry->next) {
            const struct identifier *identifier = identifier_of(&cm->manager, entry);
            if (!identifier)
                continue;
            fputs(separator, out);
            report_identifier(out, cm, identifier);
            separator = ",";
        }
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

/* Under the key of the event. */
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
    fputs(",\"messages\":{", out);
    report_counts(out, EVENT_MESSAGE_SENT, counts->sent, CM_MESSAGES, message_name);
    report_counts(out, EVENT_MESSAGE_RECEIVED, counts->received, CM_MESSAGES, message_name);
    report_counts(out, EVENT_MESSAGE_DROPPED, counts->dropped, CM_DROPS, drop_name);
    report_counts(out, event_of_fault(0), counts->faults, FAULT_KINDS, fault_name);
    fprintf(out, "\"sessions\":%u}", cm->manager.sessions);
}

void cm_report(FILE *out, struct process *process)
{
    struct cm *cm = atomic_load(&process->cm);
    if (!cm)
        return;
    lock_take(&cm->lock); /* which no thread holds for long */
    report_identifiers(out, cm);
    cm_report_messages(out, cm);
    lock_release(&cm->lock);
}

/* --- the last events of one */

bool cm_report_is_between(const struct identifier *identifier)
{
    const struct connection *connection = connect_of(identifier->session);
    const struct resolution *resolution = resolve_of(identifier->session);
    return connection ? connection->state > CONNECTION_IDLE && connection->state < CONNECTION_ESTABLISHED
                      : resolution && resolution->deadline != NANOS_NEVER;
}

static int64_t time_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * (int64_t)NANOS_SECOND + now.tv_nsec;
}

/* The communication IDs of both ends, by which each is found. */
static void report_story(FILE *out, const struct cm *cm, const struct identifier *identifier)
{
    int64_t now = time_of(CLOCK_REALTIME);
    const struct connection *connection = connect_of(identifier->session);
    fprintf(out, ",\"id\":{\"number\":%u,\"time\":%lld,\"identifier\":", identifier_number(identifier), (long long)now);
    report_identifier(out, cm, identifier);
    if (connection)
        fprintf(out, ",\"communication_id\":%u,\"peer_communication_id\":%u", connection->local.communication_id,
                connection->remote.communication_id);
    fputs(",\"events\":", out);
    last_events_report(out, identifier->told, now - time_of(CLOCK_MONOTONIC));
    fputs("}", out);
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
    struct cm *cm = atomic_load(&process->cm);
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
