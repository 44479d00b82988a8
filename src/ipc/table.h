/* The table of a host's processes: one file in the directory, mapped by all of them.
 *
 * It does not record which processes live: each process holds a POSIX record lock on the byte of the file whose number
 * is its slot. Such a lock ends with the process, isn't inherited by fork and can't be forged by a reused process id.
 * But it also ends when the process closes ANY descriptor of the file: so a process opens a table once, later openers
 * share it (table_open counts), and no other code may open the file.
 *
 * Any process of the user can truncate the file. An access to the missing part finds zeros in its place and `lost` set
 * (link/guard.h): all slots are dead then, and the owner of the table leaves the host.
 *
 * The next sweep undoes every change that a dying process may leave half done: an entry counts only while its owner
 * (slot and generation) lives. */
#ifndef IPC_TABLE_H
#define IPC_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "cm/ports.h"
#include "ipc/table_head.h"
#include "link/doorbell.h"
#include "link/guard.h"

enum {
    TABLE_SLOTS = 1024,
    TABLE_BLOCKS = 65536, /* of 256 queue pair numbers: all numbers of 24 bits */
    TABLE_JOINS = 1024,
    TABLE_PORTS = 16384, /* ports of the connection manager; a power of two */
    TABLE_ENDS = 4096,   /* places for ends of connections; a power of two */
    TABLE_END_WORDS = 8,
    TABLE_PROGRAM_MAX = 32,
    TABLE_NAME_MAX = 90,
};

enum table_state { TABLE_FREE = 0, TABLE_JOINING, TABLE_LIVE, TABLE_LEAVING };

struct table_slot {
    _Alignas(64) atomic_uint state; /* enum table_state */
    atomic_uint generation;         /* counts the slot's owners; never 0 for a living one */
    _Atomic pid_t pid;
    uint64_t start_time; /* clock ticks after boot, as /proc/PID/stat has it */
    char program[TABLE_PROGRAM_MAX];
    _Alignas(64) struct control_inbox inbox; /* the slot's socket */
    struct attention attention;              /* begins in the same line of the cache: a poll reads both */
};

_Static_assert((int)TABLE_SLOTS <= (int)MARKS_MOST, "each slot has a mark");

/* A process's membership in a multicast group. */
struct table_join {
    atomic_uint owner; /* table_owner, 0: free */
    atomic_uint count; /* 0: not a member (yet) */
    _Atomic uint64_t group[2];
};

/* A port number of the connection manager that a process has; ports.c. */
enum table_port_use {
    TABLE_PORT_BOUND,
    TABLE_PORT_LISTENS,
    TABLE_PORT_LISTENED, /* other claims may take the entry, which only names the process that knows the earlier
                          * requests */
};

struct table_port {
    atomic_uint owner;       /* table_owner, 0: free */
    atomic_uint use;         /* enum table_port_use */
    struct port_claim claim; /* written before the owner, and not while the entry has an owner */
};

/* An end of a connection, and a sum; ends.c. */
struct table_end {
    _Alignas(64) _Atomic uint64_t words[TABLE_END_WORDS];
};

struct table_file {
    struct table_head head;
    _Alignas(64) atomic_uint next_block; /* where the search for a free block starts */
    atomic_uint joins_used;              /* entries from here on have never been used */
    atomic_uint next_port;               /* where the search for a free port of the connection manager starts */
    atomic_uint next_low_block;          /* where the search for a free block among the first ones starts */
    struct table_slot slots[TABLE_SLOTS];
    atomic_uint blocks[TABLE_BLOCKS]; /* table_owner, 0: free */
    struct table_join joins[TABLE_JOINS];
    struct table_port ports[TABLE_PORTS];
    struct table_end ends[TABLE_ENDS];
};

