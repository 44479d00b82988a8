/* The packets of captures, as `softverbs draw` needs them: what was captured, where, when and by which process. */
#ifndef TOOLS_RECORDS_H
#define TOOLS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "draw/lookup.h"
#include "pcap.h"
#include "wire/packet.h"

struct record {
    uint64_t nanoseconds;         /* since the epoch */
    uint32_t file, number;        /* the place among the files, and in it, as `softverbs decode` counts */
    uint32_t source, destination; /* addresses, as strings */
    uint32_t from;                /* number of the queue pair that sent it; LOOKUP_NONE: not known */
    uint32_t process, note;       /* strings, from softverbs' comment; 0: none */
    uint32_t verdict, message;    /* strings: what is wrong with it, and the connection manager's message; 0: nothing */
    enum pcap_direction direction; /* as the process saw it that captured it */
    bool known;                    /* `packet` has its headers, and the length of its payload, not the payload */
    struct packet packet;
};

/* What of the files is wanted. */
struct records_choice {
    double from, to; /* seconds since the first packet of its file */
    size_t most;
};

struct records {
    struct record *list;
    size_t count, room;
    size_t left_out; /* beyond the most that were asked for */
    size_t cut, other;
    struct strings strings;
};

/* Adds the packets of a file. False, after a sentence on stderr: it can't be read, or not to its end; what was read is
 * added. */
bool records_read(struct records *, const char *path, uint32_t file, const struct records_choice *);

/* By their time; those of the same time stay in their order. */
void records_sort(struct records *);

void records_free(struct records *);

#endif
