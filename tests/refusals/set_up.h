/* The objects of the calls in the rows of objects.def and queues.def: one of each kind, in the states that matter. For
 * refusals_test.c. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { PAGES = 2 * 4096 };

struct objects {
    struct ibv_context *context, *other;
    struct ibv_device stranger;
    struct ibv_pd *pd, *empty_pd, *other_pd, *used_domain, *other_domain, *poor_domain, *odd_domain;
    struct ibv_td *td, *other_td;
    char *memory;
    struct ibv_mr *mr, *bound_mr, *null_mr, *dm_mr, *odp, *odp_elsewhere, *odp_all, *mr_elsewhere;
    struct ibv_mw *mw, *mw2;
    struct ibv_dm *dm, *free_dm;
    struct newer_dmah *dmah, *used_dmah, *other_dmah;
    struct newer_buf *buffer, *other_buffer;
    struct ibv_comp_channel *channel, *other_channel;
    struct ibv_cq *cq, *full_cq, *other_cq;
    struct ibv_cq_ex *full_ex;
    struct newer_comp_cntr *counter, *used_counter, *other_counter;
    struct ibv_srq *srq, *tm_srq, *xrc_srq;
    struct ibv_xrcd *xrcd, *other_xrcd;
    struct ibv_qp *reset, *init, *rtr, *rts, *full, *ud, *member, *raw, *raw_rts, *with_srq, *xrc_send, *xrc_recv,
        *counted;
    struct ibv_qp_ex *builder_ex, *init_ex, *ud_ex;
    struct ibv_ah *ah;
    struct ibv_wq *wq, *ready_wq;
    struct ibv_rwq_ind_table *table;
    struct ibv_flow *flow;
    struct ibv_counters *counters, *used_counters;
    int file, xrcd_file, third_file, forged, pipe[2];

    /* arguments, and room for answers */
    struct ibv_device_attr_ex device_attr;
    struct ibv_port_attr port_attr;
    union ibv_gid gid, far, group;
    struct ibv_gid_entry gid_entry;
    struct ibv_recv_wr receive, long_receive, *bad_receive;
    struct ibv_sge long_sge, gone_sge;
    struct ibv_ece ece;
    struct ibv_wc with_grh;
    struct ibv_grh foreign_grh;
    struct __attribute__((packed, aligned(8))) {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth spec;
    } odd_rule;
    uint8_t bytes[8], key[40];
    uint16_t vlan;
    uint32_t number;
    uint64_t value;
    __be16 pkey;
};

extern struct objects on;

void make_objects(void);

/* The allocator of parent domains: NULL, and nothing. */
void *allocate_nothing(struct ibv_pd *, void *, size_t, size_t, uint64_t);
void free_nothing(struct ibv_pd *, void *, void *, uint64_t);

/* ibv_create_qp_ex of a small queue pair of one element each way, unless `cap` says so; ibv_create_qp of an RC one. */
struct ibv_qp *create_qp(struct ibv_qp_init_attr_ex *);
struct ibv_qp *create_plain_qp(struct ibv_qp_cap);

/* The result of the call between ibv_wr_start and ibv_wr_abort on a queue pair in RTS; between ibv_start_poll and
 * ibv_end_poll. */
int in_batch(int (*call)(void));
int post_in_batch(void);
int in_poll(int (*call)(void));
int start_in_poll(void);

/* The errno of the first group that has no place; the queue pair leaves those that it joined before. */
int attach_until_refused(void);

/* While another process holds the file in which XRC domains are locked. */
bool with_lock(bool (*refused)(void));
bool open_third_xrcd(void);

/* Verbs that an installed header may lack. */
#define NEWER_VERB(answer, type, name, work, parameters, arguments) type newer_##name parameters __asm__(#name);
#include "calls/verbs.def"
