#include "tap/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/read_clock.h"
#include "base/uncancelled.h"
#include "diag/log.h"
#include "diag/shared_file.h"
#include "tap/capture_mend.h"
#include "wire/bytes.h"
#include "wire/ether.h"
#include "wire/grh.h"

/* pcapng: numbers are in the byte order of the host that writes, which the section's header shows. */
enum {
    SECTION_ORDER = 0x1a2b3c4d,
    LINK_ETHERNET = 1,
    LINK_ERF = 197, /* for InfiniBand, whose own number, 247, Wireshark does not know */
    ERF_HEADER = 16,
    ERF_INFINIBAND = 21,
    ERF_VARYING_LENGTH = 4,
    OPTION_COMMENT = 1,
    OPTION_FLAGS = 2, /* of a packet: 1 received, 2 sent */
    OPTION_NAME = 2,  /* of an interface */
    OPTION_APPLICATION = 4,
    OPTION_RESOLUTION = 9,
    NANOSECONDS = 9,
};

enum {
    UDP = 8,
    HEAD = 28, /* of a packet's block, before the packet */
    OPTION_HEAD = 4,
    LAST = 8,       /* the end of the options, and the second length */
    TAIL_MAX = 512, /* of a packet's block, after the packet: options and the second length */
    COMMENT_MAX = 256,
    ENDS_MAX = 48,                                      /* of the part of a comment that names both queue pairs */
    FRAME_MAX = ETHER_HEADER + GRH_LENGTH + UINT16_MAX, /* the longest packet that is not cut, or datagram */
    START_MAX = 256,
    LOOK_EACH = 1 << 20, /* bytes written between two looks at the file's size */
};

struct capture {
    struct output file;
    uint16_t link;    /* LINK_ETHERNET or LINK_ERF */
    bool stopped;     /* the file can't be written, or is long enough; under lock, as the block */
    uint64_t most;    /* bytes of the file; 0: any number */
    uint64_t written; /* by us, since the file's size was looked at */
    off_t end;        /* of our last block in the file */
    struct lock lock;
    char path[512];
    char process[64]; /* for comments */
    _Alignas(CAPTURE_ALIGNMENT) uint8_t block[HEAD + FRAME_MAX + TAIL_MAX];
};

/* --- blocks */

