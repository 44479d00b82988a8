#include "transport/srd/flows.h"

#include "base/container.h"
#include "transport/srd/tables.h"

void srd_flows_start(struct srd *srd)
{
    TAILQ_INIT(&srd->requester->ready);
    TAILQ_INIT(&srd->requester->retransmits);
}

static uint64_t key_of(const struct send_wqe *work)
{
    return work->swap << 24 ^ work->remote_qp;
}

static bool leads_to(const struct srd_flow *flow, const struct send_wqe *work)
{
    return flow->route == work->swap && flow->receiver == work->remote_qp;
}

struct srd_flow *srd_flows_known(const struct srd *srd, const struct send_wqe *work)
{
    const struct hash *hash = &srd->requester->receivers;
    struct hash_entry *entry = NULL;
    while (hash->buckets && (entry = hash_find(hash, key_of(work), entry))) {
        struct srd_flow *flow = container_of(entry, struct srd_flow, by_receiver);
        if (leads_to(flow, work))
            return flow;
    }
    return NULL;
}

/* An epoch is never 0, and no other flow has it. */
static uint32_t choose_epoch(struct srd *srd)
{
    uint32_t epoch = 0;
    while (!epoch || srd_flows_of_epoch(srd, epoch))
        epoch = (uint32_t)srd_tables_random(srd);
    return epoch;
}

void srd_flows_renew(struct srd *srd, struct srd_flow *flow)
{
    hash_add(&srd->requester->epochs, &flow->by_epoch, choose_epoch(srd));
    flow->epoch = (uint32_t)flow->by_epoch.key;
    flow->cookie = flow->next = flow->floor = 0;
    flow->open = false;
    flow->greets = true;
}

static bool is_idle(const struct srd_flow *flow)
{
    return !flow->fresh.any && !flow->busy.any && flow->next == flow->floor && !flow->greeting.wait &&
           !flow->busy_wait.wait && !flow->ready;
}

/* A flow that has been idle for a whole turn of the hand. */
static struct srd_flow *find_idle(struct srd *srd)
{
    struct hash *hash = &srd->requester->receivers;
    for (uint64_t step = 0; step < 2 * ((uint64_t)hash->mask + 1); step++) {
        struct hash_entry *entry = hash->buckets[srd->requester->flow_hand++ & hash->mask];
        for (; entry; entry = entry->next) {
            struct srd_flow *flow = container_of(entry, struct srd_flow, by_receiver);
            if (is_idle(flow) && !flow->used)
                return flow;
            flow->used = false;
        }
    }
    return NULL;
}

static struct srd_flow *new_flow(struct srd *srd)
{
    struct engine_owner *owner = srd->common.owner;
    struct srd_flow *flow = NULL;
    if (srd->requester->flow_count < SRD_PEERS)
        flow = owner->operations->room(owner, sizeof *flow);
    if (flow)
        srd->requester->flow_count++;
    else
        flow = find_idle(srd);
    return flow;
}

static bool has_tables(struct srd *srd)
{
    struct srd_requester *requester = srd->requester;
    return tables_make_room(srd, &requester->epochs, requester->flow_count) &&
           tables_make_room(srd, &requester->receivers, requester->flow_count);
}

struct srd_flow *srd_flows_find(struct srd *srd, const struct send_wqe *work)
{
    struct srd_flow *flow = srd_flows_known(srd, work);
    if (!flow && has_tables(srd) && (flow = new_flow(srd))) {
        hash_remove(&flow->by_receiver);
        hash_remove(&flow->by_epoch);
        *flow = (struct srd_flow){.route = work->swap, .receiver = work->remote_qp};
        TAILQ_INIT(&flow->again);
        flow->greeting.flow = flow->busy_wait.flow = flow;
        hash_add(&srd->requester->receivers, &flow->by_receiver, key_of(work));
        srd_flows_renew(srd, flow);
    }
    if (flow)
        flow->used = true;
    return flow;
}

struct srd_flow *srd_flows_of_epoch(const struct srd *srd, uint32_t epoch)
{
    const struct hash *hash = &srd->requester->epochs;
    struct hash_entry *entry = hash->buckets ? hash_find(hash, epoch, NULL) : NULL;
    return entry ? container_of(entry, struct srd_flow, by_epoch) : NULL;
}