struct table {
    struct table_file *file;
    int descriptor;
    unsigned users;
    dev_t device;
    ino_t inode;
    atomic_uint self;      /* our slot as an owner, 0: no slot */
    struct lock exclusive; /* excludes other threads of this process, as the record lock does other processes */
    char directory[TABLE_NAME_MAX + 1];
    struct guard_region region; /* the mapping */
    atomic_bool lost;           /* the file was truncated: private zeros are in its place */
    atomic_int waker;           /* an eventfd that is written when `lost` is set, or -1 */
    struct table *next;
};

/* Opens the directory's table. `create`: makes directory and table if they are missing, and replaces an unused table of
 * another layout; without `create` those are ENOENT, and ESTALE, which has no sentence. EBUSY: processes use a table of
 * another layout. EIO: the table is lost, and its other openers in this process must close it first. Returns 0, or
 * errno and a sentence. */
int table_open(struct table **, const char *directory, bool create, char *why, size_t why_size);
void table_close(struct table *);

/* Closes the file in a fork's child, and puts a private, empty table in its place. */
void table_abandon(struct table *);

/* Keeps other processes from joining and sweeping. EBUSY: a process holds the lock for too long; ESTALE: the table has
 * been replaced since it was opened; another errno: the system refuses the lock. */
int table_lock(struct table *);
void table_unlock(struct table *);
/* table_lock for callers that can do without: EBUSY after a tenth of a second with one holder, which may be stopped. */
int table_lock_soon(struct table *);
/* The process that holds the lock; 0: no process, or this one. */
pid_t table_lock_holder(const struct table *);

/* Sweeps, then takes a slot: the state is JOINING until table_announce. Returns 0, ESTALE, or errno and a sentence. */
int table_join(struct table *, char *why, size_t why_size);
void table_announce(struct table *);
/* Gives back the slot and all our entries of the table. */
void table_leave(struct table *);
/* table_leave without any lock, as a thread may still write to the slot: it is free when this process has ended. */
void table_withdraw(struct table *);

/* Returns true if a process holds this slot; always for our own. Asks the kernel. */
bool table_alive(const struct table *, unsigned slot);
/* The slot's process as this one sees it (the slot has its number in its own namespace). 0: it is not visible here, has
 * ended, or is this one. */
pid_t table_pid(const struct table *, unsigned slot);
/* Returns true if the slot's process is LIVE, of this generation, and alive. */
bool table_is(const struct table *, unsigned slot, uint32_t generation);

/* Removes what dead processes left; returns how many they were. Under table_lock. */
int table_sweep(struct table *);
/* table_sweep that takes the lock, if that is free soon; a negative errno if not. */
int table_sweep_now(struct table *);

/* The name of a slot's socket. `to` has room for CONTROL_NAME_MAX. */
void table_socket_name(const char *directory, unsigned slot, char *to);

/* Slot and generation in one word, never 0 for a living process. */
static inline uint32_t table_owner(unsigned slot, uint32_t generation)
{
    return generation << 10 | slot;
}

static inline unsigned table_owner_slot(uint32_t owner)
{
    return owner % TABLE_SLOTS;
}

/* The bits of a generation that fit beside a slot; all others are dropped everywhere. */
enum { TABLE_GENERATION_MASK = 0x3fffff };

static inline uint32_t table_owner_generation(uint32_t owner)
{
    return owner >> 10;
}

/* Our slot as an owner; 0: we have no slot (any more). */
static inline uint32_t table_self(const struct table *table)
{
    return atomic_load_explicit(&table->self, memory_order_relaxed);
}

/* Claims one of the first `blocks` blocks of queue pair numbers and writes its index. ENOSPC: all of these are taken.
 * Block 0 (the special numbers) and the last of all blocks (multicast's number) are never given out. */
int table_claim_block(struct table *, unsigned blocks, uint32_t *block);
void table_return_block(struct table *, uint32_t block);

int table_join_group(struct table *, const uint8_t group[16]);
int table_leave_group(struct table *, const uint8_t group[16]);
/* Writes the owners of the group's memberships, at most one a slot; returns how many. There is room for TABLE_SLOTS. */
unsigned table_members(const struct table *, const uint8_t group[16], uint32_t *owners);

#endif
