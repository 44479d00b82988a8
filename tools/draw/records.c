#include "draw/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "decode/datagrams.h"
#include "draw/recording.h"
#include "wire/op.h"

/* The arguments of a visit of the packets in a datagram. */
struct visit {
    struct records *records;
    const struct pcap_record *captured;
    uint32_t file, number;
};

enum { COMMENT_ROOM = 512 };

/* "pid 4711 server; qp 0x11 to 0x12; fault: dropped" of softverbs; what other programs wrote is a note as it is. */
static void read_comment(struct records *records, struct entry *record, const struct pcap_record *captured)
{
    char text[COMMENT_ROOM];
    int pid;
    unsigned from, to;
    snprintf(text, sizeof text, "%.*s", (int)(captured->comment_length & 0xffff), captured->comment);
    for (size_t end = strlen(text); end && text[end - 1] == ' ';)
        text[--end] = 0;
    char *rest = text;
    if (sscanf(text, "pid %d ", &pid) == 1) {
        rest = strchrnul(text, ';');
        record->process = strings_add(&records->strings, text, (size_t)(rest - text));
    }
    if (rest != text && sscanf(rest, "; qp 0x%x to 0x%x", &from, &to) == 2) {
        record->from = from & 0xffffff;
        rest = strchrnul(rest + 1, ';');
    }
    rest += strspn(rest, "; ");
    record->note = strings_add(&records->strings, rest, sizeof text);
}

static void keep_packet(struct records *records, struct entry *record, const struct judged *judged)
{
    static const char manager[] = " | CM ";
    const char *message = strstr(judged->description, manager);
    record->known = judged->known;
    record->verdict = strings_add(&records->strings, judged->verdict, sizeof judged->verdict);
    record->message = message ? strings_add(&records->strings, message + 3, sizeof judged->description) : 0;
    if (!judged->known)
        return;
    record->packet = judged->packet;
    record->packet.payload = (struct payload){.length = *judged->verdict ? 0 : judged->packet.payload.length};
    record->packet.lrh = record->packet.grh = NULL;
    if (op_table[judged->packet.opcode].flags & OP_DETH)
        record->from = judged->packet.source;
}

static void add_packet(void *context, struct dissection *datagram)
{
    static struct judged judged;
    struct visit *visit = context;
    struct records *records = visit->records;
    char source[DATAGRAMS_ADDRESS], destination[DATAGRAMS_ADDRESS];
    datagrams_judge(datagram, &judged);
    datagrams_addresses(datagram, source, destination);
    struct entry *record = LIST_ADD(records->list, records->count, records->room);
    *record = (struct entry){.nanoseconds = visit->captured->nanoseconds,
                             .file = visit->file,
                             .number = visit->number,
                             .source = strings_add(&records->strings, source, sizeof source),
                             .destination = strings_add(&records->strings, destination, sizeof destination),
                             .from = LOOKUP_NONE,
                             .ip = datagram->ip,
                             .direction = visit->captured->direction};
    if (visit->captured->comment)
        read_comment(records, record, visit->captured);
    keep_packet(records, record, &judged);
}

static void read_captured(struct records *records, const struct pcap_record *captured, uint32_t file, uint32_t number)
{
    struct dissection datagram;
    enum dissected kind = dissect(captured, &datagram);
    records->other += kind == DISSECTED_OTHER;
    records->cut += kind == DISSECTED_CUT;
    if (kind == DISSECTED_ROCE || kind == DISSECTED_INFINIBAND)
        datagrams_each(&datagram, add_packet, &(struct visit){records, captured, file, number});
}

static void read_all_records(struct records *records, struct pcap *pcap, uint32_t file,
                             const struct records_choice *choice)
{
    struct pcap_record captured;
    uint64_t start = 0;
    for (uint32_t number = 1; pcap_next(pcap, &captured); number++) {
        start = start ? start : captured.nanoseconds;
        double seconds = (double)(int64_t)(captured.nanoseconds - start) / 1e9;
        if (seconds < choice->from || seconds > choice->to)
            continue;
        if (records->count < choice->most)
            read_captured(records, &captured, file, number);
        else
            records->left_out++;
    }
}

/* Reads the capture in the bytes, and frees them. */
static bool read_capture(struct records *records, const char *path, struct bytes bytes, uint32_t file,
                         const struct records_choice *choice)
{
    struct pcap pcap;
    if (pcap_adopt(&pcap, bytes.bytes, bytes.length)) {
        complain(bytes.length ? "%s: neither a capture (pcap or pcapng) nor a recording (softverbs run --record)"
                              : "%s is empty.",
                 path);
        pcap_close(&pcap);
        return false;
    }
    read_all_records(records, &pcap, file, choice);
    if (pcap.skipped || pcap.lost)
        complain("%s: %zu bytes that are not whole blocks were skipped; a writer may have been killed there", path,
                 pcap.skipped + pcap.lost);
    if (pcap.broken)
        complain("%s: broken at byte %zu; what follows was not read", path, pcap.at);
    bool whole = !pcap.broken && !pcap.skipped;
    pcap_close(&pcap);
    return whole;
}

bool records_read(struct records *records, const char *path, uint32_t file, const struct records_choice *choice)
{
    struct bytes bytes;
    int error = pcap_read_file(path, &bytes.bytes, &bytes.length);
    if (error) {
        complain("%s: %s", path, strerror(error));
        free(bytes.bytes);
        return false;
    }
    if (!recording_is(&bytes))
        return read_capture(records, path, bytes, file, choice);
    bool whole = recording_read(records, path, &bytes, file, choice);
    free(bytes.bytes);
    return whole;
}

static int compare_records(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    if (one->nanoseconds != other->nanoseconds)
        return one->nanoseconds < other->nanoseconds ? -1 : 1;
    if (one->file != other->file)
        return one->file < other->file ? -1 : 1;
    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    return one->read < other->read ? -1 : one->read > other->read; /* packets of a datagram */
}

void records_sort(struct records *records)
{
    for (size_t i = 0; i < records->count; i++)
        records->list[i].read = i;
    for (size_t i = 1; i < records->count; i++)
        if (compare_records(&records->list[i - 1], &records->list[i]) > 0) {
            qsort(records->list, records->count, sizeof *records->list, compare_records);
            return;
        }
}

void records_free(struct records *records)
{
    strings_free(&records->strings);
    free(records->list);
}