struct srd_flight *srd_flows_at(const struct srd_flow *flow, uint32_t number)
{
    struct srd_flight *flight = flow->at[number % SRD_WINDOW];
    return flight && flight->number == number ? flight : NULL;
}

struct srd_flight *srd_flows_number(struct srd *srd, struct srd_flow *flow)
{
    struct srd_flight *flight = srd_flights_take(srd, flow);
    if (!flight)
        return NULL;
    flight->number = flow->next++;
    flow->at[flight->number % SRD_WINDOW] = flight;
    return flight;
}

void srd_flows_drop(struct srd *srd, struct srd_flight *flight)
{
    struct srd_flow *flow = flight->flow;
    flow->at[flight->number % SRD_WINDOW] = NULL;
    while (flow->floor != flow->next && !flow->at[flow->floor % SRD_WINDOW])
        flow->floor++;
    srd_flights_free(srd, flight);
}

/* ---- ready flows ---- */

static enum srd_ready readiness(const struct srd_flow *flow)
{
    bool window = flow->next - flow->floor < SRD_WINDOW, again = !TAILQ_EMPTY(&flow->again);
    if (flow->greeting.wait == SRD_HELD)
        return SRD_UNREADY;
    if (!flow->open)
        return flow->greets && flow->fresh.any ? SRD_RETRANSMITS : SRD_UNREADY;
    return again ? SRD_RETRANSMITS : flow->fresh.any && window ? SRD_READY : SRD_UNREADY;
}

static struct srd_ready_flows *ready_list(struct srd *srd, enum srd_ready ready)
{
    return ready == SRD_RETRANSMITS ? &srd->requester->retransmits : &srd->requester->ready;
}

void srd_flows_unready(struct srd *srd, struct srd_flow *flow)
{
    TAILQ_REMOVE(ready_list(srd, flow->ready), flow, entry);
    flow->ready = SRD_UNREADY;
}

void srd_flows_judge(struct srd *srd, struct srd_flow *flow)
{
    enum srd_ready ready = readiness(flow);
    if (flow->ready == ready)
        return;
    if (flow->ready)
        srd_flows_unready(srd, flow);
    flow->ready = (uint8_t)ready;
    if (ready)
        TAILQ_INSERT_TAIL(ready_list(srd, ready), flow, entry);
}

/* ---- work of a flow ---- */

static uint32_t *link_of(struct srd *srd, uint32_t position)
{
    return &send_queue_at(&srd->common.queue, position)->srd.link;
}

void srd_flows_append(struct srd *srd, struct srd_works *works, uint32_t position)
{
    if (works->any)
        *link_of(srd, works->last) = position;
    else
        works->first = position;
    works->last = position;
    works->any = true;
}

uint32_t srd_flows_take(struct srd *srd, struct srd_works *works)
{
    uint32_t first = works->first;
    works->any = first != works->last;
    if (works->any)
        works->first = *link_of(srd, first);
    return first;
}

void srd_flows_remove(struct srd *srd, struct srd_works *works, uint32_t position)
{
    uint32_t before = works->first;
    if (!works->any)
        return;
    if (before == position)
        return (void)srd_flows_take(srd, works);
    while (before != works->last && *link_of(srd, before) != position)
        before = *link_of(srd, before);
    if (before == works->last)
        return;
    *link_of(srd, before) = *link_of(srd, position);
    if (works->last == position)
        works->last = before;
}

void srd_flows_each(struct srd *srd, void (*visit)(struct srd *, struct srd_flow *, const void *), const void *argument)
{
    struct hash *hash = &srd->requester->receivers;
    for (uint64_t bucket = 0; hash->buckets && bucket <= hash->mask; bucket++)
        for (struct hash_entry *entry = hash->buckets[bucket]; entry; entry = entry->next)
            visit(srd, container_of(entry, struct srd_flow, by_receiver), argument);
}

bool srd_flows_are_busy(const struct srd *srd, const struct send_wqe *work)
{
    const struct srd_flow *flow = srd_flows_known(srd, work);
    return flow && flow->busy.any;
}
