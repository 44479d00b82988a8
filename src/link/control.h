/* The messages that processes of a host send to each other's sockets. Each message is checked, also in a directory that
 * is for one user alone, and is never trusted for more than it costs to be wrong. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    CONTROL_MAGIC = 0x4d767473, /* "stvM" */
    CONTROL_LAYOUT = 3,
};

enum control_kind {
    CONTROL_DOORBELL = 1, /* look at your rings */
    CONTROL_ATTACH = 2,   /* with a descriptor: the ring from the sender to you; perhaps another: its publications */
    CONTROL_LEAVE = 3,    /* the sender leaves and has no ring to say it in */
    CONTROL_REPORT = 4,   /* with a descriptor: a socket to send the descriptor of your report to */
};

struct control_message {
    uint32_t magic;
    uint16_t layout;
    uint16_t kind;
    uint32_t slot;          /* the sender's */
    uint32_t generation;    /* the sender's */
    uint32_t to_generation; /* the receiver's: a message to the slot's previous owner is thrown away */
    /* The sender's process ID, from the kernel (control_take); 0: its PID namespace is not visible here. */
    int32_t pid;
    uint32_t uid; /* the sender's effective user, from the kernel, too */
    uint32_t unused;
    uint64_t proof_address; /* attach: where in the sender's memory... */
    uint64_t proof_value;   /* ...this value is, so that the receiver can try whether it can read there */
};

/* The state of a process's messages, in memory that all share. */
struct control_inbox {
    atomic_uint sent;  /* messages to the owner except doorbells: it looks for these even when it polls */
    atomic_uint looks; /* counts up when the owner begins to empty its socket, and when it found the socket empty */
};

/* The owner calls begin before it takes messages, and end when it has found that no more are there. */
void control_inbox_begin(struct control_inbox *);
void control_inbox_end(struct control_inbox *);

/* A sender calls these. control_inbox_before, before it sends a message, returns the value that the box reaches once
 * that message has been taken and no other was left; control_inbox_reached returns true if the box has reached it.
 * Until then the message may be unread. (Afterwards it may be unread too, if it arrived just after a look that began
 * later: sending another does no harm then, as the owner looks.) */
uint32_t control_inbox_before(const struct control_inbox *);
bool control_inbox_reached(const struct control_inbox *, uint32_t before);

/* Sends a message from `socket` to the socket of this name, with a descriptor unless it is -1. Never blocks. 0 or
 * errno: EAGAIN when the receiver's queue is full (only then, so it has something to read), ECONNREFUSED or ENOENT
 * without such a socket; others when the system has no room now (ENOBUFS, ENOMEM, ETOOMANYREFS). */
int control_send(int socket, const char *name, const struct control_message *, int descriptor);
/* Sends a second descriptor, too, after the first, unless it is -1. */
int control_send_both(int socket, const char *name, const struct control_message *, int descriptor, int second);

/* Makes an eventfd readable. 0 or errno; EBADF: the program has closed it, and its number may be another file's. */
int control_wake(int eventfd);
/* Makes an eventfd no longer readable. Does nothing where control_wake answers EBADF. */
void control_take_wakes(int eventfd);

/* Makes a socket of this name for control_take. 0 or errno. */
int control_listen(const char *name, int *socket);

/* Takes the next message at `socket`; false: the queue is empty. A message that is not of our form has kind 0. The
 * sender is the process that the kernel names, not the one in the message. *descriptor and *second are the message's
 * descriptors, which the caller closes, or -1; if `second` is NULL, the second one is closed. Never blocks. */
bool control_take(int socket, struct control_message *, int *descriptor, int *second);

/* Sends a descriptor, and nothing else, over a connected stream socket. Never blocks. 0 or errno. */
int control_send_descriptor(int socket, int descriptor);
/* Takes a descriptor from a connected stream socket. 0 or errno; EPIPE: the other end was closed first. */
int control_take_descriptor(int socket, int *descriptor);