static uint8_t *put16(uint8_t *to, uint16_t value)
{
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

static uint8_t *put_option(uint8_t *to, uint16_t code, const void *value, size_t length)
{
    to = put16(put16(to, code), (uint16_t)length);
    memcpy(to, value, length);
    memset(to + length, 0, -length & 3);
    return to + length + (-length & 3);
}

/* Writes the end of the options, and the length of the block at its beginning and end. Returns where the block ends. */
static uint8_t *finish_block(uint8_t *block, uint8_t *to)
{
    to = put32(to, 0);
    uint32_t length = (uint32_t)(to + 4 - block);
    put32(block + 4, length);
    return put32(to, length);
}

/* Writes the beginning of a file: the section and its only interface. Returns the length. */
static size_t make_start(uint8_t *start, uint16_t link)
{
    static const uint8_t resolution = NANOSECONDS;
    uint8_t *to = put32(put32(start, CAPTURE_SECTION), 0);
    to = put16(put16(put32(to, SECTION_ORDER), 1), 0);
    to = put32(put32(to, UINT32_MAX), UINT32_MAX); /* the section's length is not known */
    uint8_t *interface = finish_block(start, put_option(to, OPTION_APPLICATION, "softverbs", 9));
    to = put32(put32(interface, CAPTURE_INTERFACE), 0);
    to = put32(put16(put16(to, link), 0), 0);
    to = put_option(to, OPTION_NAME, "softverbs", 9);
    to = put_option(to, OPTION_RESOLUTION, &resolution, 1);
    return (size_t)(finish_block(interface, to) - start);
}

/* --- the file */

bool capture_name(const char *name, char *to, size_t room)
{
    size_t used = 0;
    for (; *name && used < room; name++)
        if (name[0] == '%' && name[1] == 'p') {
            used += (size_t)snprintf(to + used, room - used, "%d", (int)getpid());
            name++;
        } else {
            to[used++] = *name;
        }
    if (used >= room)
        return false;
    to[used] = 0;
    return true;
}

struct capture *capture_open(const char *path, bool infiniband, char *why, size_t why_size)
{
    uint16_t link = infiniband ? LINK_ERF : LINK_ETHERNET;
    struct output file;
    uint8_t start[START_MAX];
    int error = shared_file_open(&file, path, start, make_start(start, link));
    struct capture *capture = error ? NULL : calloc(1, sizeof *capture);
    if (error)
        snprintf(why, why_size, "Packets can't be captured to \"%s\": %s.", path,
                 error == EEXIST ? "it holds something that softverbs did not write" : strerror(error));
    if (!error && !capture)
        output_close(&file), snprintf(why, why_size, "Packets can't be captured: there is no memory.");
    if (!capture)
        return NULL;
    capture->file = file;
    capture->link = link;
    lock_set_rank(&capture->lock, LOCK_INNERMOST);
    capture->written = LOOK_EACH;
    snprintf(capture->path, sizeof capture->path, "%s", path);
    snprintf(capture->process, sizeof capture->process, "pid %d %s", (int)getpid(), program_invocation_short_name);
    return capture;
}

void capture_limit(struct capture *capture, uint64_t most)
{
    capture->most = most;
}

void capture_close(struct capture *capture)
{
    output_close(&capture->file);
    free(capture);
}

/* Returns true if the file begins as a pcapng file does. */
static bool is_capture(const void *found, size_t length)
{
    uint32_t magic = 0;
    memcpy(&magic, found, length < sizeof magic ? length : sizeof magic);
    return magic == CAPTURE_SECTION;
}

int capture_begin(const char *path)
{
    return shared_file_empty(path, is_capture);
}

/* Ends the capture, and takes back the part of a block that was written, if no process has written after it. */
static void stop(struct capture *capture, size_t written, int error)
{
    struct stat status;
    int file = capture->file.descriptor;
    off_t end = written ? lseek(file, 0, SEEK_CUR) : 0;
    capture->stopped = true;
    if (written && !fstat(file, &status) && status.st_size == end && ftruncate(file, end - (off_t)written))
        error = errno;
    log_write(LOG_ERROR, "the capture \"%s\" ends here: %s", capture->path,
              error == EBADF ? "the program has closed its descriptor" : strerror(error));
}

/* Looks after each MiB of ours whether the file is long enough. Other processes may write to it, too, so it gets longer
 * than it may by some MiB at most. */
static bool is_long_enough(struct capture *capture, size_t more)
{
    struct stat status;
    capture->written += more;
    if (!capture->most || capture->written < LOOK_EACH)
        return false;
    capture->written = 0;
    return !fstat(capture->file.descriptor, &status) && (uint64_t)status.st_size + more > capture->most;
}

/* Another process that wrote before this block may have been killed while it did. */
static void look_back(struct capture *capture, size_t length)
{
    off_t end = lseek(capture->file.descriptor, 0, SEEK_CUR), begin = end - (off_t)length;
    if (begin > 0 && begin != capture->end && !capture_mend(capture->file.descriptor, capture->end, begin))
        log_write(LOG_INFO, "the capture \"%s\" holds something before byte %lld that is not a whole block",
                  capture->path, (long long)begin);
    capture->end = end;
}

static void write_block(struct capture *capture, size_t length)
{
    int error = errno, before = uncancelled_begin();
    if (is_long_enough(capture, length)) {
        capture->stopped = true;
        log_write(LOG_ERROR, "the capture \"%s\" ends here: it has reached its limit (SOFTVERBS_CAPTURE_MAX)",
                  capture->path);
    } else {
        size_t written = output_write(&capture->file, capture->block, length);
        if (written < length)
            stop(capture, written, errno);
        else
            look_back(capture, length);
    }
    uncancelled_end(before);
    errno = error;
}

/* Writes the comment, with blanks at its end, so that the block ends at a multiple of CAPTURE_ALIGNMENT. */
static uint8_t *put_comment(struct capture *capture, uint8_t *to, const char *ends, const char *note, const char *more)
{
    char comment[COMMENT_MAX + CAPTURE_ALIGNMENT];
    int length = snprintf(comment, COMMENT_MAX, "%s%s%s%s%s%s", capture->process, ends, note ? "; " : "",
                          note ? note : "", more ? "; " : "", more ? more : "");
    size_t used = length < COMMENT_MAX ? (size_t)length : COMMENT_MAX - 1;
    size_t block = (size_t)(to - capture->block) + OPTION_HEAD + used + LAST, blanks = -block % CAPTURE_ALIGNMENT;
    memset(comment + used, ' ', blanks);
    return put_option(to, OPTION_COMMENT, comment, used + blanks);
}

/* Writes the block around a frame of this length, which is in its place already. */
static void write_frame(struct capture *capture, size_t length, bool sent, const char *ends, const char *note,
                        const char *more)
{
    uint8_t *to = capture->block;
    uint32_t flags = sent ? 2 : 1;
    uint64_t time = read_clock(CLOCK_REALTIME);
    to = put32(put32(put32(to, CAPTURE_PACKET), 0), 0);
    to = put32(put32(to, (uint32_t)(time >> 32)), (uint32_t)time);
    to = put32(put32(to, (uint32_t)length), (uint32_t)length);
    memset(to + length, 0, -length & 3);
    to += length + (-length & 3);
    to = put_comment(capture, put_option(to, OPTION_FLAGS, &flags, sizeof flags), ends, note, more);
    write_block(capture, (size_t)(finish_block(capture->block, to) - capture->block));
}

/* --- packets */

/* Writes the address that a link-local GID was made from, or a group's (RFC 1112, RFC 2464); else a locally
 * administered one with the last bytes of the GID, which are the host's. */
static void put_mac(uint8_t *to, const uint8_t gid[16])
{
    bool ipv4 = grh_is_ipv4(gid);
    if (ipv4 && gid[12] >> 4 == 14)
        memcpy(to, (uint8_t[6]){1, 0, 0x5e, gid[13] & 0x7f, gid[14], gid[15]}, 6);
    else if (!ipv4 && gid[0] == 0xff)
        memcpy(to, (uint8_t[6]){0x33, 0x33, gid[12], gid[13], gid[14], gid[15]}, 6);
    else if (!ipv4 && gid[0] == 0xfe && gid[11] == 0xff && gid[12] == 0xfe)
        memcpy(to, (uint8_t[6]){gid[8] ^ 2, gid[9], gid[10], gid[13], gid[14], gid[15]}, 6);
    else
        memcpy(to, (uint8_t[6]){2, 0, gid[12], gid[13], gid[14], gid[15]}, 6);
}

static uint8_t *put_ip(uint8_t *to, const struct capture_way *way, size_t udp_length)
{
    const struct datagram_route *route = &way->route;
    return to + grh_write_ip(to,
                             &(struct grh_route){.source = route->source,
                                                 .destination = route->destination,
                                                 .traffic_class = way->traffic_class,
                                                 .hop_limit = way->hop_limit,
                                                 .identification = route->identification,
                                                 .fragment = route->fragment},
                             (uint32_t)udp_length);
}

/* Writes all headers before the BTH; `length`: the bytes from the BTH to the ICRC. Returns the place of the BTH. */
static uint8_t *put_outer(uint8_t *to, const struct capture_way *way, size_t length)
{
    bool ipv4 = grh_is_ipv4(way->route.destination);
    put_mac(to, way->route.destination);
    put_mac(to + 6, way->route.source);
    bytes_put16(to + 12, ipv4 ? ETHER_TYPE_IPV4 : ETHER_TYPE_IPV6);
    to += ETHER_HEADER;
    to = put_ip(to, way, UDP + length);
    bytes_put16(to, way->route.source_port);
    bytes_put16(to + 2, way->route.destination_port);
    bytes_put16(to + 4, (uint16_t)(UDP + length));
    bytes_put16(to + 6, 0);
    return to + UDP;
}

/* Writes LRH and GRH; `length`: the bytes after them to the ICRC. Returns the place of the BTH. */
static uint8_t *put_local(uint8_t *to, const struct capture_way *way, size_t length)
{
    uint8_t *grh = to + LRH_LENGTH;
    lrh_write(to, &way->lrh, (uint32_t)(length + (way->lrh.global ? GRH_LENGTH : 0)));
    if (!way->lrh.global)
        return grh;
    put_ip(grh, way, length);
    lrh_make_grh(grh, (uint32_t)length);
    return grh + GRH_LENGTH;
}

/* Writes the beginning of the record of an InfiniBand packet: the time in seconds and 2^32ths of them, little-endian,
 * and lengths. Returns the length of all. */
static size_t put_erf(uint8_t *to, size_t packet)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t fraction = (uint32_t)(((uint64_t)now.tv_nsec << 32) / 1000000000);
    bytes_put32(to, __builtin_bswap32(fraction));
    bytes_put32(to + 4, __builtin_bswap32((uint32_t)now.tv_sec));
    to[8] = ERF_INFINIBAND;
    to[9] = ERF_VARYING_LENGTH;
    bytes_put16(to + 10, (uint16_t)(ERF_HEADER + packet));
    bytes_put16(to + 12, 0); /* lost before it */
    bytes_put16(to + 14, (uint16_t)packet);
    return ERF_HEADER + packet;
}

