/* Reads capture files: classic pcap and pcapng, either byte order. The file is taken into memory whole.
 *
 * A process that was killed while it wrote to a pcapng file leaves a part of a block, which blocks of other processes
 * may follow. The reader skips to the next block whose two lengths agree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a captured packet begins (the numbers that both formats use). */
enum pcap_link {
    PCAP_NULL = 0, /* address family as the host stores it */
    PCAP_ETHERNET = 1,
    PCAP_RAW = 101, /* an IP header, of either version */
    PCAP_LINUX_COOKED = 113,
    PCAP_ERF = 197, /* a record of the format ERF, here with an InfiniBand packet */
    PCAP_IPV4 = 228,
    PCAP_IPV6 = 229,
    PCAP_LINUX_COOKED_2 = 276,
};

enum { PCAP_INTERFACES_MAX = 256 }; /* of a section of a pcapng file; one more is an error */

struct pcap {
    uint8_t *bytes;
    size_t length, at;
    bool swapped, next_generation;
    bool broken;    /* the file ends in the middle of something, or contradicts itself */
    size_t skipped; /* bytes of incomplete blocks before complete ones */
    size_t lost;    /* bytes of incomplete blocks that softverbs marked (CAPTURE_LOST of tap/capture_mend.h) */
    uint32_t interfaces;
    struct pcap_interface {
        uint32_t link;
        uint64_t ticks; /* of a second */
    } interface[PCAP_INTERFACES_MAX];
};

enum pcap_direction { PCAP_UNKNOWN = 0, PCAP_RECEIVED = 1, PCAP_SENT = 2 }; /* as the option epb_flags has it */

struct pcap_record {
    const uint8_t *bytes; /* in the file's memory */
    size_t length;
    size_t original;      /* length on the wire; more when the capture cut it */
    uint32_t link;        /* enum pcap_link */
    uint64_t nanoseconds; /* since the epoch; 0: not recorded */
    enum pcap_direction direction;
    const char *comment; /* the first comment, without a NUL at its end; NULL: no comment */
    size_t comment_length;
};

/* Reads a file, or a pipe, to its end. *bytes is allocated with malloc, also on failure. 0 or a positive
 * errno. */
int pcap_read_file(const char *path, uint8_t **bytes, size_t *length);

/* Opens a capture file. 0 or a positive errno; EILSEQ: not a capture file. */
int pcap_open(struct pcap *, const char *path);

/* Opens a file in memory of malloc, which pcap_close frees, also after a failure. Returns like pcap_open. */
int pcap_adopt(struct pcap *, uint8_t *bytes, size_t length);

/* Reads the next record; false: the end of the file, or the file is broken there. */
bool pcap_next(struct pcap *, struct pcap_record *);

void pcap_close(struct pcap *);
