/* The facts that a process publishes, so that its peers can judge a one-sided access by themselves
 * (docs/evidence/one-sided.md): its plain memory regions by key, its connected queue pairs by number, and whether it
 * lives. A memfd that is sealed against resizing and, once the owner has mapped it, against all writing but by that
 * mapping: peers can map it read-only, and no other way. Nothing in it is a pointer that its owner follows.
 *
 * A place is chosen by the low bits of the key or number, so nothing in it leads anywhere: peers compute with what they
 * read, but follow no offset, and what they compute is an address in the owner's memory, for the kernel to check. An
 * object that finds its place taken is not published, and peers then reach it with packets.
 *
 * An entry counts while its key or number stands in it. That is written last, and taken away first; the other fields
 * are written only while it is away and no access is under way that began before (published_withdraw_*, then waiting
 * for the announced requesters; link/direct.h). So a requester that has announced itself and then sees the key reads
 * fields that stay. */
#ifndef LINK_PUBLISHED_H
#define LINK_PUBLISHED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/voucher.h"

/* The default number of queue pairs of a device. Pages that are not used take no memory; all together are 6 MiB, less
 * than a program that locks its memory may have as an ordinary user (8 MiB). */
enum {
    PUBLISHED_KEYS = 65536,
    PUBLISHED_QUEUE_PAIRS = 65536,
};

enum published_access { PUBLISHED_WRITE = 1, PUBLISHED_READ = 2 };

/* As first_psn: it does not send yet. */
#define PUBLISHED_NO_PSN UINT32_MAX

struct published_key {
    _Alignas(64) atomic_uint key; /* 0: nothing is published here */
    uint32_t access;              /* enum published_access */
    uint64_t domain;              /* which protection domain; means nothing but equal or not */
    uint64_t base, length;        /* the memory of the key */
    uint64_t memory;              /* where that is in the owner */
};

struct published_queue_pair {
    _Alignas(32) atomic_uint number; /* 0: nothing is published here */
    uint32_t peer;                   /* the number that it is connected with */
    uint32_t access;                 /* the rights of the peer: enum published_access */
    /* With which it began to send and expected the peer to; shows whether both are of one connection. */
    uint32_t first_psn, peer_psn;
    uint32_t max_dest_rd_atomic; /* READs and atomics of the peer that it keeps results for */
    uint64_t domain;
};

struct published_file;

struct published {
    struct published_file *file; /* NULL: there is none */
    int descriptor;              /* of the owner's, to hand over; -1 */
    struct voucher voucher;      /* of the owner's thread that vouches */
};

/* --- the owner: one caller at a time for each key and each number */

/* Nothing is published yet, and no thread vouches. 0 or errno (EINVAL: the kernel cannot seal it against writing); then
 * file is NULL and descriptor -1, and all below do nothing. */
int published_create(struct published *);
/* Unmaps and closes; also in the child of a fork, whose parent goes on. */
void published_close(struct published *);

/* The calling thread vouches for the process until it ends or published_retract (link/voucher.h). Where the kernel
 * cannot report its end, it does not, and no access is permitted. */
void published_vouch(struct published *);
void published_retract(struct published *);

/* While it is closed (as at first), no access is judged by this. Close it when no requester is announced any more. */
void published_open(struct published *, bool open);

/* False: its place is taken. The fields but for the key or number are copied. */
bool published_key(struct published *, uint32_t key, const struct published_key *);
bool published_queue_pair(struct published *, uint32_t number, const struct published_queue_pair *);
/* True: it was there, and accesses that began before may be under way. */
bool published_withdraw_key(struct published *, uint32_t key);
bool published_withdraw_queue_pair(struct published *, uint32_t number);

/* --- a peer */

/* EINVAL when the descriptor is no memfd of this layout that is sealed as above. The descriptor stays the caller's. */
int published_map(struct published *, int descriptor);

/* One access as the owner's responder would judge it. Of a WRITE the answer counts that a peer gets which has announced
 * itself. */
struct published_question {
    bool write;
    uint32_t number, own_number; /* of the queue pair asked, and of the requester */
    uint32_t first_psn, own_psn; /* its rq_psn and sq_psn, as the asking queue pair has them */
    uint32_t key;
    uint64_t address;
    uint32_t length;        /* not 0 */
    uint32_t max_rd_atomic; /* of a READ: those that the asking queue pair may have outstanding; of a WRITE 0 */
};

/* Returns true if the key stands there; *memory is then where in the owner the access would go, be it allowed or not.
 */
bool published_place(const struct published *, const struct published_question *, uint64_t *memory);

/* Returns true if the access is allowed and the owner lives; *memory is then its place in the owner. */
bool published_permits(const struct published *, const struct published_question *, uint64_t *memory);

#endif
