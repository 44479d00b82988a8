#include "transport/srd/sources.h"

#include <string.h>

#include "base/container.h"
#include "base/likely.h"
#include "transport/bth.h"
#include "transport/srd/store.h"
#include "transport/srd/tables.h"
#include "wire/grh.h"
#include "wire/psn.h"

void srd_sources_start(struct srd *srd)
{
    TAILQ_INIT(&srd->responder->due);
    TAILQ_INIT(&srd->responder->held);
    TAILQ_INIT(&srd->responder->known);
    TAILQ_INIT(&srd->responder->strange);
    TAILQ_INIT(&srd->responder->spare);
    TAILQ_INIT(&srd->responder->reads);
    TAILQ_INIT(&srd->responder->held_reads);
    TAILQ_INIT(&srd->responder->free_reads);
}

/* ---- sources ---- */

static void gid_of(const struct packet *packet, uint8_t gid[16])
{
    if (packet->grh)
        grh_read_source(packet->grh, gid);
    else
        memset(gid, 0, 16);
}

/* Senders choose all of this; without the secret they would choose one list of the table for all their flows. */
static uint64_t key_of_source(const struct srd *srd, const uint8_t gid[16], const struct packet *packet)
{
    uint64_t halves[2], rest = (uint64_t)packet->source << 32 ^ packet->srd.epoch;
    memcpy(halves, gid, sizeof halves);
    return tables_mix(tables_mix(tables_mix(srd->responder->secret ^ halves[0]) ^ halves[1]) ^ rest);
}

static bool is_from(const struct srd_source *source, const uint8_t gid[16], const struct packet *packet)
{
    return source->epoch == packet->srd.epoch && source->number == packet->source && !memcmp(source->gid, gid, 16);
}

static cold struct srd_source *search_source(const struct srd *srd, const uint8_t gid[16], const struct packet *packet)
{
    const struct hash *hash = &srd->responder->sources;
    struct hash_entry *entry = NULL;
    while (hash->buckets && (entry = hash_find(hash, key_of_source(srd, gid, packet), entry))) {
        struct srd_source *source = container_of(entry, struct srd_source, entry);
        if (is_from(source, gid, packet))
            return source;
    }
    return NULL;
}

/* To reckon the key takes longer than all the rest, and most packets are of a few senders. A source that gives way is
 * another sender's at once (add_source), and then is found no more. */
static struct srd_source *find_source(const struct srd *srd, const struct packet *packet)
{
    struct srd_source **recent = &srd->responder->recent[packet->srd.epoch % SRD_RECENT];
    uint8_t gid[16];
    gid_of(packet, gid);
    if (!*recent || !is_from(*recent, gid, packet))
        *recent = search_source(srd, gid, packet);
    return *recent;
}

static struct srd_sources *list_of_source(struct srd *srd, const struct srd_source *source)
{
    return source->known ? &srd->responder->known : &srd->responder->strange;
}

/* The oldest source that owes nothing. */
static struct srd_source *oldest(const struct srd_sources *sources)
{
    struct srd_source *source = TAILQ_FIRST(sources);
    while (source && (source->queued || source->reads))
        source = TAILQ_NEXT(source, age_entry);
    return source;
}

static void forget_source(struct srd *srd, struct srd_source *source)
{
    TAILQ_REMOVE(list_of_source(srd, source), source, age_entry);
    hash_remove(&source->entry);
    srd->responder->greeted -= !source->known;
    TAILQ_INSERT_HEAD(&srd->responder->spare, source, age_entry);
}

/* A place for a new source: the oldest that has only greeted where there are many of these, and the oldest of all where
 * there is no other place. Those that only greet push out nobody who has sent data, until the table is full. */
static struct srd_source *make_place(struct srd *srd)
{
    struct srd_responder *responder = srd->responder;
    struct engine_owner *owner = srd->common.owner;
    struct srd_source *source = TAILQ_FIRST(&responder->spare);
    if (source)
        return source;
    if (responder->greeted >= SRD_GREETED && (source = oldest(&responder->strange)))
        return forget_source(srd, source), source;
    if (responder->count < SRD_PEERS && (source = owner->operations->room(owner, sizeof *source))) {
        responder->count++;
        TAILQ_INSERT_HEAD(&responder->spare, source, age_entry);
        return source;
    }
    source = oldest(&responder->strange);
    source = source ? source : oldest(&responder->known);
    if (source)
        forget_source(srd, source);
    return source;
}

