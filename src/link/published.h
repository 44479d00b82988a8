/* The facts that a process publishes, so that its peers can judge a one-sided access by themselves
 * (docs/evidence/one-sided.md): its plain memory regions by key, its connected queue pairs by number, and whether it
 * lives. They are in a memfd that is sealed against resizing and, once the owner has mapped it, against all other
 * writing: peers can only map it read-only. Nothing in it is a pointer that its owner follows.
 *
 * The low bits of the key or number choose an entry's place, so no entry points to another: peers compute with what
 * they read, but follow no offset, and what they compute is an address in the owner's memory, for the kernel to check.
 * An object whose place is taken is not published, and peers then reach it with packets.
 *
 * An entry counts while its key or number is in it. The key is written last, and taken away first; the other fields
 * are written only while it is away and no access is under way that began before (published_withdraw_*, then waiting
 * for the announced requesters; link/direct.h). So a requester that has announced itself and then sees the key reads
 * fields that do not change. */
#ifndef LINK_PUBLISHED_H
#define LINK_PUBLISHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/voucher.h"

/* Both are the default number of queue pairs of a device. Pages that are not used take no memory; all of them are 6
 * MiB, less than an ordinary user's program may lock (8 MiB). */
enum {
    PUBLISHED_KEYS = 65536,
    PUBLISHED_QUEUE_PAIRS = 65536,
};

enum published_access { PUBLISHED_WRITE = 1, PUBLISHED_READ = 2 };

/* The value of first_psn of a queue pair that does not send yet. */
#define PUBLISHED_NO_PSN UINT32_MAX
/* A queue pair of SRD serves all others of SRD that have its Q_Key, which is in first_psn. These are the values of its
 * `peer`, and of peer_psn and own_psn, which no connection has. */
#define PUBLISHED_ALL UINT32_MAX
#define PUBLISHED_MESSAGES UINT32_MAX

struct published_key {
    _Alignas(64) atomic_uint key; /* 0: nothing is published here */
    uint32_t access;              /* enum published_access */
    uint64_t domain;              /* which protection domain; to be compared only */
    uint64_t base, length;        /* the memory of the key */
    uint64_t memory;              /* where that memory is in the owner */
};

struct published_queue_pair {
    _Alignas(32) atomic_uint number; /* 0: nothing is published here */
    uint32_t peer;                   /* number of the queue pair that it is connected with */
    uint32_t access;                 /* the rights of the peer: enum published_access */
    /* The PSNs that it and its peer began with; they show whether both are of one connection. */
    uint32_t first_psn, peer_psn;
    uint32_t max_dest_rd_atomic; /* READs and atomics of the peer that it keeps results for */
    uint64_t domain;
};

struct published_file;

struct published {
    struct published_file *file; /* NULL: nothing is mapped */
    int descriptor;              /* the owner's, to hand over; -1: not created */
    struct voucher voucher;      /* of the owner's thread that vouches */
};

/* --- the owner: one caller at a time for each key and each number */

/* Creates the file: nothing is published yet, and no thread vouches. 0 or errno (EINVAL: the kernel cannot seal it
 * against writing); then file is NULL and descriptor -1, and all calls below do nothing. */
int published_create(struct published *);
/* Unmaps and closes; also in the child of a fork, whose parent continues. */
void published_close(struct published *);

/* The calling thread vouches for the process until it ends or published_retract (link/voucher.h). Where the kernel
 * cannot report its end, it does not vouch, and no access is permitted. */
void published_vouch(struct published *);
void published_retract(struct published *);

/* Opens or closes all: while closed (as at first), nothing is permitted. Close once no requester is announced. */
void published_open(struct published *, bool open);

/* Publishes an entry; false: its place is taken. The fields except the key or number are copied. */
bool published_key(struct published *, uint32_t key, const struct published_key *);
bool published_queue_pair(struct published *, uint32_t number, const struct published_queue_pair *);
/* Withdraws an entry. True: it was published, and accesses that began before may be under way. */
bool published_withdraw_key(struct published *, uint32_t key);
bool published_withdraw_queue_pair(struct published *, uint32_t number);

/* --- a peer */

/* Maps what a peer publishes. 0 or errno; EINVAL: not a memfd of this layout with these seals. The descriptor stays the
 * caller's. */
int published_map(struct published *, int descriptor);

/* An access, to be judged as the owner's responder would. For a WRITE only the answer counts that a peer gets after
 * it has announced itself. */
struct published_question {
    bool write;
    uint32_t number, own_number; /* of the queue pair asked, and of the requester */
    uint32_t first_psn, own_psn; /* rq_psn and sq_psn of the asking queue pair */
    uint32_t key;
    uint64_t address;
    uint32_t length;        /* not 0 */
    uint32_t max_rd_atomic; /* of a READ: how many the asking queue pair may have outstanding; of a WRITE 0 */
};

/* Returns true if the key is published; *memory is then where in the owner the access would be, allowed or not. */
bool published_place(const struct published *, const struct published_question *, uint64_t *memory);

/* Returns true if the access is allowed and the owner lives; *memory is then its place in the owner. */
bool published_permits(const struct published *, const struct published_question *, uint64_t *memory);

#endif
