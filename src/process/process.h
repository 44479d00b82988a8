/* The state that all contexts of this process share: its place on the host, its helper thread and the endpoints that it
 * moves data for. It exists from the first ibv_open_device to the last ibv_close_device.
 *
 * The objects that the layers above keep in it are made, given up and inherited by the functions of one table,
 * struct process_parts, which the caller of process_join brings along: the process does not know them. They are in a
 * struct of those layers, which begins with struct process. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/bucket.h"
#include "base/lock.h"
#include "base/nanos.h"
#include "ipc/node.h"
#include "link/udp/udp.h"
#include "process/wakeups.h"
#include "runtime/endpoint.h"
#include "runtime/schedule.h"
#include "tap/traffic.h"

struct device;
struct device_state;
struct process;

/* Callbacks supplied by the layers above. All except `report` accept a process that `begin` could not finish. */
struct process_parts {
    size_t size;                    /* of the struct that begins with struct process; it is zero before `begin` */
    int (*begin)(struct process *); /* 0 or errno; before the helper starts */
    /* Opens the part on a network of a device that is being opened. 0 or errno. Under process->control. */
    int (*open_device)(struct process *, const struct device *);
    /* Notifies the peers of a program that ends without closing its devices. Under process->progress. */
    void (*leave)(struct process *);
    /* Writes counts and stories where the user wants them; all senders have ended. */
    void (*write_counters)(struct process *);
    void (*stop)(struct process *); /* the helper has ended; the process is still on the host */
    void (*end)(struct process *);  /* the process has left the host: frees everything */
    /* Take and release the parts' locks around a fork, after process->progress. */
    void (*lock)(struct process *);
    void (*unlock)(struct process *);
    void (*inherit)(struct process *); /* in the child, which has process->inherited */
    /* Fails all devices of a lost host. False: another thread holds process->control; ask again. Without any lock. */
    bool (*fail_devices)(struct process *);
    void (*report)(void *process, const char *request, int fd); /* answers the tools; called by node_service */
    /* Publishes and reports the device's new state. False: another thread holds process->control; ask again. By the
     * helper, without any lock. */
    bool (*follow)(struct process *, const struct device *, const struct device_state *);
    void (*departed)(struct process *, nanos now); /* some peer has left. Under process->progress */
    bool (*look_for_hangs)(struct process *);      /* report/hangs.h; may be NULL */
    /* Queues in memory (mlx5/queues/queues.h). `look` takes the work that programs have written there; returns how
     * much. `close` lets each later store into a doorbell register wake the helper; false: it can't. `open` ends that;
     * true: a store had found a register closed. All three under process->progress. `descriptor` can be read when such
     * a store waits; -1: it wakes as a peer does. */
    struct {
        unsigned (*look)(struct process *, nanos now);
        void (*tell)(struct process *); /* of what the look has found, to the checker; without locks */
        bool (*close)(struct process *);
        bool (*open)(struct process *);
        int (*descriptor)(void);
    } queues;
};

/* An endpoint of another process that has a substitute here: the substitute gets the frames that this peer sends to
 * it. Under process->progress. */
struct guest {
    LIST_ENTRY(guest) siblings; /* in loop.guests */
    uint32_t number;
    struct peer *from;
    struct endpoint *endpoint;
};

LIST_HEAD(guest_list, guest);
/* The state of the loop (progress.c). */
struct loop {
    struct endpoint_list to_flush; /* endpoints that received something and may have an answer; under progress */
    struct endpoint_list late;     /* endpoints that owe only an ACK that no peer asked for; under progress */
    unsigned late_rounds;          /* rounds since `late` got one; under progress */
    struct bucket refusals;        /* answers to packets of the network for nobody (refusals.c); under progress */
    struct endpoint_list no_room;  /* endpoints whose link had no room for their output; under schedule.lock */
    _Atomic uint32_t no_room_count;
    struct schedule_timer liveness;          /* asks whether the receivers of the endpoints in no_room live */
    struct schedule_timer *_Atomic departed; /* expires when some peer has left; or NULL */
    unsigned departures;                     /* departures of peers that the loop has seen; under progress */
    _Atomic uint32_t delivering;             /* number of the newest round that delivers; written under progress */
    _Atomic uint32_t responded;              /* number of the newest round whose answers have left; under progress */
    atomic_bool owing;                       /* ACKs wait for the next round; set under progress */
    atomic_bool overrun;                     /* some CQ overran and its queue pairs must still be failed */
    struct endpoint xrc_control;             /* for control messages of XRC (verbs/kinds/xrc/xrc_control.h) */
    struct guest_list guests;
    atomic_bool has_guests;      /* `guests` has, or had, an element */
    _Atomic uintptr_t deliverer; /* pthread_self of the thread whose round it is; or 0 */
    struct wakeup_list wakeups;  /* the threads that this round wakes when it ends; under progress */
};