static struct srd_source *add_source(struct srd *srd, const struct packet *packet)
{
    struct srd_responder *responder = srd->responder;
    while (!responder->secret)
        responder->secret = srd_tables_random(srd);
    bool fits = tables_make_room(srd, &responder->sources, responder->count);
    struct srd_source *source = fits ? make_place(srd) : NULL;
    if (!source)
        return NULL;
    struct srd_source filled = {.number = packet->source, .epoch = packet->srd.epoch};
    while (!filled.cookie)
        filled.cookie = (uint32_t)srd_tables_random(srd);
    gid_of(packet, filled.gid);
    memset(filled.statuses, SRD_OPEN, sizeof filled.statuses);
    TAILQ_REMOVE(&responder->spare, source, age_entry);
    *source = filled;
    hash_add(&responder->sources, &source->entry, key_of_source(srd, source->gid, packet));
    TAILQ_INSERT_TAIL(&responder->strange, source, age_entry);
    responder->greeted++;
    return source;
}

/* Notes that the source has sent data: it is the youngest of those that have. */
static void note_use(struct srd *srd, struct srd_source *source)
{
    if (source->known && !TAILQ_NEXT(source, age_entry))
        return;
    TAILQ_REMOVE(list_of_source(srd, source), source, age_entry);
    srd->responder->greeted -= !source->known;
    source->known = true;
    TAILQ_INSERT_TAIL(&srd->responder->known, source, age_entry);
}

/* ---- answers ---- */

static void write_response(const struct srd *srd, enum operation operation, uint32_t receiver,
                           const struct srd_header *header, struct packet *out)
{
    const struct engine_settings *settings = &srd->common.settings;
    bth_fill(out, op_code(SERVICE_SRD, operation), settings->pkey, receiver, header->number & PSN_MASK);
    out->source = settings->number;
    out->qkey = 0;
    out->srd = *header;
}

/* Answers at once, to a packet of no source. */
static void reply(struct srd *srd, const struct packet *packet, enum operation operation, uint32_t cookie,
                  uint32_t status)
{
    struct packet out;
    write_response(srd, operation, packet->source,
                   &(struct srd_header){packet->srd.epoch, cookie, packet->srd.number, status}, &out);
    srd->common.owner->operations->reply(srd->common.owner, packet, &out);
}

static void owe(struct srd *srd, struct srd_source *source, uint32_t number)
{
    source->due |= 1ull << number % SRD_WINDOW;
    if (source->queued)
        return;
    source->queued = true;
    TAILQ_INSERT_TAIL(&srd->responder->due, source, due_entry);
}

/* The oldest READ of the list, which is free now; or NULL. */
static struct srd_read *take_read(struct srd *srd, struct srd_reads *reads)
{
    struct srd_read *read = TAILQ_FIRST(reads);
    if (!read)
        return NULL;
    TAILQ_REMOVE(reads, read, entry);
    TAILQ_INSERT_HEAD(&srd->responder->free_reads, read, entry);
    srd->responder->read_count--;
    read->source->reads--;
    if (read->number - read->source->floor < SRD_WINDOW)
        read->source->reading &= ~(1ull << read->number % SRD_WINDOW);
    return read;
}

static void owe_nothing(struct srd *srd, struct srd_source *source)
{
    source->due = 0;
    if (source->queued)
        TAILQ_REMOVE(source->held ? &srd->responder->held : &srd->responder->due, source, due_entry);
    source->queued = source->held = false;
}

/* A late READ may have waited until a newer packet has its place. */
static void refuse_read(struct srd *srd, struct srd_source *source, uint32_t number)
{
    if (number - source->floor >= SRD_WINDOW)
        return;
    source->statuses[number % SRD_WINDOW] = SRD_NO_ACCESS;
    owe(srd, source, number);
}

static cold bool transmit_read(struct srd *srd, struct packet *out, struct iovec *pieces)
{
    struct engine_owner *owner = srd->common.owner;
    const struct srd_read *read = take_read(srd, &srd->responder->reads);
    struct srd_source *source = read->source;
    pieces[0] = (struct iovec){NULL, 0};
    if (read->length && owner->operations->remote_memory(owner, read->rkey, read->address, read->length,
                                                         IBV_ACCESS_REMOTE_READ, pieces)) {
        refuse_read(srd, source, read->number);
        return false;
    }
    write_response(srd, OPERATION_READ_RESPONSE_ONLY, source->number,
                   &(struct srd_header){source->epoch, source->cookie, read->number, 0}, out);
    out->payload = (struct payload){.length = read->length, .count = read->length > 0, .pieces = pieces};
    return true;
}

