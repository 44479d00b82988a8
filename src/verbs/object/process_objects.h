/* The objects that the verbs and queue pair 1 keep for the process. The struct begins with the process, so the way from
 * one to the other costs no instruction. assembly_parts (abi/assembly.h) has its size and the functions that make and
 * free the members. */
#pragma once

#include "process/process.h"
#include "verbs/object/context.h"

LIST_HEAD(context_list, context);
LIST_HEAD(group_list, group);
LIST_HEAD(xrc_domain_list, xrc_domain);

/* Ports that are down until they become active (verbs/disturb/delayed_port.c); under control. */
struct delayed_ports {
    struct schedule_timer timer;
    struct {
        nanos late; /* its delay; 0: `at` is known, or the port is not delayed */
        nanos at;   /* when it becomes active; 0: not known, or the port is not delayed */
    } ports[16];    /* by device */
    uint32_t begun; /* a bit for each device that has been opened */
};

struct address_book;
struct cq_memory;
struct send_ring;

/* Queues in memory (mlx5/queues/queues.h); under process->progress. */
struct queues {
    LIST_HEAD(, send_ring) sends;
    LIST_HEAD(, cq_memory) completions;
    struct address_book *addresses; /* or NULL */
};

struct process_objects {
    struct process process;
    struct gsi *gsi;
    struct cm *_Atomic cm; /* NULL: not used yet */
    struct context_list contexts;
    uint32_t next_handle;    /* under control */
    uint64_t dm_used;        /* bytes of device memory that are allocated; under control */
    struct rkey_table *keys; /* verbs/memory/rkeys.h */
    struct qpn_table *srqs;  /* numbers of XRC SRQs */
    struct xrc_domain_list domains;
    struct steering *steering; /* verbs/kinds/ethernet/steering.h */
    struct group_list groups;  /* multicast joins of queue pairs; under progress */
    struct delayed_ports delayed;
    struct queues queues;
};

/* The objects of a process, const if the process is. */
#define process_objects(of)                                                                                            \
    _Generic((of), struct process * : (struct process_objects *)(of), const struct process *                           \
             : (const struct process_objects *)(of))
