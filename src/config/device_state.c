#include "config/device_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/read_clock.h"
#include "config/gid.h"

/* The states that devices have had. A reader takes no lock and uses a state for some instructions, so a state is never
 * freed, but its memory is used again after a long time: hosts of the network can add and remove addresses (router
 * advertisements) and must not make a program grow. No state is kept twice. */
struct kept_state {
    struct device_state state;
    struct kept_state *next;
    const struct device *device;
    uint64_t order;  /* the state that was replaced first has the least */
    time_t replaced; /* the time of that, in seconds */
};

enum { FEW = 256, MOST = 4096, LONG_AGO = 60 /* seconds */ };

static struct kept_state *kept;
static unsigned kept_count;

atomic_uint device_changes;

enum ibv_mtu device_state_mtu(const struct device_state *state)
{
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= state->mtu)
        mtu++;
    return mtu;
}

int device_state_find(const struct device_state *state, const union ibv_gid *gid)
{
    if (gid_is_zero(gid))
        return -1;
    for (unsigned i = 0; i < state->gid_count; i++)
        if (!memcmp(&state->gids[i], gid, sizeof *gid))
            return (int)i;
    return -1;
}

bool device_state_has(const struct device_state *state, unsigned index)
{
    return index < state->gid_count && !gid_is_zero(&state->gids[index]);
}

bool device_state_equals(const struct device_state *one, const struct device_state *other)
{
    return one->gid_count == other->gid_count && one->mtu == other->mtu && one->up == other->up &&
           one->interface == other->interface && !memcmp(one->mac, other->mac, sizeof one->mac) &&
           !memcmp(one->gids, other->gids, sizeof one->gids);
}

uint32_t config_fitting_mtu(int interface_mtu)
{
    enum { HEADERS = 80 };
    uint32_t mtu = 4096;
    while (mtu > 256 && (int)mtu + HEADERS > interface_mtu)
        mtu /= 2;
    return mtu;
}

/* --- the table of GIDs */

static union ibv_gid link_local(const uint8_t mac[6])
{
    return (union ibv_gid){.raw = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

static bool has_address(const struct interface *interface, const union ibv_gid *gid)
{
    for (unsigned i = 0; i < interface->address_count; i++)
        if (!memcmp(&interface->addresses[i], gid, sizeof *gid))
            return true;
    return false;
}

static void add_gid(struct device_state *state, const union ibv_gid *gid)
{
    if (device_state_find(state, gid) >= 0)
        return;
    for (unsigned i = state->first_gid; i < GIDS; i++)
        if (gid_is_zero(&state->gids[i])) {
            state->gids[i] = *gid;
            return;
        }
}

static void count_gids(struct device_state *state)
{
    state->gid_count = GIDS;
    while (state->gid_count && gid_is_zero(&state->gids[state->gid_count - 1]))
        state->gid_count--;
}

static void follow_addresses(struct device_state *state, const struct interface *interface)
{
    static const union ibv_gid none;
    const union ibv_gid *first = &state->gids[state->first_gid];
    state->gids[state->first_gid] = link_local(state->mac);
    for (unsigned i = state->first_gid + 1; i < GIDS; i++)
        if (!has_address(interface, &state->gids[i]) || !memcmp(&state->gids[i], first, sizeof none))
            state->gids[i] = none;
    state->gid_count = GIDS;
    for (unsigned i = 0; i < interface->address_count; i++)
        add_gid(state, &interface->addresses[i]);
    count_gids(state);
}

struct device_state device_state_follow(const struct device_state *before, const struct interface *interface)
{
    struct device_state state = *before;
    state.up = interface->found && interface->up;
    state.interface = interface->found ? interface->index : 0;
    if (interface->found) {
        state.mtu = config_fitting_mtu((int)interface->mtu);
        memcpy(state.mac, interface->mac, sizeof state.mac);
    }
    follow_addresses(&state, interface);
    return state;
}

/* --- publishing */

static time_t now_seconds(void)
{
    return (time_t)(read_clock(CLOCK_MONOTONIC) / NANOS_SECOND);
}

static bool is_current(const struct kept_state *one)
{
    return atomic_load_explicit(&one->device->latest, memory_order_relaxed) == &one->state;
}

static struct kept_state *find_kept(const struct device *device, const struct device_state *state)
{
    struct kept_state *each = kept;
    while (each && (each->device != device || !device_state_equals(&each->state, state)))
        each = each->next;
    return each;
}

/* The state that was replaced first; NULL: all states are current. */
static struct kept_state *find_oldest(void)
{
    struct kept_state *oldest = NULL;
    for (struct kept_state *each = kept; each; each = each->next)
        if (!is_current(each) && (!oldest || each->order < oldest->order))
            oldest = each;
    return oldest;
}

/* Finds a state that no thread reads any more: such a thread would have stopped between two instructions for a minute
 * and hundreds of changes, or for thousands of changes. */
static struct kept_state *find_unused(void)
{
    struct kept_state *oldest = kept_count < FEW ? NULL : find_oldest();
    return oldest && (kept_count >= MOST || now_seconds() - oldest->replaced > LONG_AGO) ? oldest : NULL;
}

static struct kept_state *make_kept(void)
{
    struct kept_state *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    made->next = kept;
    kept = made;
    kept_count++;
    return made;
}

static struct kept_state *keep(const struct device *device, const struct device_state *state)
{
    struct kept_state *place = find_kept(device, state);
    if (place)
        return place;
    place = find_unused();
    if (!place)
        place = make_kept();
    if (place) {
        place->state = *state;
        place->device = device;
    }
    return place;
}

static void note_replaced(const struct device *device)
{
    static uint64_t count;
    for (struct kept_state *each = kept; each; each = each->next)
        if (each->device == device && is_current(each)) {
            each->order = ++count;
            each->replaced = now_seconds();
        }
}

bool device_state_publish(struct device *device, const struct device_state *state)
{
    const struct kept_state *place = keep(device, state);
    if (!place)
        return false;
    note_replaced(device);
    atomic_store_explicit(&device->latest, &place->state, memory_order_release);
    atomic_fetch_add_explicit(&device_changes, 1, memory_order_release);
    return true;
}