/* The numbers after the floor whose answers are due: bit 0 is the floor's. */
static uint64_t due_after_floor(const struct srd_source *source)
{
    uint32_t turn = source->floor % SRD_WINDOW;
    return turn ? source->due >> turn | source->due << (SRD_WINDOW - turn) : source->due;
}

/* One answer has no payload; several are the bytes from the first number that is due to the last one. */
static void transmit_responses(struct srd *srd, struct packet *out, struct iovec *pieces)
{
    struct srd_source *source = TAILQ_FIRST(&srd->responder->due);
    uint8_t *statuses = srd->responder->response;
    uint64_t due = due_after_floor(source);
    uint32_t skipped = (uint32_t)__builtin_ctzll(due), first = source->floor + skipped;
    uint32_t count = SRD_WINDOW - (uint32_t)__builtin_clzll(due) - skipped;
    for (uint32_t i = 0; i < count; i++)
        statuses[i] = source->statuses[(first + i) % SRD_WINDOW];
    owe_nothing(srd, source);
    write_response(srd, OPERATION_ACKNOWLEDGE, source->number,
                   &(struct srd_header){source->epoch, source->cookie, first, count > 1 ? 0 : statuses[0]}, out);
    pieces[0] = (struct iovec){statuses, count};
    if (count > 1)
        out->payload = (struct payload){.length = count, .count = 1, .pieces = pieces};
}

bool srd_sources_transmit(struct srd *srd, struct packet *out, struct iovec *pieces)
{
    if (!TAILQ_EMPTY(&srd->responder->reads))
        return transmit_read(srd, out, pieces);
    transmit_responses(srd, out, pieces);
    return true;
}

void srd_sources_lose(struct srd *srd)
{
    if (!take_read(srd, &srd->responder->reads))
        owe_nothing(srd, TAILQ_FIRST(&srd->responder->due));
}

void srd_sources_hold(struct srd *srd)
{
    struct srd_responder *responder = srd->responder;
    struct srd_read *read = TAILQ_FIRST(&responder->reads);
    struct srd_source *source = TAILQ_FIRST(&responder->due);
    if (read) {
        TAILQ_REMOVE(&responder->reads, read, entry);
        TAILQ_INSERT_TAIL(&responder->held_reads, read, entry);
    } else {
        TAILQ_REMOVE(&responder->due, source, due_entry);
        TAILQ_INSERT_TAIL(&responder->held, source, due_entry);
        source->held = true;
    }
}

/* The answers that waited are older than those that are owed since. */
void srd_sources_retry(struct srd *srd)
{
    struct srd_responder *responder = srd->responder;
    struct srd_source *source;
    TAILQ_CONCAT(&responder->held_reads, &responder->reads, entry);
    TAILQ_CONCAT(&responder->reads, &responder->held_reads, entry);
    while ((source = TAILQ_LAST(&responder->held, srd_sources))) {
        TAILQ_REMOVE(&responder->held, source, due_entry);
        TAILQ_INSERT_HEAD(&responder->due, source, due_entry);
        source->held = false;
    }
}

/* ---- requests ---- */

static cold void drop_request(struct srd *srd, const struct packet *packet, enum reason reason)
{
    srd->common.owner->operations->dropped(srd->common.owner, packet, reason);
}

/* Forgets the answers before the sender's floor, which it does not wait for any more. False: the numbers are
 * impossible. */
static bool advance_floor(struct srd *srd, struct srd_source *source, const struct srd_header *header)
{
    uint32_t ahead = header->number - header->floor, moved = header->floor - source->floor;
    if (ahead >= SRD_WINDOW)
        return false;
    if ((int32_t)moved <= 0)
        return true; /* an older packet, which was overtaken */
    if (moved >= SRD_WINDOW) {
        memset(source->statuses, SRD_OPEN, sizeof source->statuses);
        source->due = source->reading = 0;
    }
    for (uint32_t i = 0; i < moved && moved < SRD_WINDOW; i++) {
        source->statuses[(source->floor + i) % SRD_WINDOW] = SRD_OPEN;
        source->due &= ~(1ull << (source->floor + i) % SRD_WINDOW);
        source->reading &= ~(1ull << (source->floor + i) % SRD_WINDOW);
    }
    source->floor = header->floor;
    if (!source->due)
        owe_nothing(srd, source);
    return true;
}

