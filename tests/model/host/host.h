/* The modelled host: descriptors, Unix datagram sockets with queues that fill up, epoll, memfds, a few files, record
 * locks. As much of Linux as the code under test uses, as the manual pages and net/unix/af_unix.c have it; a call that
 * it does not know ends the run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/nanos.h"
#include "memory.h"

enum {
    HOST_FDS = 24,
    HOST_FIRST_FD = 1000, /* no descriptor of the real process */
    HOST_SOCKETS = 16,
    HOST_QUEUE = 8,
    HOST_LETTER = 128,
    HOST_EPOLLS = 4,
    HOST_INTERESTS = 8,
    HOST_EVENTFDS = 4,
    HOST_TIMERS = MEMORY_PROCESSES,
    HOST_MEMFDS = MEMORY_RINGS,
    HOST_NAMES = 16,
    HOST_NAME = 48,
    HOST_LOCKS = 16,
    HOST_FIRST_PID = 100,
    HOST_FIRST_DIRECTORY = 2000, /* what dirfd answers */
    HOST_DIRECTORIES = 4,
};

/* System calls that may be refused, at the cost of a refusal of the budget. */
enum host_refusal {
    HOST_NO_BUFFER = 1,       /* sendmsg from a socket that has sent before: EAGAIN, as if its send buffer were full */
    HOST_NO_MEMORY = 2,       /* sendmsg: ENOBUFS */
    HOST_TOO_MANY_REFS = 4,   /* sendmsg with a descriptor: ETOOMANYREFS */
    HOST_NO_DESCRIPTOR = 8,   /* recvmsg: the message arrives without its descriptor, MSG_CTRUNC */
    HOST_NO_MAPPING = 16,     /* mmap: ENOMEM */
    HOST_NO_MEMBARRIER = 32,  /* membarrier: EPERM */
    HOST_NO_SOCKET = 64,      /* socket: EMFILE */
    HOST_INTERRUPTS = 128,    /* no refusal: a signal handler that computes for long, before or after a call */
    HOST_NO_PROTECTION = 256, /* mprotect that closes registers: ENOMEM */
    HOST_SEND_REFUSALS = HOST_NO_BUFFER | HOST_NO_MEMORY | HOST_TOO_MANY_REFS,
};

enum fd_kind { FD_NONE, FD_SOCKET, FD_EPOLL, FD_EVENTFD, FD_TIMER, FD_MEMFD, FD_FILE };

struct host_fd {
    uint8_t kind, number;
};

struct host_message {
    uint8_t from;      /* the socket */
    uint8_t sender;    /* the process; the receiver gets its number, as with SO_PASSCRED */
    uint8_t memfds[2]; /* + 1 */
    uint8_t length;
    uint8_t bytes[HOST_LETTER];
};

struct host_socket {
    uint8_t references; /* descriptors */
    uint8_t peer;       /* + 1, connected to */
    uint8_t bound;
    uint8_t unread; /* messages from here that are in queues */
    uint8_t queued;
    struct host_message queue[HOST_QUEUE];
};

struct host_interest {
    uint8_t fd, kind, number, owner; /* of the descriptor; kind FD_NONE: unused */
    uint8_t order;                   /* of EPOLLEXCLUSIVE: the least is woken first */
    bool passed;                     /* the latest message woke another one */
    uint32_t events;
    uint64_t data;
};

struct host_epoll {
    uint8_t references;
    uint8_t waiting; /* a thread is in epoll_wait, and no message has woken it */
    struct host_interest interests[HOST_INTERESTS];
};

struct host_counter {
    uint8_t references;
    uint64_t count;
};

struct host_timer {
    uint8_t references, owner;
    nanos deadline; /* NANOS_NEVER: not set */
};

struct host_memfd {
    uint8_t references; /* descriptors and messages */
    int8_t ring;        /* of memory.h, of a ring or of other pages; -1 before its size is known */
    uint32_t size, seals;
};

enum name_kind { NAME_NONE, NAME_DIRECTORY, NAME_SOCKET, NAME_FILE };

struct host_name {
    uint8_t kind, number;
    char path[HOST_NAME];
};

struct host_file {
    uint8_t references; /* descriptors and names */
    uint32_t size;
};

