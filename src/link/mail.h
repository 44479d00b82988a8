/* What processes of a host send to each other's sockets. The directory admits one user only; still, what is read is
 * checked and never trusted for more than it costs to be wrong. */
#ifndef LINK_MAIL_H
#define LINK_MAIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MAIL_MAGIC = 0x4d767473, /* "stvM" */
    MAIL_LAYOUT = 3,
};

enum mail_kind {
    MAIL_DOORBELL = 1, /* look at your rings */
    MAIL_ATTACH = 2,   /* with a descriptor: the ring from the sender to you; perhaps another: what it publishes */
    MAIL_LEAVE = 3,    /* the sender leaves and there is no ring to say it in */
    MAIL_REPORT = 4,   /* with a descriptor: a socket to send the descriptor of your report to */
};

struct mail {
    uint32_t magic;
    uint16_t layout;
    uint16_t kind;
    uint32_t slot;          /* the sender's */
    uint32_t generation;    /* the sender's */
    uint32_t to_generation; /* the receiver's: a letter to the slot's previous owner is thrown away */
    int32_t pid;  /* the sender's as the kernel tells the receiver (mail_take); 0: of a namespace not seen here */
    uint32_t uid; /* likewise the user that it works for */
    uint32_t unused;
    uint64_t probe_address; /* attach: where in the sender's memory... */
    uint64_t probe_value;   /* ...this value stands, so that the receiver can try whether it can read there */
};

/* What a process tells of its letters, in memory that all share. */
struct letterbox {
    atomic_uint sent;  /* to it, but for doorbells: it looks for these even when it polls */
    atomic_uint looks; /* counts up when it begins to empty its socket, and when it found it empty */
};

/* For the owner: before it takes letters, and when it found that there are no more. */
void letterbox_begin(struct letterbox *);
void letterbox_end(struct letterbox *);

/* For a sender, before it sends a letter: what the box reaches once that letter has been taken and no other was left.
 * And: has it? While it has not, the letter may lie there unread. (When it has, the letter may yet lie there, if it
 * came just after a look that began later: then sending another does no harm, as the owner looks.) */
uint32_t letterbox_before(const struct letterbox *);
bool letterbox_reached(const struct letterbox *, uint32_t before);

/* Sends a letter from `socket` to the socket of this name, with a descriptor unless it is -1. Never blocks. 0 or errno:
 * EAGAIN when the receiver's queue is full (only then, so it has something to read), ECONNREFUSED or ENOENT when nobody
 * is there; others when the system has no room for it just now (ENOBUFS, ENOMEM, ETOOMANYREFS). */
int mail_send(int socket, const char *name, const struct mail *, int descriptor);
/* The same with a second one behind the first, unless that is -1. */
int mail_send_both(int socket, const char *name, const struct mail *, int descriptor, int second);

/* Makes an eventfd readable. 0 or errno. */
int mail_wake(int eventfd);

/* Makes a socket of this name for mail_take. 0 or errno. */
int mail_listen(const char *name, int *socket);

/* The next letter at `socket`; false: none. A letter that is not of our form has kind 0. Who sent it is what the kernel
 * says, whatever stood there. *descriptor is what came with it, the caller's to close, or -1. Never blocks. */
bool mail_take(int socket, struct mail *, int *descriptor);
/* The same with the second that came; mail_take closes it. */
bool mail_take_both(int socket, struct mail *, int *descriptor, int *second);

/* Sends a descriptor, and nothing else, over a connected stream socket. Never blocks. 0 or errno. */
int mail_send_descriptor(int socket, int descriptor);
/* Takes one; EPIPE when the other end was closed without. */
int mail_take_descriptor(int socket, int *descriptor);

#endif
