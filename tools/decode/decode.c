/* softverbs decode: what a capture holds of RoCEv2 or InfiniBand, one line a packet, and whether we would send the same
 * bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "decode/datagrams.h"
#include "print/emit.h"
#include "print/screen.h"

struct tally {
    unsigned long packets; /* RoCEv2 and InfiniBand */
    bool infiniband;       /* some of them were InfiniBand's */
    unsigned long wrong;   /* ICRC, fault, or encoded to other bytes */
    unsigned long cut, other;
    unsigned long uncut; /* datagrams of several packets */
    size_t skipped;      /* bytes of blocks and packets that are not whole */
    json_t *list;        /* of packets; NULL: they are printed */
};

/* NULL: the packet has no such field. */
static json_t *make_number(bool known, uint32_t number)
{
    return known ? json_integer(number) : json_null();
}

/* A packet's place in the output. */
struct place {
    struct tally *tally;
    unsigned long number;
    double seconds;
    enum pcap_direction direction;
};

/* A file that both processes wrote has each packet twice, and only the direction differs. */
static const char *word_direction(enum pcap_direction direction)
{
    return direction == PCAP_SENT ? "sent" : direction == PCAP_RECEIVED ? "received" : NULL;
}

static void emit_packet(const struct place *place, const struct dissection *datagram, const struct judged *judged)
{
    char source[DATAGRAMS_ADDRESS], destination[DATAGRAMS_ADDRESS];
    const struct dissected_ip *ip = &datagram->ip;
    datagrams_addresses(datagram, source, destination);
    json_array_append_new(
        place->tally->list,
        json_pack("{s:I, s:f, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "number", (json_int_t)place->number,
                  "seconds", place->seconds, "source", source, "destination", destination, "direction",
                  emit_text(word_direction(place->direction)), "traffic_class", make_number(ip->known, ip->class),
                  "flow_label", make_number(ip->known, ip->label), "hop_limit", make_number(ip->known, ip->hops),
                  "udp_port", make_number(ip->port, ip->port), "description", emit_text(judged->description), "wrong",
                  emit_text(*judged->verdict ? judged->verdict : NULL)));
}

static void print_packet(const struct place *place, const struct dissection *datagram, const struct judged *judged)
{
    enum { INDENT = 8 };
    char *line, source[DATAGRAMS_ADDRESS], destination[DATAGRAMS_ADDRESS], ip[DATAGRAMS_IP];
    datagrams_addresses(datagram, source, destination);
    datagrams_ip(&datagram->ip, ip);
    const char *direction = word_direction(place->direction);
    if (asprintf(&line, "%5lu %10.6f %s > %s %s%s%s%s%s%s", place->number, place->seconds, source, destination,
                 judged->description, direction ? " | " : "", direction ? direction : "", ip,
                 *judged->verdict ? " # " : "", judged->verdict) < 0)
        return;
    screen_wrap(stdout, screen_width(stdout), 0, INDENT, line);
    free(line);
}

static void show_datagram(void *context, struct dissection *datagram)
{
    static struct judged judged;
    struct place *place = context;
    struct tally *tally = place->tally;
    datagrams_judge(datagram, &judged);
    if (tally->list)
        emit_packet(place, datagram, &judged);
    else
        print_packet(place, datagram, &judged);
    tally->packets++;
    tally->infiniband |= datagram->lrh != NULL;
    tally->wrong += *judged.verdict != 0;
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
            tally->uncut +=
                datagrams_each(&datagram, show_datagram,
                               &(struct place){tally, number, (double)(int64_t)(record.nanoseconds - start) / 1e9,
                                               record.direction}) > 1;
    }
}

/* A process that was killed while it wrote leaves parts of blocks. */
static void tell_losses(const struct pcap *pcap, const char *path)
{
    if (pcap->skipped)
        complain("%s: %zu bytes that are not whole blocks were skipped; a writer may have been killed there", path,
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
    if (error)
        return complain_and(false, "%s: %s", path, error == EILSEQ ? "not a pcap or pcapng file" : strerror(error));
    decode_records(&pcap, tally);
    tell_losses(&pcap, path);
    tally->skipped += pcap.skipped + pcap.lost;
    bool whole = !pcap.broken && !pcap.skipped;
    pcap_close(&pcap);
    return whole;
}

static int run_decode(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("json", 'j'), OPTIONS_END};
    struct tally tally = {0};
    bool fine = true;
    while (command_option(command, argc, argv, options) != -1)
        if (!tally.list)
            tally.list = json_array();
    if (optind == argc)
        return command_misused(command, "It needs the name of a capture.");
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
    .help = "  --json            print a JSON object (docs/reference/json.md)\n"
            "\n"
            "It reads pcap and pcapng files, of Ethernet and other links. Each RoCEv2 packet\n"
            "is a line: number, seconds since the first packet, addresses, headers, and after\n"
            "a bar the direction, where the capture has it, and the traffic class, hop limit,\n"
            "flow label and UDP source port; so is each packet of InfiniBand (run\n"
            "--link-layer ib --capture). A file that both ends write has each packet twice,\n"
            "as sent and as received. The command checks the invariant CRC, and that\n"
            "encoding the packet again gives the same bytes; errors follow a #. A message of\n"
            "the connection manager is shown with all its fields that are not 0, and encoded\n"
            "again, too. Packets that the capture cut\n"
            "short are counted, not checked. If a host hands several packets to its interface\n"
            "in one datagram (UDP segmentation), a capture on that host shows them uncut:\n"
            "each has a line, with the number of the datagram.\n"
            "\n"
            "A writer that was killed leaves a part of a block in a pcapng file. The part is\n"
            "skipped, and a message on stderr has its length.\n"
            "\n"
            "Exit status: 0, or 1 when a packet is wrong or a file cannot be read to its end,\n"
            "or not all of it. Packets that softverbs marked as not whole do not count.\n",
    .run = run_decode,
};
