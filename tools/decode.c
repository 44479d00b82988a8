/* softverbs decode: what a capture holds of RoCEv2 or InfiniBand, one line a packet, and whether we would send the same
 * bytes. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "dissect.h"
#include "print/emit.h"
#include "print/screen.h"
#include "wire/cm.h"
#include "wire/wire.h"

enum { DATAGRAM_ROOM = 65536, LINE_ROOM = 2048 };

struct tally {
    unsigned long packets; /* RoCEv2 and InfiniBand */
    bool infiniband;       /* there were some of it */
    unsigned long wrong;   /* ICRC, fault, or encoded to other bytes */
    unsigned long cut, other;
    unsigned long uncut; /* datagrams of several packets */
    size_t skipped;      /* bytes of blocks that are not whole */
    json_t *list;        /* of packets; NULL: they are printed */
};

static bool is_mapped(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(gid, mapped, sizeof mapped);
}

static const char *show_address(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
    bool ipv4 = is_mapped(gid);
    return inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, text, INET6_ADDRSTRLEN);
}

/* The first byte in which what we would send differs from what was captured, or -1. */
static long find_difference(const struct dissection *datagram, const struct packet *packet)
{
    static uint8_t again[DATAGRAM_ROOM];
    size_t length = datagram_encode(&datagram->route, packet, again, sizeof again);
    if (datagram->lrh && length) /* the ICRC, which is of RoCEv2 */
        memcpy(again + length - LRH_ICRC, datagram->bytes + datagram->length - LRH_ICRC, LRH_ICRC);
    for (size_t i = 0; i < datagram->length; i++)
        if (i >= length || again[i] != datagram->bytes[i])
            return (long)i;
    return length > datagram->length ? (long)datagram->length : -1;
}

/* As find_difference. */
static long find_message_difference(const struct cm_message *message, const uint8_t bytes[MAD_BYTES])
{
    uint8_t again[MAD_BYTES];
    cm_encode(message, again);
    for (unsigned i = 0; i < MAD_BYTES; i++)
        if (again[i] != bytes[i])
            return (long)i;
    return -1;
}

/* A message of the connection manager, which comes to queue pair 1, follows the packet's own description. */
static void judge_message(const struct packet *packet, char *description, char *verdict)
{
    uint8_t bytes[MAD_BYTES];
    struct cm_message message;
    size_t used = strlen(description);
    if (packet->destination != MAD_QP || packet->qkey != MAD_QKEY || packet->payload.length < MAD_BYTES)
        return;
    payload_copy(&packet->payload, 0, &(struct iovec){bytes, sizeof bytes}, 1);
    if (cm_decode(bytes, sizeof bytes, &message) != CM_FINE)
        return;
    snprintf(description + used, LINE_ROOM - used, " | CM ");
    used = strlen(description);
    cm_describe(&message, description + used, LINE_ROOM - used);
    long difference = find_message_difference(&message, bytes);
    if (difference >= 0 && !*verdict)
        snprintf(verdict, LINE_ROOM, "its message encodes differently at byte %ld", difference);
}

static uint32_t get_little(const uint8_t *from, unsigned bytes)
{
    uint32_t value = 0;
    while (bytes--)
        value = value << 8 | from[bytes];
    return value;
}

static enum wire_fault read_packet(struct dissection *datagram, struct packet *packet, struct iovec *piece)
{
    const uint8_t *icrc = datagram->bytes + datagram->length - LRH_ICRC;
    if (!datagram->lrh)
        return datagram_decode(&datagram->route, datagram->bytes, datagram->length, packet, piece);
    if (lrh_icrc(datagram->lrh, (uint32_t)(icrc - datagram->lrh)) != get_little(icrc, LRH_ICRC))
        return WIRE_ICRC;
    return datagram_read(datagram->bytes, datagram->length - LRH_ICRC, packet, piece);
}

static bool vcrc_fits(const struct dissection *datagram)
{
    const uint8_t *vcrc = datagram->bytes + datagram->length;
    return !datagram->lrh || lrh_vcrc(datagram->lrh, (uint32_t)(vcrc - datagram->lrh)) == get_little(vcrc, 2);
}

