#include "draw/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "draw/page_parts.h"
#include "print/emit.h"
#include "wire/bytes.h"
#include "wire/op.h"
#include "wire/psn.h"

enum form { NUMBER, HEX };

static const struct field {
    const char *header, *name;
    enum form form;
} fields[] = {
#define FIELD(header, name, flags, member, form) {header, name, form},
#include "draw/fields.def"
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof *fields };

static const struct word {
    const char *word, *sentence;
} marks[] = {
#define MARK(NAME, word, sentence) {word, sentence},
#include "draw/marks.def"
};
static const struct word causes[] = {
#define CAUSE(NAME, word, sentence) {word, sentence},
#include "draw/marks.def"
};
static const struct word states[] = {
#define STATE(NAME, word, sentence) {word, sentence},
#include "draw/marks.def"
};
static const struct word happenings[] = {
#define HAPPENING(NAME, word, sentence) {word, sentence},
#include "draw/marks.def"
};

/* The kinds of operations, for colours and filters. An operation is of the first kind whose flags it has. */
static const struct {
    uint32_t flags;
    const char *word;
} kinds[] = {
    {OP_CNP, "cnp"},
    {OP_ATOMICACKETH, "atomic response"},
    {OP_RESPONSE | OP_PAYLOAD, "read response"},
    {OP_RESPONSE, "ack"},
    {OP_READ, "read"},
    {OP_ATOMIC, "atomic"},
    {OP_FLUSH, "flush"},
    {OP_ATOMIC_WRITE, "atomic write"},
    {OP_WRITE, "write"},
    {OP_SEND, "send"},
    {0, "other"},
};

/* Writes a string of JSON that a script in HTML may contain: without characters that could end the script. */
static void put_string(FILE *out, const char *text)
{
    json_t *string = emit_text(text);
    char *quoted = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    for (const char *at = quoted ? quoted : "\"\""; *at; at++)
        if (*at == '<' || *at == '>' || *at == '&')
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    free(quoted);
    json_decref(string);
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
}

/* Writes an index, or -1 for LOOKUP_NONE. */
static void put_index(FILE *out, uint32_t index)
{
    fprintf(out, index == LOOKUP_NONE ? ",-1" : ",%" PRIu32, index);
}

/* --- tables */

static void put_table(FILE *out, const char *name, const struct word *table, size_t count)
{
    fprintf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",[" : "[", out);
        put_string(out, table[i].word);
        fputc(',', out);
        put_string(out, table[i].sentence);
        fputc(']', out);
    }
    fputc(']', out);
}

static const char *kind_of(uint32_t flags)
{
    size_t i = 0;
    while ((flags & kinds[i].flags) != kinds[i].flags)
        i++;
    return kinds[i].word;
}

static void put_fields(FILE *out)
{
    fputs(",\n\"fields\":[", out);
    for (size_t i = 0; i < FIELDS; i++)
        fprintf(out, "%s[\"%s\",\"%s\"]", i ? "," : "", fields[i].header, fields[i].name);
    fputs("]", out);
}

static void put_field_numbers(FILE *out, uint32_t flags)
{
    unsigned number = 0, put = 0;
    fputs(",[", out);
#define FIELD(header, name, of, member, form)                                                                          \
    if (!(of) || flags & (of))                                                                                         \
        fprintf(out, put++ ? ",%u" : "%u", number);                                                                    \
    number++;
#include "draw/fields.def"
#undef FIELD
    fputs("]", out);
}

/* Each operation: name, kind, whether it begins and ends a message, whether it is a response, its fields. */
static void put_operations(FILE *out)
{
    bool first = true;
    fputs(",\n\"operations\":{", out);
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const struct op *op = op_find((uint8_t)opcode);
        if (!op)
            continue;
        fprintf(out, "%s\"%u\":[\"%s\",\"%s\",%d,%d,%d", first ? "" : ",\n", opcode, op->name, kind_of(op->flags),
                !!(op->flags & OP_START), !!(op->flags & OP_END), !!(op->flags & OP_RESPONSE));
        put_field_numbers(out, op->flags);
        fputs("]", out);
        first = false;
    }
    fputs("}", out);
}

static void put_rnr_timers(FILE *out)
{
    fputs(",\n\"rnr\":[", out);
    for (unsigned code = 0; code < 32; code++)
        fprintf(out, "%s%lld", code ? "," : "", (long long)rnr_wait((uint8_t)code));
    fputs("]", out);
}

static void put_strings(FILE *out, const struct strings *strings)
{
    fputs(",\n\"strings\":[\"\"", out);
    for (size_t i = 1; i < strings->count; i++) {
        fputs(",\n", out);
        put_string(out, strings->list[i]);
    }
    fputs("]", out);
}

/* --- queue pairs, packets, messages */

static bool is_chosen(const struct page *page, uint32_t flow)
{
    const struct pair *pair = &page->flows->pairs[page->flows->list[flow].pair];
    return page->qp == LOOKUP_NONE || pair->qp[0] == page->qp || pair->qp[1] == page->qp;
}

static void put_pairs(FILE *out, const struct flows *flows)
{
    fputs(",\n\"pairs\":[", out);
    for (size_t i = 0; i < flows->pair_count; i++) {
        const struct pair *pair = &flows->pairs[i];
        fprintf(out, "%s[%" PRIu32 ",%" PRIu32, i ? ",\n" : "", pair->address[0], pair->address[1]);
        put_index(out, pair->qp[0]);
        put_index(out, pair->qp[1]);
        fprintf(out, ",%" PRIu32 ",%" PRIu32 "]", pair->process[0], pair->process[1]);
    }
    fputs("],\n\"flows\":[", out);
    for (size_t i = 0; i < flows->count; i++)
        fprintf(out, "%s[%" PRIu32 ",%d]", i ? "," : "", flows->list[i].pair, flows->list[i].side);
    fputs("]", out);
}

