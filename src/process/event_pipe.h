/* The descriptor by which a program waits for events, and polls for them: the read end of a pipe in which there is a
 * byte for each event. So it is readable while events wait, and never writable, like the kernel's descriptors; poll(2),
 * epoll(7) with and without edges, O_NONBLOCK, signals and several waiting threads work as the kernel defines them.
 *
 * The events themselves are in a list of the owner's. A thread that has taken a byte looks there, and may find that
 * the event was withdrawn meanwhile. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_pipe {
    int fd;     /* the program's descriptor: the read end */
    int own;    /* the same pipe for writing and, without waiting, reading: a program that has closed its own descriptor
                   neither kills the writer with SIGPIPE nor loses bytes of a file that has its number now */
    int reader; /* a read end where `own` can't read: it prevents SIGPIPE; -1: not needed */
    bool high;  /* `own` is a number that files of a program hardly ever get */
    dev_t device;
    ino_t inode;
    atomic_uint owed; /* bytes for which the pipe had no place */
};

/* Makes the pipe. 0 or errno. `flags` for the program's descriptor: O_CLOEXEC, O_NONBLOCK. */
int event_pipe_open(struct event_pipe *, int flags);

/* Closes the library's descriptors; the caller closes the program's. */
void event_pipe_close(struct event_pipe *);

/* Adds bytes. Never blocks; no cancellation point; thread-safe, like the calls below. */
void event_pipe_add(struct event_pipe *, uint32_t count);

/* Takes a byte through `fd`, the program's descriptor of the pipe: waits for one unless the descriptor is
 * non-blocking. 0, or -1 and errno: EAGAIN, EINTR. A cancellation point. */
int event_pipe_take(struct event_pipe *, int fd);

/* Takes back the byte of a withdrawn event, unless a thread has taken it already. Never blocks. */
void event_pipe_take_back(struct event_pipe *);