/* Writes both CRCs after the last pad byte of a packet that begins with an LRH. Returns the whole length. */
static size_t end_local(uint8_t *packet, size_t covered)
{
    uint32_t icrc = __builtin_bswap32(lrh_icrc(packet, (uint32_t)covered));
    bytes_put32(packet + covered, icrc);
    uint16_t vcrc = __builtin_bswap16(lrh_vcrc(packet, (uint32_t)covered + DATAGRAM_ICRC));
    bytes_put16(packet + covered + DATAGRAM_ICRC, vcrc);
    return covered + LRH_TRAILER;
}

/* Puts the frame into the block; returns its length. *read: whether the payload could be read. */
static size_t put_packet(uint8_t *frame, const struct capture_way *way, const uint8_t *headers, size_t length,
                         const struct payload *payload, uint32_t held, bool *read)
{
    size_t pad = -held & 3, covered = length + held + pad;
    uint8_t *bth = way->infiniband ? put_local(frame, way, covered + DATAGRAM_ICRC)
                                   : put_outer(frame, way, covered + DATAGRAM_ICRC);
    memcpy(bth, headers, length);
    *read = payload_copy(payload, 0, &(struct iovec){bth + length, held}, 1);
    if (!*read)
        memset(bth + length, 0, held);
    memset(bth + length + held, 0, pad);
    if (way->infiniband)
        return end_local(frame, (size_t)(bth - frame) + covered);
    uint32_t crc = wire_icrc(&way->route, &(struct iovec){bth, covered}, 1);
    bytes_put32(bth + covered, __builtin_bswap32(crc));
    size_t all = (size_t)(bth - frame) + covered + DATAGRAM_ICRC;
    ether_write_checksums(frame, (uint32_t)all);
    return all;
}