/* The state of the pollers (poller.c). */
struct poller {
    _Atomic uint8_t restraints;    /* enum restraint: not every thread may move data (restraints.h) */
    _Atomic uint32_t rounds;       /* calls that move data; see poller_active */
    uint32_t polled_rounds;        /* polling rounds since the last claim; under progress */
    _Atomic uint32_t claim_rounds; /* how many of these rounds a claim needs; written by the helper */
    _Atomic uint32_t fruitless;    /* rounds in a row that found nothing; lost counts among threads do no harm */
    _Atomic uint32_t denied;       /* failed tries in a row to take the progress, by any thread; may lose counts, too */
    _Atomic uint32_t denied_at;    /* `rounds` at the last failed try */
    atomic_bool claimed;           /* pollers have just become hot; the helper has not seen it yet */
    _Atomic uint32_t copies;       /* foreign_waiting as a poller has seen it */
    _Atomic nanos copies_since;    /* when `copies` was seen first; NANOS_NEVER: it is logged that they do not end */
};

/* The state of the receiver of changes of network interfaces (follow.c); only the helper uses it. */
struct follow {
    int fd;           /* netlink; -1: no device is on an interface, or the program has closed it */
    ino_t inode;      /* the socket's */
    bool woken;       /* the socket has messages */
    uint32_t pending; /* devices to be looked at, a bit for each */
    uint32_t missed;  /* devices whose interfaces could not be asked for; `again` looks once more */
    bool deaf;        /* the socket could not be opened; `again` tries once more */
    struct schedule_timer again;
};

/* The state of the helper thread (helper.c). */
struct helper {
    pthread_t thread;
    struct follow follow;
    atomic_bool stopping;
    bool late;                   /* helper_ends_late has waited for it; under the lock of joining */
    _Atomic nanos frozen;        /* until then it does nothing, as a script asked */
    atomic_bool ending;          /* it leaves the host before it ends */
    bool watches;                /* it looks for hangs: a line about them would be printed */
    struct schedule_timer hangs; /* the next look for hangs */
    atomic_bool queues;          /* the process has queues in memory: as their programs call nothing, no poller may
                                    relieve the helper */
};

struct process {
    const struct process_parts *parts;
    struct mutex control;
    int cancellation; /* the cancellation state to restore in the thread that holds control */
    struct lock progress;
    struct node *node;
    bool fences;        /* fence_everywhere reaches our threads */
    atomic_bool forked; /* no thread moves data any more: this is a child's copy, or the process ends */
    bool inherited;     /* a child's copy, see verbs/context/inherit.h */
    struct helper helper;
    struct poller poller;
    struct loop loop;
    struct schedule schedule;
    struct qpn_table *numbers;                /* of endpoints */
    struct endpoint mad, multicast, ethernet; /* for queue pair 1, for groups, for Ethernet frames */
    struct udp_port *_Atomic ports[16];       /* by device; NULL: not on a network; port.c */
    _Atomic unsigned port_count;              /* the index after the last port */
    _Atomic uint32_t ports_down;              /* a bit for each device; report/event.c */
    struct traffic traffic;                   /* counters, capture and faults */
};

/* Joins the process, which the first call makes; counts its users. All callers bring the same parts. NULL and errno.
 * Thread-safe. */
struct process *process_join(const struct process_parts *);
void process_leave(struct process *);

/* node_leave_sleeper, if the process still exists. Without locks. */
void process_leave_sleeper(const struct process *);

/* Makes forks wait for the threads that hold locks of the library, and these threads for forks. Called when the
 * library is first used, not sooner: handlers that the program has registered for forks by then, of an allocator for
 * example, are called after the library's. Thread-safe. */
void process_watch_forks(void);

/* Returns true if peers may access memory directly instead of sending packets. False while taps have to see the
 * packets. */
static inline bool process_publishes(const struct process *process)
{
    return !traffic_taps(&process->traffic) && !atomic_load(&process->forked);
}

/* The process's node; NULL: it has left the host, or is a child's copy. */
static inline struct node *process_node(const struct process *process)
{
    return atomic_load(&process->forked) ? NULL : process->node;
}
