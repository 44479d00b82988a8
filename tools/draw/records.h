/* The content of captures and recordings for `softverbs draw`: each packet where it was seen, when and by which
 * process, and of a recording the other events at the ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dissect.h"
#include "draw/lookup.h"
#include "pcap.h"
#include "wire/packet.h"

enum happening {
#define HAPPENING(NAME, word, sentence) HAPPENING_##NAME,
#include "draw/marks.def"
    HAPPENINGS
};

struct entry {
    uint64_t nanoseconds;         /* since the epoch */
    size_t read;                  /* how many were read before it; records_sort sets it */
    uint32_t file, number;        /* the place among the files, and in it, as `softverbs decode` counts */
    uint32_t source, destination; /* addresses, as strings */
    uint32_t from;                /* number of the queue pair that sent it; LOOKUP_NONE: not known */
    uint32_t process, note;       /* strings, from softverbs' comment; 0: no string */
    uint32_t verdict, message;    /* strings: what is wrong with it, and the connection manager's message; 0: nothing */
    enum pcap_direction direction; /* as the process that captured it saw it */
    bool known;                    /* `packet` has its headers, and the length of its payload, not the payload */
    enum happening happening;      /* what happened at `from`, with the note in words; then `packet` has
                                    * only the peer as `destination`, and the PSN of the packet in hand. PACKET: a packet */
    bool failed;                   /* what happened is an error */
    struct dissected_ip ip;        /* not of a recording */
    struct packet packet;
};

/* The part of the files that is wanted. */
struct records_choice {
    double from, to; /* seconds since the first packet of its file */
    size_t most;
};

struct records {
    struct entry *list;
    size_t count, room;
    size_t left_out;     /* packets beyond `most` of the choice */
    size_t cut, other;   /* datagrams that the capture cut, datagrams of other protocols */
    size_t happenings;   /* entries that are not packets */
    unsigned recordings; /* files that are recordings */
    struct strings strings;
};

/* Adds the packets of a file. False, after a message: the file can't be read, or not to its end; the packets
 * before are added. */
bool records_read(struct records *, const char *path, uint32_t file, const struct records_choice *);

/* Sorts by time; entries of the same time keep their order. */
void records_sort(struct records *);

void records_free(struct records *);