struct host_lock {
    uint8_t file, process;
    bool taken;
    uint32_t start, end;
};

struct host {
    struct host_socket sockets[HOST_SOCKETS];
    struct host_name names[HOST_NAMES];
    struct host_fd fds[MEMORY_PROCESSES][HOST_FDS]; /* all from here on is hashed as it is */
    struct host_epoll epolls[HOST_EPOLLS];
    uint8_t last_order; /* of an interest */
    struct host_counter eventfds[HOST_EVENTFDS];
    struct host_timer timers[HOST_TIMERS];
    struct host_memfd memfds[HOST_MEMFDS];
    struct host_file files[MEMORY_FILES];
    struct host_lock locks[HOST_LOCKS];
    uint8_t last_memfd[MEMORY_PROCESSES]; /* + 1 */
    uint64_t vouchers[MEMORY_PROCESSES];  /* the word of the process's list of robust futexes; 0: no list */
    struct host_directory {
        uint8_t reader; /* the process, + 1; 0: unused */
        uint8_t of;     /* the process whose threads are listed, + 1; 0: the one directory of files */
        uint8_t listed;
    } directories[HOST_DIRECTORIES];
};

/* --- for schedule.c and scenarios */

void host_begin(void);
void host_snapshot(void);
void host_restore(void);
uint64_t host_hash(void);
void host_process_ends(unsigned process);
/* Which calls may be refused (enum host_refusal) to which processes (a bit each). */
void host_refuse(unsigned refusals, unsigned processes);
/* Sets whether this host has membarrier. (At first it has.) */
void host_membarrier(bool);
/* Sets whether processes of this host ask for the accesses that they may make in each other's memory by themselves. (At
 * first they don't.) */
void host_direct(bool);
/* Sets whether mprotect returns only when the stores are visible that other processors have made by the translation
 * that it takes away. (At first it does.) */
void host_protection_waits(bool);
/* Letters that a queue holds, and that a socket may have unread. */
void host_limit(unsigned queue, unsigned send_buffer);
/* When the next timer of a process that isn't dead or stopped runs out; NANOS_NEVER. */
nanos host_next_timer(void);
/* Letters that wait at the socket of this name; -1: no such socket. */
int host_messages(const char *path);
/* The number of the file with this path, as memory_file has it; -1: no such file. */
int host_file_number(const char *path);
/* The process that holds a record lock on the byte of the file with this path; -1: no process. */
int host_lock_holder(const char *path, unsigned byte);

/* Sets how often one store into a register may fault. (At first as often as it does.) */
void host_faults(unsigned most);
/* Called when a store into a closed register faults, for the so-manieth time: the handler runs. `at`: the store's place
 * in the code. */
void host_fault(volatile void *address, unsigned faults, const void *at);

/* --- for host*.c */

extern struct host host;
extern unsigned host_queue_limit, host_send_limit;

unsigned host_process(void);
/* The state is about to change. */
struct host *host_change(void);
/* A new descriptor, or -1 and EMFILE. */
int host_open_fd(enum fd_kind, unsigned number);
/* NULL and EBADF; FD_NONE: any kind. */
struct host_fd *host_fd(int fd, enum fd_kind);
struct host_name *host_find_name(const char *path);
struct host_name *host_add_name(const char *path, enum name_kind, unsigned number);
/* Returns true if a refusal of this kind is offered, and chosen. */
bool host_refuses(enum host_refusal);
int host_error(int error);
__attribute__((noreturn)) void host_unknown(const char *call);

/* mmap(2) without a descriptor, of memory that can be written. */
void *host_map_writable(size_t size);
/* mprotect(2). */
int host_protect(const void *start, size_t length, int protection, const void *at);
/* A second descriptor of what this one is of. */
int host_duplicate(const struct host_fd *);
long host_robust_list(long call, void *head);
void host_robust_list_dies(unsigned process);
void host_directories_end(unsigned process);
void host_memfd_hold(unsigned number);
void host_memfd_drop(unsigned number);
void host_file_drop(unsigned number);
void host_unlock(unsigned file, unsigned process, uint32_t start, uint32_t end);
void host_socket_drop(unsigned number);
void host_forget_interest(unsigned process, unsigned fd);
/* A message has come to the socket. */
void host_arrived(unsigned socket);
