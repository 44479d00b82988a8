/* The state that all contexts of this process share: its place on the host, its helper thread and the endpoints that it
 * moves data for. There is one from the first ibv_open_device to the last ibv_close_device.
 *
 * The objects that the layers above keep in it are made, given up and inherited by the functions of one table, struct
 * process_parts, which the caller of process_join brings along: the process does not know them. */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

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

/* Callbacks supplied by the layers above. All except `answer` accept a process that `begin` could not finish. */
struct process_parts {
    int (*begin)(struct process *); /* 0 or errno; before the helper starts */
    /* The device is opened: opens its part on a network. 0 or errno. Under process->control. */
    int (*open_device)(struct process *, const struct device *);
    /* The program ends without closing its devices: notifies its peers. Under process->progress. */
    void (*leave)(struct process *);
    void (*write_counters)(
        struct process *);          /* all senders have ended: counts and stories go to the place that the user named */
    void (*stop)(struct process *); /* the helper has ended; the process is still on the host */
    void (*end)(struct process *);  /* it is not any more: frees everything */
    /* For the moment of a fork; behind process->progress. */
    void (*lock)(struct process *);
    void (*unlock)(struct process *);
    void (*inherit)(struct process *); /* in the child, which has process->inherited */
    /* The host is lost: all devices fail. False: another thread holds process->control; ask again. Without any lock. */
    bool (*fail_devices)(struct process *);
    void (*answer)(void *process, const char *request, int fd); /* to the tools; as of node_service */
    /* The device has this state from now on: publishes and reports it. False: another thread holds process->control;
     * ask again. By the helper, without any lock. */
    bool (*follow)(struct process *, const struct device *, const struct device_state *);
    void (*departed)(struct process *, nanos now); /* some peer has gone. Under process->progress */
    bool (*look_for_hangs)(struct process *);      /* report/hangs.h; NULL: nothing does */
};

/* An endpoint of another process that has a stand-in here: frames for it that this peer sends are the stand-in's. Under
 * process->progress. */
struct guest {
    LIST_ENTRY(guest) siblings; /* in loop.guests */
    uint32_t number;
    struct peer *from;
    struct endpoint *endpoint;
};

LIST_HEAD(guest_list, guest);
/* Of the loop (progress.c). */
struct loop {
    struct endpoint_list to_flush; /* received something and may have an answer; under progress */
    struct endpoint_list late;     /* owe only an ACK that no peer asked for; likewise */
    unsigned late_rounds;          /* since there are some; likewise */
    struct endpoint_list no_room;  /* have output that their link had no room for; under schedule.lock */
    _Atomic uint32_t no_room_count;
    struct schedule_timer liveness;          /* asks after the receivers of those */
    struct schedule_timer *_Atomic departed; /* expires when some peer has gone; NULL: no caller needs that */
    unsigned departures;                     /* as they were then; under progress */
    _Atomic uint32_t delivering;             /* number of the newest round that delivers; written under progress */
    _Atomic uint32_t answered;               /* that of the newest whose answers have left; likewise */
    atomic_bool owing;                       /* ACKs wait for the next round; set under progress */
    atomic_bool overrun;                     /* some CQ overran and its queue pairs must still be failed */
    struct endpoint xrc_control;             /* for control messages of XRC (verbs/kinds/xrc/xrc_control.h) */
    struct guest_list guests;
    atomic_bool has_guests;      /* there is one, or was */
    _Atomic uintptr_t deliverer; /* the thread whose round it is, by pthread_self; 0: none */
    struct wakeup_list wakeups;  /* the threads that this round wakes when it ends; under progress */
};

/* Of those who poll (poller.c). */
struct poller {
    _Atomic uint8_t restraints;    /* enum restraint: not every thread may move data (restraints.h) */
    _Atomic uint32_t rounds;       /* calls that move data; see poller_active */
    uint32_t polled_rounds;        /* of them since the last claim; under progress */
    _Atomic uint32_t claim_rounds; /* how many it takes for a claim; written by the helper */
    _Atomic uint32_t fruitless;    /* rounds in a row that found nothing; lost counts among threads do no harm */
    _Atomic uint32_t denied;       /* tries in a row to take the progress for a round, by anybody; likewise */
    _Atomic uint32_t denied_at;    /* `rounds` at that time */
    atomic_bool claimed;           /* pollers have just become hot; the helper has not seen it yet */
    _Atomic uint32_t copies;       /* foreign_waiting as a poller has seen it, */
    _Atomic nanos copies_since;    /* and when; NANOS_NEVER: that they do not end has been logged */
};

