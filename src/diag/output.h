/* Where the library writes to within a program that knows nothing of it: log, counters, capture. */
#ifndef DIAG_OUTPUT_H
#define DIAG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct output {
    int descriptor;
    bool known; /* the opened file is known: */
    dev_t device;
    ino_t inode;
};

/* Standard error, as the program has it. */
#define OUTPUT_STDERR                                                                                                  \
    {                                                                                                                  \
        .descriptor = 2                                                                                                \
    }

/* As named_file_open. 0 or errno. */
int output_open(struct output *, const char *path, int flags);

/* No other call is to be made then. */
void output_close(struct output *);

/* Returns true if its descriptor is still the opened file. A program that closes all descriptors opens other files
 * under their numbers. Changes errno. */
bool output_is_open(const struct output *);

/* Writes all of it, as write(2) does: how many bytes were written, and errno if that is less. Nothing is written to a
 * file that the program has opened in its place (EBADF). A pipe without a reader (EPIPE) and a file that would get
 * longer than RLIMIT_FSIZE (EFBIG) raise no signal. No reader is waited for, also where the descriptor is the program's
 * and blocks: what a pipe, a terminal or a socket has no room for is not written (EAGAIN); a pipe takes all or nothing
 * of what it could hold. A file on a disk may wait for the disk. Thread-safe; the caller handles cancellation
 * (base/uncancelled.h). */
size_t output_write(const struct output *, const void *data, size_t length);

#endif
