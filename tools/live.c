/* softverbs live: a capture as it grows, on standard output, for Wireshark. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "tap/capture_mend.h"

enum { PAUSE_MILLISECONDS = 50, HEAD = 8, BLOCK_MOST = 16 << 20, FIRST = 256, SECTION = 0x0a0d0d0a };

/* The file; `done` bytes of it have been copied. */
struct source {
    const char *path;
    int fd; /* -1: the file is not there yet */
    off_t done;
    off_t doubted;        /* where an incomplete block began at the last look; 0: no such block */
    uint8_t first[FIRST]; /* the first bytes copied, up to FIRST: they include the first packet's time */
};

/* False: the reader has gone. */
static bool pause_for_more(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    return poll(&reader, 1, PAUSE_MILLISECONDS) <= 0 || !(reader.revents & (POLLERR | POLLHUP));
}

/* Writes all bytes, also to a pipe that takes fewer at a time. False: errno; EPIPE: the reader has gone. */
static bool write_all(const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(STDOUT_FILENO, bytes, size);
        if (written < 0 && errno != EINTR)
            return false;
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* Only a file can hold a capture, and a lack of permission is reported now and not later. 0, or errno. */
static int open_source(struct source *source)
{
    struct stat status;
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0)
        return errno == ENOENT ? 0 : errno;
    if (fstat(source->fd, &status))
        return errno;
    return S_ISDIR(status.st_mode) ? EISDIR : S_ISREG(status.st_mode) ? 0 : EILSEQ;
}

/* Looks whether the file is there, or was begun anew, as each `run --capture` does: its length may be the same. 0, or
 * errno. */
static int look_again(struct source *source)
{
    uint8_t now[FIRST];
    size_t known = source->done < FIRST ? (size_t)source->done : FIRST;
    int error = source->fd < 0 ? open_source(source) : 0;
    if (!error && source->fd >= 0 && known &&
        (pread(source->fd, now, known, 0) != (ssize_t)known || memcmp(now, source->first, known) != 0))
        source->done = 0;
    return error;
}

static void remember(struct source *source, const uint8_t *block, size_t length)
{
    if (source->done < FIRST)
        memcpy(source->first + source->done, block,
               length < FIRST - (size_t)source->done ? length : FIRST - (size_t)source->done);
    source->done += (off_t)length;
}

/* The length of the block that begins at source->done; 0: not in the file yet; -1: no block begins there. */
static ssize_t find_block(const struct source *source)
{
    uint32_t head[2];
    if (source->fd < 0 || pread(source->fd, head, HEAD, source->done) < HEAD)
        return 0;
    bool fits = head[1] >= 12 && head[1] <= BLOCK_MOST && head[1] % 4 == 0;
    return fits && (source->done || head[0] == SECTION) ? (ssize_t)head[1] : -1;
}

/* Returns whether both lengths of the block agree. */
static bool is_whole(const uint8_t *block, ssize_t length)
{
    uint32_t last;
    memcpy(&last, block + length - sizeof last, sizeof last);
    return last == (uint32_t)length;
}

/* The place of the first whole block in the file after bytes that are no block; 0: no such block yet. */
static off_t find_next(int fd, off_t from)
{
    uint32_t head[2], last;
    for (off_t at = from + 4; pread(fd, head, HEAD, at) == HEAD; at += 4)
        if ((head[0] == CAPTURE_PACKET || head[0] == CAPTURE_LOST) && head[1] >= 12 && head[1] <= BLOCK_MOST &&
            head[1] % 4 == 0 && pread(fd, &last, sizeof last, at + head[1] - 4) == sizeof last && last == head[1])
            return at;
    return 0;
}

enum copied { COPIED, NONE_YET, READER_GONE, FAILED };

static enum copied fail(const char *what, int error)
{
    return complain_and(FAILED, "live: %s: %s", what, error == EILSEQ ? "not a capture of softverbs" : strerror(error));
}

/* A process that was killed left a part of a block. The next writer makes a whole block of it, so it is looked at twice
 * before it is left out. */
static enum copied pass_over(struct source *source)
{
    if (!source->done)
        return fail(source->path, EILSEQ);
    off_t next = source->doubted == source->done ? find_next(source->fd, source->done) : 0;
    source->doubted = source->done;
    if (!next)
        return NONE_YET;
    complain("live: %s: %lld bytes that are not whole blocks were left out", source->path,
             (long long)(next - source->done));
    source->done = next;
    return pread(source->fd, source->first, FIRST, 0) < 0 ? fail(source->path, errno) : COPIED;
}

static enum copied copy_whole(struct source *source, const uint8_t *block, ssize_t length)
{
    if (!is_whole(block, length))
        return pass_over(source);
    if (!write_all(block, (size_t)length))
        return errno == EPIPE ? READER_GONE : fail("the output", errno);
    remember(source, block, (size_t)length);
    return COPIED;
}

/* Copies the next block if all of it is in the file. */
static enum copied copy_block(struct source *source)
{
    ssize_t length = find_block(source);
    if (length <= 0)
        return length ? pass_over(source) : NONE_YET;
    uint8_t *block = malloc((size_t)length);
    if (!block)
        return fail(source->path, ENOMEM);
    bool there = pread(source->fd, block, (size_t)length, source->done) == length;
    enum copied result = there ? copy_whole(source, block, length) : NONE_YET;
    free(block);
    return result;
}

/* Copies blocks until the reader has gone. Returns the exit status. */
static int follow(struct source *source)
{
    for (;;) {
        int error = look_again(source);
        enum copied copied = error ? fail(source->path, error) : copy_block(source);
        if (copied == FAILED)
            return EXIT_NEGATIVE;
        if (copied == READER_GONE || (copied == NONE_YET && !pause_for_more()))
            return EXIT_OK;
    }
}

static int live(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTIONS_END};
    while (command_option(command, argc, argv, options) != -1)
        ;
    if (argc - optind != 1)
        return command_misused(command, "It needs the name of a capture.");
    if (isatty(STDOUT_FILENO))
        return command_misused(command, "A capture is nothing for a terminal: softverbs live %s | wireshark -k -i -",
                               argv[optind]);
    struct source source = {.path = argv[optind], .fd = -1};
    signal(SIGPIPE, SIG_IGN);
    int status = follow(&source);
    if (source.fd >= 0)
        close(source.fd);
    return status;
}

const struct command live_command = {
    .name = "live",
    .arguments = "FILE",
    .summary = "Copy a capture to a pipe while it is written, for Wireshark",
    .help = "  softverbs live /tmp/c.pcapng | wireshark -k -i - &\n"
            "  softverbs run --capture /tmp/c.pcapng -- PROGRAM\n"
            "\n"
            "It writes the content of the file to standard output, and then each block that\n"
            "is added, until the reader has gone. The file may be made later, and begin anew.\n"
            "If a writer was killed, the rest of its last block is left out, with a message.\n"
            "A FIFO works as well: softverbs live FILE >FIFO. Programs never wait for the\n"
            "reader.\n",
    .run = live,
};
