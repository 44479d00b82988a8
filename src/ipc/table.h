/* The table of a host's processes: one file in the directory, mapped by all of them.
 *
 * It does not record which processes
 * live: each process holds a POSIX record lock on the byte of the file that is numbered like its slot. Such a lock goes
 * with the process, isn't inherited by fork and can't be forged by a reused process id. But it also goes when the
 * process closes ANY descriptor of the file: so a table is opened once in a process, shared by later openers
 * (table_open counts), and no other code may open the file.
 *
 * The file can be truncated by any process of the user. An
 * access to the missing part finds zeros in its place and `lost` set (link/guard.h): all slots are dead then, and the
 * owner of the table leaves the host.
 *
 * Every change that a dying process may leave half done is undone by the next
 * sweep: an entry counts only while its owner (slot and generation) lives. */
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
    TABLE_BLOCKS = 65536, /* of 256 queue pair numbers: all of the 24 bits */
    TABLE_JOINS = 1024,
    TABLE_PORTS = 16384, /* of the connection manager; a power of two */
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
    _Alignas(64) struct control_inbox letters; /* of the slot's socket */
    struct attention attention;                /* begins in the same line: what a poll reads stands together */
};

_Static_assert((int)TABLE_SLOTS <= (int)MARKS_MOST, "each slot has a mark");

/* A process's membership in a multicast group. */
struct table_join {
    atomic_uint owner; /* table_owner, 0: free */
    atomic_uint count; /* 0: doesn't count (yet) */
    _Atomic uint64_t group[2];
};

/* A port number of the connection manager that a process has; ports.c. */
enum table_port_use {
    TABLE_PORT_BOUND,
    TABLE_PORT_LISTENS,
    TABLE_PORT_LISTENED, /* other claims may take the entry, which only says whose process knows the requests that came
                            so far */
};

struct table_port {
    atomic_uint owner;       /* table_owner, 0: free */
    atomic_uint use;         /* enum table_port_use */
    struct port_claim claim; /* written before the owner, not changed while there is one */
};

struct table_file {
    struct table_head head;
    _Alignas(64) atomic_uint next_block; /* where the search for a free block starts */
    atomic_uint joins_used;              /* entries from here on have never been used */
    atomic_uint next_port;               /* where the search for a free port of the connection manager starts */
    struct table_slot slots[TABLE_SLOTS];
    atomic_uint blocks[TABLE_BLOCKS]; /* table_owner, 0: free */
    struct table_join joins[TABLE_JOINS];
    struct table_port ports[TABLE_PORTS];
};

struct table {
    struct table_file *file;
    int descriptor;
    unsigned users;
    dev_t device;
    ino_t inode;
    atomic_uint self;      /* our slot as an owner, 0: none */
    struct lock exclusive; /* keeps this process's threads apart where the record lock keeps processes apart */
    char directory[TABLE_NAME_MAX + 1];
    struct guard_region region; /* the mapping */
    atomic_bool lost;           /* the file was truncated: in its place is a private memory of zeros */
    atomic_int waker;           /* an eventfd that is written when that happens; -1 */
    struct table *next;
};

/* Opens the directory's table. `create`: makes directory and table when they are missing and replaces an unused table
 * of another layout; without it, ENOENT, and ESTALE for such a table, without a sentence. EBUSY: processes use one of
 * another layout. EIO: it is lost, and its other openers in this process must close it first. 0, or errno and a
 * sentence. */
int table_open(struct table **, const char *directory, bool create, char *why, size_t why_size);
void table_close(struct table *);

/* In a fork's child: closes the file and puts a private, empty table in its place. */
void table_abandon(struct table *);

/* Keeps other processes from joining and sweeping. EBUSY when one holds it for too long, ESTALE when the table has been
 * replaced since it was opened, another errno when the system refuses the lock. */
int table_lock(struct table *);
void table_unlock(struct table *);
/* The same for callers that can go on without: EBUSY after a tenth of a second with one holder, which may be stopped.
 */
int table_lock_soon(struct table *);
/* The process that holds the lock; 0: none, or this process. */
pid_t table_lock_holder(const struct table *);

/* Takes a slot: the state is JOINING until table_announce. Sweeps first. 0, ESTALE, or errno and a sentence. */
int table_join(struct table *, char *why, size_t why_size);
void table_announce(struct table *);
/* Gives back the slot and everything in the table that is ours. */
void table_leave(struct table *);
/* The same without any lock, where a thread may still write to the slot: no process takes that before this one ends. */
void table_withdraw(struct table *);

/* Returns true if a process holds this slot; always for our own. Asks the kernel. */
bool table_alive(const struct table *, unsigned slot);
/* The slot's process as this one sees it: the number in the slot is of the process's own namespace. 0: it is not seen
 * here, lives no more, or is this one. */
pid_t table_pid(const struct table *, unsigned slot);
/* Returns true if the slot's process is LIVE, of this generation, and alive. */
bool table_is(const struct table *, unsigned slot, uint32_t generation);

/* Removes what dead processes left, under table_lock; returns how many. */
int table_sweep(struct table *);
/* The same, taking the lock, if that is free soon; a negative errno when that fails. */
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

/* Of a generation only these bits are kept anywhere. */
enum { TABLE_GENERATION_MASK = 0x3fffff };

static inline uint32_t table_owner_generation(uint32_t owner)
{
    return owner >> 10;
}

/* Our slot as an owner, 0: we have none (any more). */
static inline uint32_t table_self(const struct table *table)
{
    return atomic_load_explicit(&table->self, memory_order_relaxed);
}

/* A block for us, as its index; ENOSPC. Never block 0, with the numbers that mean something, nor the last one, with
 * that of multicast. */
int table_claim_block(struct table *, uint32_t *block);
void table_return_block(struct table *, uint32_t block);

int table_join_group(struct table *, const uint8_t group[16]);
int table_leave_group(struct table *, const uint8_t group[16]);
/* The owners of all memberships in the group, at most one entry a slot; `owners` has room for TABLE_SLOTS. */
unsigned table_members(const struct table *, const uint8_t group[16], uint32_t *owners);

#endif