/* Describes the datagram, the headers also where the rest is bad; writes what is wrong with it to `verdict`, or "". */
static void judge(struct dissection *datagram, char *description, char *verdict)
{
    struct packet packet;
    struct iovec piece;
    unsigned headers, pad;
    enum wire_fault fault = read_packet(datagram, &packet, &piece);
    *description = *verdict = 0;
    if (fault != WIRE_FINE) {
        snprintf(verdict, LINE_ROOM, "%s", wire_fault_text(fault));
        if (wire_decode(datagram->bytes, datagram->length, &packet, &headers, &pad) == WIRE_FINE)
            wire_describe(&packet, description, LINE_ROOM);
        return;
    }
    wire_describe(&packet, description, LINE_ROOM);
    long difference = find_difference(datagram, &packet);
    if (difference >= 0)
        snprintf(verdict, LINE_ROOM, "encodes differently at byte %ld", difference);
    else if (!vcrc_fits(datagram))
        snprintf(verdict, LINE_ROOM, "the variant CRC is wrong");
    judge_message(&packet, description, verdict);
}

static void emit_packet(const struct tally *tally, const char *source, const char *destination, unsigned long number,
                        double seconds, const char *description, const char *verdict)
{
    json_array_append_new(tally->list,
                          json_pack("{s:I, s:f, s:s, s:s, s:o, s:o}", "number", (json_int_t)number, "seconds", seconds,
                                    "source", source, "destination", destination, "description", emit_text(description),
                                    "wrong", emit_text(*verdict ? verdict : NULL)));
}

static void print_packet(const char *source, const char *destination, unsigned long number, double seconds,
                         const char *description, const char *verdict)
{
    enum { INDENT = 8 };
    char *line;
    if (asprintf(&line, "%5lu %10.6f %s > %s %s%s%s", number, seconds, source, destination, description,
                 *verdict ? " # " : "", verdict) < 0)
        return;
    screen_wrap(stdout, screen_width(stdout), 0, INDENT, line);
    free(line);
}

static void show_datagram(struct dissection *datagram, unsigned long number, double seconds, struct tally *tally)
{
    char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], description[LINE_ROOM], verdict[LINE_ROOM];
    judge(datagram, description, verdict);
    const char *from = show_address(datagram->route.source, source),
               *to = show_address(datagram->route.destination, destination);
    if (datagram->lrh) {
        struct lrh lrh = lrh_read(datagram->lrh);
        snprintf(source, sizeof source, "LID %u", lrh.source);
        snprintf(destination, sizeof destination, "LID %u", lrh.destination);
    }
    if (tally->list)
        emit_packet(tally, from, to, number, seconds, description, verdict);
    else
        print_packet(from, to, number, seconds, description, verdict);
    tally->packets++;
    tally->infiniband |= datagram->lrh != NULL;
    tally->wrong += *verdict != 0;
}

/* -- what a host sends in one piece for its interface to cut (UDP_SEGMENT), and captures show uncut */

enum { SEGMENT_LEAST = 16, SEGMENT_MOST = 4096 + 64 }; /* BTH and ICRC; the largest path MTU with all headers */

static bool is_whole(const struct dissection *datagram, size_t length)
{
    struct packet packet;
    struct iovec piece;
    struct datagram_route route = datagram->route;
    return datagram_decode(&route, datagram->bytes, length, &packet, &piece) != WIRE_ICRC;
}

/* How long the segments are; all of it where it is one packet, right or wrong. The ICRC of the first says so. */
static size_t segment_of(const struct dissection *datagram)
{
    if (datagram->lrh || is_whole(datagram, datagram->length))
        return datagram->length;
    for (size_t length = SEGMENT_LEAST; length < datagram->length && length <= SEGMENT_MOST; length += 4)
        if (is_whole(datagram, length))
            return length;
    return datagram->length;
}

static void show_segments(const struct dissection *whole, unsigned long number, double seconds, struct tally *tally)
{
    size_t most = segment_of(whole), left = whole->length;
    struct dissection segment = *whole;
    tally->uncut += most < left;
    for (; left; left -= segment.length, segment.bytes += segment.length, segment.route.identification++) {
        segment.length = left < most ? left : most;
        show_datagram(&segment, number, seconds, tally);
        if (!segment.length)
            break;
    }
}