/* Returns whether the packet has this header of IP or UDP; true of other headers, which the operation decides. */
static bool has_header(const struct dissected_ip *ip, const char *header)
{
    return !strcmp(header, "IP") ? ip->known : strcmp(header, "UDP") != 0 || ip->port;
}

/* Writes the value of a field; null: the packet does not have it. */
static void put_value(FILE *out, bool known, enum form form, uint64_t value)
{
    if (!known)
        fputs("null", out);
    else
        fprintf(out, form == HEX ? "\"0x%" PRIx64 "\"" : "%" PRIu64, value);
}

static void put_values(FILE *out, const struct entry *record)
{
    const struct packet *packet = &record->packet;
    const struct dissected_ip *ip = &record->ip;
    uint32_t flags = op_table[packet->opcode].flags;
    bool first = true;
    fputs(",[", out);
#define FIELD(header, name, of, member, form)                                                                          \
    if (!(of) || flags & (of)) {                                                                                       \
        fputs(first ? "" : ",", out);                                                                                  \
        put_value(out, has_header(ip, header), form, (uint64_t)(member));                                              \
        first = false;                                                                                                 \
    }
#include "draw/fields.def"
#undef FIELD
    fputs("]", out);
}

/* Writes nanoseconds since the first packet, and the record's file and number there; -1 without a record. */
static void put_capture(FILE *out, const struct page *page, uint32_t index)
{
    const struct records *records = page->records;
    if (index == LOOKUP_NONE) {
        fputs("-1,-1,-1,", out);
        return;
    }
    const struct entry *record = &records->list[index];
    fprintf(out, "%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",", record->nanoseconds - records->list[0].nanoseconds,
            record->file, record->number);
}

static void put_transit(FILE *out, const struct page *page, const struct transit *transit)
{
    const struct entry *record = transit_record(page->records, transit);
    const struct entry *there = transit->received == LOOKUP_NONE ? record : &page->records->list[transit->received];
    put_capture(out, page, transit->sent);
    put_capture(out, page, transit->received);
    fprintf(out, "%" PRIu32 ",%d", transit->flow, record->known ? record->packet.opcode : -1);
    fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%d", record->packet.psn, record->packet.payload.length,
            transit->marks, (int)transit->cause);
    put_index(out, transit->related);
    fprintf(out, ",%" PRIu64, transit->waited);
    put_index(out, transit->message);
    fprintf(out, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%d", record->note ? record->note : there->note,
            record->verdict ? record->verdict : there->verdict, record->message, (int)record->happening);
    fprintf(out, ",%" PRIu32, transit->before);
    if (record->known)
        put_values(out, record);
    else
        fputs(",[]", out);
}

/* Packets of queue pairs that were not chosen are 0, so that indices stay. */
static void put_transits(FILE *out, const struct page *page)
{
    fputs(",\n\"packets\":[", out);
    for (size_t i = 0; i < page->ladder->count; i++) {
        fputs(i ? ",\n" : "", out);
        if (!is_chosen(page, page->ladder->list[i].flow)) {
            fputs("0", out);
            continue;
        }
        fputs("[", out);
        put_transit(out, page, &page->ladder->list[i]);
        fputs("]", out);
    }
    fputs("]", out);
}

static void put_messages(FILE *out, const struct page *page)
{
    fputs(",\n\"messages\":[", out);
    for (size_t i = 0; i < page->ladder->message_count; i++) {
        const struct message *message = &page->ladder->messages[i];
        fprintf(out,
                "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
                ",%" PRIu32 ",%" PRIu64 ",%d,%d",
                i ? ",\n" : "", message->flow, message->number, message->opcode, message->first_psn, message->last_psn,
                message->first, message->last, message->packets, message->repeats, message->bytes, (int)message->state,
                message->syndrome);
        put_index(out, message->answered);
        fprintf(out, ",%d", message->begun && message->ended);
        put_index(out, message->posted);
        put_index(out, message->completed);
        put_index(out, message->received);
        fputs("]", out);
    }
    fputs("]", out);
}

static void put_data(FILE *out, const struct page *page)
{
    const struct records *records = page->records;
    fprintf(out, "{\"form\":1,\n\"title\":");
    put_string(out, page->title);
    fprintf(out, ",\n\"start\":\"%" PRIu64 "\",\"records\":%zu,\"left_out\":%zu,\"cut\":%zu,\"other\":%zu",
            records->count ? records->list[0].nanoseconds : 0, records->count, records->left_out, records->cut,
            records->other);
    put_table(out, "marks", marks, MARKS);
    put_table(out, "causes", causes, CAUSES);
    put_table(out, "states", states, MESSAGE_STATES);
    put_table(out, "happenings", happenings, HAPPENINGS);
    put_fields(out);
    put_operations(out);
    put_rnr_timers(out);
    put_strings(out, &records->strings);
    put_pairs(out, page->flows);
    put_messages(out, page);
    put_transits(out, page);
    fputs("}\n", out);
}

void page_write(FILE *out, const struct page *page)
{
    fwrite(page_before_title, 1, page_before_title_length, out);
    put_escaped(out, page->title);
    fwrite(page_before_data, 1, page_before_data_length, out);
    put_data(out, page);
    fwrite(page_after_data, 1, page_after_data_length, out);
}