/* Of the receiver of changes of network interfaces (follow.c); the helper's alone. */
struct follow {
    int fd;           /* netlink; -1: no device is on an interface, or the program has closed it */
    ino_t inode;      /* of that socket */
    bool woken;       /* something has come there */
    uint32_t pending; /* devices to be looked at, a bit for each */
    uint32_t missed;  /* those whose interfaces could not be asked for; `again` has them looked at once more */
    bool deaf;        /* the socket could not be opened just now; likewise */
    struct schedule_timer again;
};

/* Of ports that are down until the adverse adapter has them active (verbs/context/delayed_port.c); under control. */
struct delayed_ports {
    struct schedule_timer timer;
    struct {
        nanos late; /* 0: its time is named, or it is not down */
        nanos at;   /* when it becomes active; 0: it is not down */
    } ports[16];    /* by device */
    uint32_t begun; /* a bit for each device that has been opened */
};

/* Of the helper thread (helper.c). */
struct helper {
    pthread_t thread;
    struct follow follow;
    atomic_bool stopping;
    _Atomic nanos frozen;        /* until then it does nothing, as a script wants */
    atomic_bool ending;          /* its last deed is to leave the host */
    bool watches;                /* for hangs: where a line would be printed */
    struct schedule_timer hangs; /* for what may wait for ever */
    struct delayed_ports delayed;
};

LIST_HEAD(context_list, context);
LIST_HEAD(group_list, group);
LIST_HEAD(xrc_domain_list, xrc_domain);

struct process {
    const struct process_parts *parts;
    struct mutex control;
    int cancellation; /* of the thread that holds control, for when it gives it back */
    struct lock progress;
    struct node *node;
    bool fences;        /* fence_everywhere reaches our threads */
    atomic_bool forked; /* nothing moves data any more: this is a child's copy, or the process ends */
    bool inherited;     /* a child's copy, see verbs/context/inherit.h */
    struct helper helper;
    struct poller poller;
    struct loop loop;
    struct schedule schedule;
    struct qpn_table *numbers;                /* of endpoints */
    struct endpoint mad, multicast, ethernet; /* for queue pair 1, for groups, for frames of Ethernet */
    struct udp_port *_Atomic ports[16];       /* by device; NULL: not on a network; port.c */
    _Atomic unsigned port_count;              /* behind the last of them */
    _Atomic uint32_t ports_down;              /* a bit for each device; report/event.c */
    struct traffic traffic;                   /* counters, capture and faults */

    /* Of the layers above, made and freed by their parts. */
    struct gsi *gsi;
    struct cm *_Atomic cm; /* NULL: not used yet */
    struct context_list contexts;
    uint32_t next_handle;
    uint64_t dm_used;        /* bytes of device memory that are allocated; under control */
    struct rkey_table *keys; /* verbs/memory/rkeys.h */
    struct qpn_table *srqs;  /* numbers of XRC SRQs */
    struct xrc_domain_list domains;
    struct steering *steering; /* verbs/kinds/ethernet/steering.h */
    struct group_list groups;  /* multicast joins of queue pairs; under progress */
};

/* The process, joined or made by the first call; counts its users. All callers bring the same parts. NULL and errno.
 * Thread-safe. */
struct process *process_join(const struct process_parts *);
void process_leave(struct process *);

/* From here on forks are waited for by, and wait for, the threads that hold locks of the library. Not sooner than the
 * library is used: handlers that the program has registered for forks by then, an allocator's locks for example, are
 * called behind the library's. Thread-safe. */
void process_watch_forks(void);

/* Returns true if peers may access memory directly instead of sending packets. False where taps have to see the
 * packets. */
static inline bool process_publishes(const struct process *process)
{
    return !traffic_taps(&process->traffic) && !atomic_load(&process->forked);
}

/* NULL: it has left the host, or is a child's copy. */
static inline struct node *process_node(const struct process *process)
{
    return atomic_load(&process->forked) ? NULL : process->node;
}

#endif
