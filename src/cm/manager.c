#include "cm/manager.h"

#include "base/container.h"

enum { ID_BITS = 24, IDS = 256 };

void manager_initialize(struct manager *manager, const struct manager_operations *operations,
                        const struct manager_settings *settings)
{
    struct hash *tables[] = {&manager->identifiers, &manager->local, &manager->remote, &manager->remote_qp};
    *manager = (struct manager){.operations = operations,
                                .agent = settings->agent,
                                .first_id = settings->first_id,
                                .random = settings->seed,
                                .retries = settings->retries};
    for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] =
            (struct hash){.buckets = settings->buckets + (size_t)i * MANAGER_BUCKETS, .mask = MANAGER_BUCKETS - 1};
    LIST_INIT(&manager->listeners);
    TAILQ_INIT(&manager->output);
}

/* A Weyl sequence whose values are mixed (splitmix64). */
uint64_t manager_random(struct manager *manager)
{
    uint64_t x = manager->random += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* A communication ID that no session has. The low 24 bits are one of the process's block of numbers, by which answers
 * find the process; the high bits count. */
static uint32_t new_communication_id(struct manager *manager)
{
    uint32_t id;
    do {
        uint32_t count = manager->next_id++;
        id = (manager->first_id + count % IDS) | (count / IDS) << ID_BITS;
    } while (!id || manager_find_local(manager, id));
    return id;
}

/* --- sessions */

static uint64_t remote_key(uint64_t guid, uint32_t number)
{
    return guid * 0x100000001b3 ^ number;
}

static void expired(struct timer *timer, nanos now)
{
    struct session *session = container_of(timer, struct session, timer);
    session->operations->expire(session, now);
    session_settle(session);
}

struct session *session_open(struct manager *manager, struct identifier *identifier, const struct cm_route *route,
                             size_t size, const struct session_operations *operations)
{
    struct session *session = manager->operations->allocate(manager, size);
    if (!session)
        return NULL;
    session->operations = operations;
    session->manager = manager;
    session->identifier = identifier;
    session->route = *route;
    session->timer.expired = expired;
    manager->sessions++;
    hash_add(&manager->local, &session->by_local, new_communication_id(manager));
    return session;
}

void session_know_remote(struct session *session, uint64_t guid, uint32_t remote_id, uint32_t qpn)
{
    hash_add(&session->manager->remote, &session->by_remote, remote_key(guid, remote_id));
    hash_add(&session->manager->remote_qp, &session->by_qp, remote_key(guid, qpn));
}

/* The two halves of a GID in one number, for hashing. */
static uint64_t fold(const uint8_t gid[16])
{
    uint64_t halves[2];
    memcpy(halves, gid, sizeof halves);
    return halves[0] ^ halves[1];
}

void session_know_request(struct session *session, uint32_t request)
{
    hash_add(&session->manager->remote, &session->by_remote, remote_key(fold(session->route.gid), request));
}

static void end_session(struct session *session)
{
    struct manager *manager = session->manager;
    hash_remove(&session->by_local);
    hash_remove(&session->by_remote);
    hash_remove(&session->by_qp);
    timer_stop(&manager->timers, &session->timer);
    if (session->has_output)
        TAILQ_REMOVE(&manager->output, session, output);
    manager->sessions--;
    manager->operations->forget(manager, session);
    manager->operations->release(manager, session);
}

static void set_timer(struct session *session)
{
    nanos at = session->operations->deadline(session);
    if (at == NANOS_NEVER)
        timer_stop(&session->manager->timers, &session->timer);
    else if (!session->timer.set || session->timer.at != at)
        timer_set(&session->manager->timers, &session->timer, at);
}

void session_settle(struct session *session)
{
    struct manager *manager = session->manager;
    if (session->operations->is_finished(session)) {
        end_session(session);
        return;
    }
    set_timer(session);
    manager->operations->note(manager, session);
    if (session->has_output)
        return;
    session->has_output = true;
    TAILQ_INSERT_TAIL(&manager->output, session, output);
}

void manager_end(struct manager *manager)
{
    const struct hash *local = &manager->local;
    for (uint32_t i = 0; i <= local->mask; i++)
        while (local->buckets[i])
            end_session(container_of(local->buckets[i], struct session, by_local));
}

static struct session *of_entry(const struct hash_entry *entry, size_t offset)
{
    return entry ? (struct session *)(void *)((char *)entry - offset) : NULL;
}

struct session *manager_find_local(const struct manager *manager, uint32_t local_id)
{
    return of_entry(hash_find(&manager->local, local_id, NULL), offsetof(struct session, by_local));
}

struct session *manager_find_remote(const struct manager *manager, uint64_t guid, uint32_t remote_id,
                                    const struct session *after)
{
    const struct hash_entry *entry =
        hash_find(&manager->remote, remote_key(guid, remote_id), after ? &after->by_remote : NULL);
    return of_entry(entry, offsetof(struct session, by_remote));
}

struct session *manager_find_request(const struct manager *manager, const uint8_t gid[16], uint32_t request,
                                     const struct session *after)
{
    return manager_find_remote(manager, fold(gid), request, after);
}

struct session *manager_find_remote_qp(const struct manager *manager, uint64_t guid, uint32_t qpn,
                                       const struct session *after)
{
    const struct hash_entry *entry =
        hash_find(&manager->remote_qp, remote_key(guid, qpn), after ? &after->by_qp : NULL);
    return of_entry(entry, offsetof(struct session, by_qp));
}
