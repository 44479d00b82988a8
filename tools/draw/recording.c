#include "draw/recording.h"

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "record/record.h"
#include "replay/replay_words.h"
#include "wire/op.h"
#include "wire/wire.h"

enum { WORDS = 512, NAME = 64 };

/* A queue pair of a process; if `queue` is 0, the process itself. */
struct teller {
    uint32_t process, queue;
    uint32_t name; /* "pid 4711 client" */
    uint32_t number, peer;
    uint64_t time; /* of the last record that had one */
    uint32_t psn;  /* of the packet in hand */
};

struct reading {
    struct records *records;
    const struct bytes *bytes;
    const struct records_choice *choice;
    uint32_t file, number;
    struct lookup tellers; /* by process and queue: places in the list */
    struct teller *list;
    size_t count, room;
    uint64_t offset;        /* the realtime clock less the clock that all processes share, in nanoseconds */
    uint64_t start, latest; /* times of the first and the latest entry; 0: not known yet */
};

static struct teller *teller_of(struct reading *reading, uint32_t process, uint32_t queue)
{
    uint32_t *place = lookup_find(&reading->tellers, process, queue);
    if (*place == LOOKUP_NONE) {
        *place = (uint32_t)reading->count;
        *LIST_ADD(reading->list, reading->count, reading->room) =
            (struct teller){.process = process, .queue = queue, .number = LOOKUP_NONE, .peer = LOOKUP_NONE};
    }
    return &reading->list[*place];
}

static void name_process(struct reading *reading, const struct record *record)
{
    struct teller *process = teller_of(reading, record->process, 0);
    char name[NAME + 32];
    int length = record->length < NAME ? (int)record->length : NAME;
    snprintf(name, sizeof name, "pid %" PRIu32 " %.*s", record->process, length, (const char *)record->bytes);
    process->name = strings_add(&reading->records->strings, name, sizeof name);
    if (!reading->offset)
        reading->offset = record->PROCESS.realtime - record->PROCESS.clock;
}

/* --- what happened */

struct kind {
    enum happening happening; /* of kinds that replay_words has words for */
    bool error;
};

/* Other kinds that replay_words has words for are HAPPENING_STATE. */
static const struct kind kinds[RECORD_KINDS] = {
    [RECORD_POST] = {HAPPENING_POST, false},          [RECORD_SENT] = {HAPPENING_SENT, false},
    [RECORD_RECEIVED] = {HAPPENING_RECEIVED, false},  [RECORD_EXPIRE] = {HAPPENING_TIMER, false},
    [RECORD_RESET] = {HAPPENING_RESET, false},        [RECORD_DESTROY] = {HAPPENING_RESET, false},
    [RECORD_FAILED] = {HAPPENING_STATE, true},        [RECORD_UNREADABLE] = {HAPPENING_OTHER, true},
    [RECORD_LOCAL_MEMORY] = {HAPPENING_OTHER, true},  [RECORD_RECEIVE_MEMORY] = {HAPPENING_OTHER, true},
    [RECORD_REMOTE_MEMORY] = {HAPPENING_OTHER, true}, [RECORD_STORE] = {HAPPENING_OTHER, true},
    [RECORD_TAKE_RECEIVE] = {HAPPENING_OTHER, false}, [RECORD_NOTE] = {HAPPENING_OTHER, false},
    [RECORD_EVENT] = {HAPPENING_OTHER, false},        [RECORD_DROPPED] = {HAPPENING_OTHER, false},
};

