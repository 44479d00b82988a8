#include "gsi/cm/cm_neighbors.h"

#include <stdlib.h>
#include <unistd.h>

#include "diag/log.h"
#include "events/events.h"

static bool make_room(struct cm_neighbors *neighbors)
{
    unsigned room = neighbors->room ? 2 * neighbors->room : 8;
    if (neighbors->count < neighbors->room)
        return true;
    void *list = realloc(neighbors->list, room * sizeof *neighbors->list);
    if (!list)
        return false;
    neighbors->list = list;
    neighbors->room = room;
    return true;
}

/* If the kernel can't report the end of the process, timeouts of its sessions do. */
static uint32_t add_neighbor(struct cm_neighbors *neighbors, struct node *node, struct peer *peer)
{
    if (!make_room(neighbors))
        return CM_NOWHERE;
    int error = node_watch(node, peer);
    if (error)
        log_write(LOG_INFO, "the end of process %d will not be noticed at once", (int)peer->pid);
    if (peer->gone)
        neighbors->departures = node_departures(node) - 1; /* its end may have been reported already */
    node_hold(peer);
    neighbors->list[neighbors->count].peer = peer;
    neighbors->list[neighbors->count].number = neighbors->next_number;
    neighbors->count++;
    return neighbors->next_number++;
}

uint32_t cm_neighbors_number(struct cm_neighbors *neighbors, struct node *node, struct peer *peer)
{
    for (unsigned i = 0; i < neighbors->count; i++)
        if (neighbors->list[i].peer == peer)
            return neighbors->list[i].number;
    return add_neighbor(neighbors, node, peer);
}

struct peer *cm_neighbors_find(const struct cm_neighbors *neighbors, uint32_t number)
{
    for (unsigned i = 0; i < neighbors->count; i++)
        if (neighbors->list[i].number == number)
            return neighbors->list[i].peer;
    return NULL;
}

void cm_neighbors_check(struct cm_neighbors *neighbors, struct node *node, struct manager *manager, nanos now)
{
    unsigned departures = node_departures(node);
    if (departures == neighbors->departures)
        return;
    neighbors->departures = departures;
    for (unsigned i = 0; i < neighbors->count;) {
        if (!neighbors->list[i].peer->gone) {
            i++;
            continue;
        }
        event_note((uint32_t)getpid(), EVENT_PEER_GONE, (uint64_t)neighbors->list[i].peer->pid, 0);
        dispatch_bereave(manager, neighbors->list[i].number, now);
        node_put(node, neighbors->list[i].peer);
        neighbors->list[i] = neighbors->list[--neighbors->count];
    }
}

void cm_neighbors_forget(struct cm_neighbors *neighbors, struct node *node)
{
    while (neighbors->count)
        node_put(node, neighbors->list[--neighbors->count].peer);
    free(neighbors->list);
    neighbors->list = NULL;
    neighbors->room = 0;
}