static void make_reads(struct srd *srd)
{
    struct engine_owner *owner = srd->common.owner;
    struct srd_read *reads = owner->operations->room(owner, SRD_READS * sizeof *reads);
    for (unsigned i = 0; reads && i < SRD_READS; i++)
        TAILQ_INSERT_TAIL(&srd->responder->free_reads, &reads[i], entry);
    srd->responder->has_reads = reads != NULL;
}

/* A queue of responses that is full loses a READ, which is repeated: the oldest whose requester takes nothing, so that
 * such ones hold up no others; or this one. A repeat of a READ that waits changes nothing. */
static cold void owe_read(struct srd *srd, struct srd_source *source, const struct packet *packet)
{
    struct srd_responder *responder = srd->responder;
    uint64_t bit = 1ull << packet->srd.number % SRD_WINDOW;
    if (source->reading & bit)
        return;
    if (!responder->has_reads)
        make_reads(srd);
    if (TAILQ_EMPTY(&responder->free_reads))
        take_read(srd, &responder->held_reads);
    struct srd_read *read = TAILQ_FIRST(&responder->free_reads);
    if (!read)
        return;
    TAILQ_REMOVE(&responder->free_reads, read, entry);
    *read = (struct srd_read){.source = source,
                              .number = packet->srd.number,
                              .rkey = packet->rkey,
                              .length = packet->length,
                              .address = packet->address};
    TAILQ_INSERT_TAIL(&responder->reads, read, entry);
    responder->read_count++;
    source->reads++;
    source->reading |= bit;
}

static uint8_t execute_once(struct srd *srd, const struct packet *packet)
{
    if (packet->qkey == srd->common.settings.qkey)
        return srd_store_execute(srd, packet);
    drop_request(srd, packet, REASON_PACKET_QKEY);
    return SRD_NO_QP; /* nobody has published EFA's answer to a wrong Q_Key */
}

static void take_request(struct srd *srd, struct srd_source *source, const struct packet *packet)
{
    uint8_t *status = &source->statuses[packet->srd.number % SRD_WINDOW];
    bool reads = op_table[packet->opcode].flags & OP_READ;
    if (*status == SRD_OPEN) {
        uint8_t found = execute_once(srd, packet);
        if (found == SRD_LOST)
            return drop_request(srd, packet, REASON_PACKET_PULL);
        if (found == SRD_DONE && reads)
            return owe_read(srd, source, packet);
        *status = found;
        if (found == SRD_NO_RECEIVE)
            owner_note(srd->common.owner, EVENT_RNR_SENT, packet->srd.number & PSN_MASK, SYNDROME_RNR);
    }
    owe(srd, source, packet->srd.number);
}

static void take_data_of(struct srd *srd, const struct packet *packet)
{
    struct srd_source *source = find_source(srd, packet);
    if (!source || source->cookie != packet->srd.cookie)
        return reply(srd, packet, OPERATION_ACKNOWLEDGE, packet->srd.cookie, SRD_STRANGER);
    if (!advance_floor(srd, source, &packet->srd))
        return drop_request(srd, packet, REASON_PACKET_PSN);
    note_use(srd, source);
    if (packet->srd.number - source->floor < SRD_WINDOW) /* otherwise its sender has ended it */
        take_request(srd, source, packet);
}

static cold void greet(struct srd *srd, const struct packet *packet)
{
    struct srd_source *source = find_source(srd, packet);
    source = source ? source : add_source(srd, packet);
    if (source)
        reply(srd, packet, OPERATION_WELCOME, source->cookie, 0);
}

void srd_sources_receive(struct srd *srd, const struct packet *packet)
{
    if (packet->payload.length > store_longest(srd))
        return drop_request(srd, packet, REASON_PACKET_TOO_LONG);
    if (op_operation(packet->opcode) == OPERATION_HELLO)
        greet(srd, packet);
    else
        take_data_of(srd, packet);
}