static void print_tally(const struct tally *tally)
{
    char line[256];
    snprintf(line, sizeof line, "%lu %s packets, %lu of them wrong; %lu cut by the capture and not checked; %lu others",
             tally->packets, tally->infiniband ? "InfiniBand" : "RoCEv2", tally->wrong, tally->cut, tally->other);
    screen_wrap(stdout, screen_width(stdout), 0, 4, line);
    if (tally->uncut)
        printf("%lu datagrams were captured before the interface cut them into packets\n", tally->uncut);
}

static void decode_records(struct pcap *pcap, struct tally *tally)
{
    struct pcap_record record;
    uint64_t start = 0;
    for (unsigned long number = 1; pcap_next(pcap, &record); number++) {
        struct dissection datagram;
        enum dissected kind = dissect(&record, &datagram);
        start = start ? start : record.nanoseconds;
        tally->other += kind == DISSECTED_OTHER;
        tally->cut += kind == DISSECTED_CUT;
        if (kind == DISSECTED_ROCE || kind == DISSECTED_INFINIBAND)
            show_segments(&datagram, number, (double)(int64_t)(record.nanoseconds - start) / 1e9, tally);
    }
}

/* What was killed while it wrote leaves parts of blocks. */
static void tell_losses(const struct pcap *pcap, const char *path)
{
    if (pcap->skipped)
        complain("%s: %zu bytes that are no whole blocks were skipped; a writer may have been killed there", path,
                 pcap->skipped);
    if (pcap->lost)
        complain("%s: %zu bytes are of packets whose writer was killed within them", path, pcap->lost);
    if (pcap->broken)
        complain("%s: broken at byte %zu; what follows was not read", path, pcap->at);
}

static bool decode_file(const char *path, struct tally *tally)
{
    struct pcap pcap;
    int error = pcap_open(&pcap, path);
    if (error) {
        complain("%s: %s", path, error == EILSEQ ? "not a pcap or pcapng file" : strerror(error));
        return false;
    }
    decode_records(&pcap, tally);
    tell_losses(&pcap, path);
    tally->skipped += pcap.skipped + pcap.lost;
    bool whole = !pcap.broken && !pcap.skipped;
    pcap_close(&pcap);
    return whole;
}

static int run_decode(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct tally tally = {0};
    bool fine = true;
    while (command_option(command, argc, argv, options) != -1)
        if (!tally.list)
            tally.list = json_array();
    if (optind == argc)
        return command_misused(command, "Which file?");
    for (int i = optind; i < argc; i++)
        fine &= decode_file(argv[i], &tally);
    if (tally.list)
        emit(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "packets", tally.list, "roce", (json_int_t)tally.packets,
                       "wrong", (json_int_t)tally.wrong, "cut", (json_int_t)tally.cut, "other", (json_int_t)tally.other,
                       "skipped", (json_int_t)tally.skipped, "uncut", (json_int_t)tally.uncut));
    else
        print_tally(&tally);
    return fine && !tally.wrong ? EXIT_OK : EXIT_NEGATIVE;
}

const struct command decode_command = {
    .name = "decode",
    .arguments = "[--json] FILE...",
    .summary = "Show the RoCEv2 packets of captures",
    .help = "  --json            as an object, see docs/user/json.md\n"
            "\n"
            "Reads pcap and pcapng files, on Ethernet and other links. Each RoCEv2 packet is\n"
            "a line: number, seconds since the first packet, addresses, what it says; so is\n"
            "each of InfiniBand (run --link-layer ib --capture). Its invariant CRC is\n"
            "checked, and that encoding it again gives the same bytes; behind a # stands\n"
            "what is wrong. A message of the connection manager is shown with all its fields\n"
            "that are not 0, and encoded again, too. Packets that the capture cut short are\n"
            "counted, not checked. Where a host hands several packets to its interface in one\n"
            "datagram (UDP segmentation), a capture on that host shows them uncut: each has\n"
            "a line, with the number of the datagram.\n"
            "\n"
            "A writer that was killed leaves a part of a block in a pcapng file. It is passed\n"
            "over, and on stderr stands how many bytes that were.\n"
            "\n"
            "Exit status: 0, or 1 when a packet is wrong or a file cannot be read to its end,\n"
            "or not all of it. What softverbs itself marked as not whole does not count.\n",
    .run = run_decode,
};
