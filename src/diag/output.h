/* Descriptors that the library writes to, in a program that does not know them: log, counters, capture. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output {
    int descriptor;
    bool known; /* the opened file has this device and inode: */
    dev_t device;
    ino_t inode;
};

/* The program's standard error. */
#define OUTPUT_STDERR                                                                                                  \
    {                                                                                                                  \
        .descriptor = 2                                                                                                \
    }

/* Opens the file by named_file_open. Returns 0 or errno. */
int output_open(struct output *, const char *path, int flags);

/* Closes the output; no call may use it afterwards. */
void output_close(struct output *);

/* Writes all of the data, as write(2) does; returns how many bytes were written, with errno set if that is less.
 * Nothing is written to a file that the program has opened under the same number (EBADF). A pipe without a reader
 * (EPIPE) and a file that would get longer than RLIMIT_FSIZE (EFBIG) raise no signal. No call waits for a reader, even
 * if the descriptor is the program's and blocks: data for which a pipe, a terminal or a socket has no room is not
 * written (EAGAIN); a pipe that could hold all of it takes all or nothing. A file on a disk may wait for the disk.
 * Thread-safe; the caller handles cancellation (base/uncancelled.h). */
size_t output_write(const struct output *, const void *data, size_t length);