static bool is_local(uint64_t opcode)
{
    return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

static enum happening happening_of(const struct record *record)
{
    if (record->kind == RECORD_POST && is_local(record->POST.opcode))
        return HAPPENING_POST_LOCAL;
    return kinds[record->kind].happening ? kinds[record->kind].happening : HAPPENING_STATE;
}

static bool is_error(const struct record *record)
{
    if (record->kind == RECORD_SENT)
        return record->SENT.status != IBV_WC_SUCCESS;
    if (record->kind == RECORD_RECEIVED)
        return record->RECEIVED.status != IBV_WC_SUCCESS;
    return kinds[record->kind].error;
}

/* Returns whether the record becomes an entry. A receive that was found does not: its end becomes one. */
static bool is_told(const struct record *record)
{
    return record->queue && (record->kind != RECORD_TAKE_RECEIVE || record->TAKE_RECEIVE.found != 1);
}

/* --- entries */

/* The record's time, never before the latest one: records have the order in which they happened, while processors'
 * clocks may differ. */
static uint64_t moment_of(struct reading *reading, const struct teller *teller)
{
    uint64_t when = teller->time + reading->offset;
    if (when > reading->latest)
        reading->latest = when;
    reading->start = reading->start ? reading->start : reading->latest;
    return reading->latest;
}

/* NULL: the user's choice leaves it out. */
static struct entry *add_entry(struct reading *reading, const struct teller *teller)
{
    struct records *records = reading->records;
    const struct teller *process = teller_of(reading, teller->process, 0);
    uint64_t when = moment_of(reading, teller);
    double seconds = (double)(int64_t)(when - reading->start) / 1e9;
    if (seconds < reading->choice->from || seconds > reading->choice->to)
        return NULL;
    if (records->count >= reading->choice->most) {
        records->left_out++;
        return NULL;
    }
    struct entry *entry = LIST_ADD(records->list, records->count, records->room);
    *entry = (struct entry){.nanoseconds = when,
                            .file = reading->file,
                            .number = reading->number,
                            .from = teller->number,
                            .process = process->name,
                            .direction = PCAP_SENT};
    return entry;
}

static void add_happening(struct reading *reading, const struct teller *teller, const struct record *record)
{
    char words[WORDS];
    replay_words(record, words, sizeof words);
    if (!*words || teller->number == LOOKUP_NONE)
        return;
    struct entry *entry = add_entry(reading, teller);
    if (!entry)
        return;
    entry->note = strings_add(&reading->records->strings, words, sizeof words);
    entry->happening = happening_of(record);
    entry->failed = is_error(record);
    entry->packet.destination = teller->peer;
    entry->packet.psn = teller->psn;
    reading->records->happenings++;
}

/* Reads a packet whose headers begin after `skip` bytes (0, or 1: a byte with their length). False: it is damaged. */
static bool read_packet(const struct record *record, size_t skip, uint64_t payload, struct packet *packet)
{
    unsigned headers, pad;
    size_t length = record->length > skip ? record->length - skip : 0;
    if (skip && length > record->bytes[0])
        length = record->bytes[0];
    if (!length || wire_decode(record->bytes + skip, length, packet, &headers, &pad) != WIRE_FINE)
        return false;
    packet->payload = (struct payload){.length = (uint32_t)payload};
    return true;
}

/* The sender of a packet that arrived: a datagram names it, a connected queue pair hears its peer alone. */
static uint32_t sender_of(const struct teller *teller, const struct packet *packet)
{
    return op_table[packet->opcode].flags & OP_DETH ? packet->source : teller->peer;
}

static void add_packet(struct reading *reading, struct teller *teller, const struct packet *packet, bool sent)
{
    teller->psn = packet->psn;
    if (sent || op_table[packet->opcode].flags & OP_DETH)
        teller->peer = sent ? packet->destination : packet->source;
    struct entry *entry = add_entry(reading, teller);
    if (!entry)
        return;
    entry->direction = sent ? PCAP_SENT : PCAP_RECEIVED;
    entry->from = sent ? teller->number : sender_of(teller, packet);
    entry->packet = *packet;
    entry->known = true;
}

/* The settings of a connected queue pair name its peer; a post of a datagram names the receiver. */
static void learn_peer(struct teller *teller, const struct record *record)
{
    uint32_t connected = record->kind == RECORD_CONFIGURE ? record_settings(record).destination : 0;
    if (connected)
        teller->peer = connected & 0xffffff;
    if (record->kind == RECORD_POST && record->POST.has_address)
        teller->peer = (uint32_t)record->POST.remote_qp & 0xffffff;
}

static void hear(struct reading *reading, const struct record *record)
{
    struct packet packet;
    struct teller *teller = teller_of(reading, record->process, record->queue);
    uint64_t when = replay_time(record);
    if (when)
        teller->time = when;
    learn_peer(teller, record);
    if (record->kind == RECORD_TRANSMITTED && read_packet(record, 0, record->TRANSMITTED.payload, &packet))
        add_packet(reading, teller, &packet, true);
    else if ((record->kind == RECORD_RECEIVE || record->kind == RECORD_HEAR) &&
             read_packet(record, 1, record->RECEIVE.payload, &packet))
        add_packet(reading, teller, &packet, false);
    else if (is_told(record))
        add_happening(reading, teller, record);
}

/* --- the file */

/* A queue pair's number is not in its first record, so a first pass learns numbers, peers and all tellers. */
static void learn(struct reading *reading, const struct record *record)
{
    teller_of(reading, record->process, 0);
    struct teller *teller = teller_of(reading, record->process, record->queue);
    if (record->kind == RECORD_PROCESS)
        name_process(reading, record);
    if (record->kind == RECORD_CONFIGURE)
        teller->number = (uint32_t)record->CONFIGURE.number_of_qp & 0xffffff;
    if (teller->peer == LOOKUP_NONE)
        learn_peer(teller, record);
}

/* The peer of a queue pair that was never connected is the queue pair that is connected with it. */
static void learn_callers(struct reading *reading)
{
    struct lookup callers = {0};
    for (size_t i = 0; i < reading->count; i++)
        if (reading->list[i].peer != LOOKUP_NONE)
            *lookup_find(&callers, reading->list[i].peer, 0) = reading->list[i].number;
    for (size_t i = 0; i < reading->count; i++)
        if (reading->list[i].peer == LOOKUP_NONE && reading->list[i].number != LOOKUP_NONE)
            reading->list[i].peer = *lookup_find(&callers, reading->list[i].number, 0);
    lookup_free(&callers);
}

static enum record_fault each_record(struct reading *reading, size_t *at,
                                     void (*each)(struct reading *, const struct record *))
{
    struct record record;
    size_t size;
    const uint8_t *bytes = reading->bytes->bytes, *end = bytes + reading->bytes->length;
    enum record_fault fault;
    *at = RECORDING_HEAD;
    reading->number = 0;
    while ((fault = record_read(bytes + *at, (size_t)(end - bytes) - *at, &record, &size)) == RECORD_FINE) {
        reading->number++;
        each(reading, &record);
        *at += size;
    }
    return fault;
}

static bool read_records(struct reading *reading, const char *path)
{
    size_t at;
    each_record(reading, &at, learn);
    learn_callers(reading);
    enum record_fault fault = each_record(reading, &at, hear);
    if (fault == RECORD_CUT)
        complain("%s: ends within a record, at byte %zu: the process that wrote it, or its disk, ended then", path, at);
    if (fault == RECORD_DAMAGED)
        complain("%s: damaged at byte %zu; what follows was not read", path, at);
    free(reading->list);
    lookup_free(&reading->tellers);
    return fault == RECORD_END;
}

bool recording_is(const struct bytes *bytes)
{
    uint32_t version;
    enum record_fault fault = record_check_head(bytes->bytes, bytes->length, &version);
    return fault == RECORD_FINE || fault == RECORD_VERSION;
}

bool recording_read(struct records *records, const char *path, const struct bytes *bytes, uint32_t file,
                    const struct records_choice *choice)
{
    uint32_t version;
    if (record_check_head(bytes->bytes, bytes->length, &version) == RECORD_VERSION)
        return complain_and(false,
                            "%s: it has the form %" PRIu32
                            ", and this softverbs reads %d. The softverbs that wrote it reads it.",
                            path, version, RECORDING_VERSION);
    records->recordings++;
    struct reading reading = {.records = records, .bytes = bytes, .choice = choice, .file = file};
    return read_records(&reading, path);
}