/* Sets the pad count from the payload that is written, which may be cut. */
static void set_pad(uint8_t *headers, uint32_t held)
{
    headers[1] = (uint8_t)((headers[1] & 0xcf) | (-held & 3) << 4);
}

/* Names both queue pairs; the packet itself has only the receiver's number. */
static void name_ends(const struct capture_way *way, const uint8_t *headers, char ends[ENDS_MAX])
{
    *ends = 0;
    if (way->from)
        snprintf(ends, ENDS_MAX, "; qp 0x%x to 0x%x", way->from, bytes_get32(headers + 4) & 0xffffff);
}

void capture_roce(struct capture *capture, const struct capture_way *way, const uint8_t *headers, size_t length,
                  const struct payload *payload)
{
    uint8_t copy[WIRE_HEADERS_MAX];
    char cut[96], ends[ENDS_MAX];
    bool read;
    uint32_t most = way->infiniband ? CAPTURE_INFINIBAND_MAX : CAPTURE_PAYLOAD_MAX;
    uint32_t held = payload->length < most ? payload->length : most;
    if (length > sizeof copy || way->infiniband != (capture->link == LINK_ERF))
        return;
    memcpy(copy, headers, length);
    set_pad(copy, held);
    name_ends(way, copy, ends);
    snprintf(cut, sizeof cut, "the first %u of %u bytes of payload", held, payload->length);
    lock_take(&capture->lock);
    if (!capture->stopped) {
        uint8_t *frame = capture->block + HEAD;
        size_t all = put_packet(frame + (way->infiniband ? ERF_HEADER : 0), way, copy, length, payload, held, &read);
        if (way->infiniband)
            all = put_erf(frame, all);
        write_frame(capture, all, way->sent, ends, way->note,
                    !read                    ? "the payload could not be read"
                    : held < payload->length ? cut
                                             : NULL);
    }
    lock_release(&capture->lock);
}

void capture_datagram(struct capture *capture, const struct capture_way *way, const uint8_t *bytes, size_t length)
{
    if (length > UINT16_MAX - GRH_IPV4_LENGTH - UDP)
        return;
    lock_take(&capture->lock);
    if (!capture->stopped) {
        uint8_t *frame = capture->block + HEAD, *datagram = put_outer(frame, way, length);
        if (length)
            memcpy(datagram, bytes, length);
        size_t all = (size_t)(datagram - frame) + length;
        ether_write_checksums(frame, (uint32_t)all);
        write_frame(capture, all, way->sent, "", way->note, NULL);
    }
    lock_release(&capture->lock);
}

void capture_ethernet(struct capture *capture, bool sent, const struct payload *payload, const char *note)
{
    if (payload->length > FRAME_MAX)
        return;
    lock_take(&capture->lock);
    if (!capture->stopped && payload_copy(payload, 0, &(struct iovec){capture->block + HEAD, payload->length}, 1))
        write_frame(capture, payload->length, sent, "", note, NULL);
    lock_release(&capture->lock);
}
