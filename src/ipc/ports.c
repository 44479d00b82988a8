#include "ipc/ports.h"

#include <errno.h>

#include "ipc/state.h"
#include "link/fence.h"

enum { WINDOW = 64 };

/* The entry `step` places after the one that the port hashes to. */
static struct table_port *entry_at(struct table *table, uint16_t space, uint16_t port, unsigned step)
{
    uint32_t hash = ((uint32_t)space << 16 | port) * 2654435769u;
    return &table->file->ports[(hash / 65536 + step) % TABLE_PORTS];
}

static struct table_port *entry_of(struct node *node, uint32_t number)
{
    return &node->table->file->ports[number % TABLE_PORTS];
}

/* Returns true if the entry has this port, and an owner. */
static bool has_port(struct table_port *entry, uint16_t space, uint16_t port)
{
    return atomic_load_explicit(&entry->owner, memory_order_acquire) && entry->claim.space == space &&
           entry->claim.port == port;
}

static bool may_be_had(struct table_port *entry)
{
    return !atomic_load(&entry->owner) || atomic_load(&entry->use) == TABLE_PORT_LISTENED;
}

struct neighbors {
    const struct port_claim *claims[WINDOW];
    unsigned count;
    struct table_port *free; /* an entry that may be taken, preferably without an owner; or NULL */
};

/* Finds the claims of this port, and a free entry. Under the table's lock. */
static struct neighbors look_at(struct table *table, uint16_t space, uint16_t port, const struct table_port *except)
{
    lock_assert_held(&table->exclusive);
    struct neighbors found = {.count = 0};
    for (unsigned step = 0; step < WINDOW; step++) {
        struct table_port *entry = entry_at(table, space, port, step);
        if (may_be_had(entry))
            found.free =
                found.free && (atomic_load(&entry->owner) || !atomic_load(&found.free->owner)) ? found.free : entry;
        else if (entry != except && has_port(entry, space, port))
            found.claims[found.count++] = &entry->claim;
    }
    return found;
}

static int enter_claim(struct node *node, struct table_port *entry, const struct port_claim *claim, uint32_t *number)
{
    if (!entry)
        return ENOSPC;
    atomic_store(&entry->owner, 0);
    entry->claim = *claim;
    atomic_store(&entry->use, TABLE_PORT_BOUND);
    atomic_store_explicit(&entry->owner, table_self(node->table), memory_order_release);
    *number = (uint32_t)(entry - node->table->file->ports);
    return 0;
}

/* A port is shared, with claims from which this one is distinct, only when no free port is left. */
static int choose(struct node *node, const struct ports_range *range, struct port_claim *claim, uint32_t *number,
                  bool shared)
{
    uint32_t count = range->high - range->low + 1u, start = atomic_fetch_add(&node->table->file->next_port, 1);
    for (uint32_t attempt = 0; attempt < count; attempt++) {
        claim->port = ports_candidate(range, start, attempt);
        struct neighbors found = look_at(node->table, claim->space, claim->port, NULL);
        if (found.free && (!found.count || (shared && ports_are_distinct(found.claims, found.count, claim))))
            return enter_claim(node, found.free, claim, number);
    }
    return EADDRNOTAVAIL;
}

static int bind_locked(struct node *node, const struct ports_range *range, struct port_claim *claim, uint32_t *number)
{
    if (!claim->port) {
        int error = choose(node, range, claim, number, false);
        return error ? choose(node, range, claim, number, true) : 0;
    }
    struct neighbors found = look_at(node->table, claim->space, claim->port, NULL);
    int error = ports_conflict(found.claims, found.count, claim, true);
    return error ? error : enter_claim(node, found.free, claim, number);
}

/* The conflicting entry may belong to a process that has ended. */
int ports_bind(struct node *node, const struct ports_range *range, struct port_claim *claim, uint32_t *number)
{
    uint16_t wanted = claim->port;
    int error = table_lock(node->table);
    if (error)
        return error;
    error = bind_locked(node, range, claim, number);
    if (error && table_sweep(node->table) > 0) {
        claim->port = wanted;
        error = bind_locked(node, range, claim, number);
    }
    table_unlock(node->table);
    if (error)
        claim->port = wanted;
    return error;
}

int ports_listen(struct node *node, uint32_t number)
{
    struct table_port *entry = entry_of(node, number);
    int error = table_lock(node->table);
    if (error)
        return error;
    struct neighbors found = look_at(node->table, entry->claim.space, entry->claim.port, entry);
    error = ports_conflict(found.claims, found.count, &entry->claim, false);
    if (!error) {
        entry->claim.reuse = false;
        atomic_store(&entry->use, TABLE_PORT_LISTENS);
    }
    table_unlock(node->table);
    return error;
}

void ports_release(struct node *node, uint32_t number)
{
    struct table_port *entry = entry_of(node, number);
    uint32_t owner = table_self(node->table), use = TABLE_PORT_LISTENS;
    if (atomic_load(&entry->owner) == owner && !atomic_compare_exchange_strong(&entry->use, &use, TABLE_PORT_LISTENED))
        atomic_compare_exchange_strong(&entry->owner, &owner, 0);
}

/* Returns 0 if the claim does not listen there; 1: at all addresses; 2: at this one. */
static unsigned fit_of(const struct port_claim *claim, const struct cm_address *address)
{
    const struct cm_address *source = &claim->source;
    if (!cm_is_any(source))
        return memcmp(source->gid, address->gid, 16) ? 0 : 2;
    bool other_version = source->family == AF_INET6 && address->family == AF_INET && claim->only_family;
    bool ipv4 = source->family == AF_INET && address->family == AF_INET6;
    return other_version || ipv4 ? 0 : 1;
}

/* Reads without the lock: an entry counts if its owner is the same before and after. */
static uint32_t find_owner_of(struct table *table, uint16_t space, uint16_t port, const struct cm_address *address,
                              enum table_port_use use)
{
    uint32_t found = 0;
    unsigned best = 0;
    for (unsigned step = 0; step < WINDOW; step++) {
        struct table_port *entry = entry_at(table, space, port, step);
        uint32_t owner = atomic_load_explicit(&entry->owner, memory_order_acquire);
        struct port_claim claim = entry->claim;
        fence_full(); /* ThreadSanitizer knows it, unlike an acquire fence */
        if (!owner || claim.space != space || claim.port != port || atomic_load(&entry->use) != use ||
            atomic_load(&entry->owner) != owner)
            continue;
        unsigned fit = fit_of(&claim, address);
        if (fit > best) {
            best = fit;
            found = owner;
        }
    }
    return found;
}

struct peer *ports_find_listener(struct node *node, uint16_t space, uint16_t port, const struct cm_address *address)
{
    return node_find_owner(node, find_owner_of(node->table, space, port, address, TABLE_PORT_LISTENS));
}

struct peer *ports_find_former(struct node *node, uint16_t space, uint16_t port, const struct cm_address *address)
{
    return node_find_owner(node, find_owner_of(node->table, space, port, address, TABLE_PORT_LISTENED));
}
