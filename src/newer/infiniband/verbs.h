/* The distribution's header, and what releases of rdma-core after 33 have added to it, if the installed one is older.
 *
 * This folder is first in the include path, so all of src/ sees the same interface; no other file asks which release is
 * installed. Values and layouts are facts of the interface, declared here in words of our own. The constants HAS_ come
 * from meson.build, which asks the compiler what the installed header has. Structures of releases after 44 have names
 * of our own (newer_), because a newer header declares the original names; calls/verbs.def has the functions. */
#pragma once

#include_next <infiniband/verbs.h>

#include <stddef.h>
#include <stdint.h>

#if !HAS_IBV_FORK_UNNEEDED /* release 35 */
enum ibv_fork_status {
    IBV_FORK_DISABLED,
    IBV_FORK_ENABLED,
    IBV_FORK_UNNEEDED,
};
#endif

#if !HAS_IBV_RATE_800_GBPS /* release 39 */
#define IBV_RATE_800_GBPS ((enum ibv_rate)23)
#define IBV_RATE_1200_GBPS ((enum ibv_rate)24)
#endif

#if !HAS_IBV_WR_ATOMIC_WRITE /* release 44 */
#define IBV_WR_ATOMIC_WRITE ((enum ibv_wr_opcode)15)
#define IBV_WC_ATOMIC_WRITE ((enum ibv_wc_opcode)9)
#define IBV_QP_EX_WITH_ATOMIC_WRITE (1 << 12)
#endif

#define NEWER_WR_FLUSH ((enum ibv_wr_opcode)14) /* 45 */
#define NEWER_WC_FLUSH ((enum ibv_wc_opcode)8)

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
struct ibv_dm *ibv_import_dm(struct ibv_context *, uint32_t handle);
void ibv_unimport_dm(struct ibv_dm *);
enum ibv_fork_status ibv_is_fork_initialized(void);
int ibv_query_qp_data_in_order(struct ibv_qp *, enum ibv_wr_opcode, uint32_t flags);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode); /* 49 */

enum {
    NEWER_QP_EX_WITH_FLUSH = 1 << 11,                        /* 45: enum ibv_qp_create_send_ops_flags */
    NEWER_ACCESS_FLUSH_GLOBAL = 1 << 8,                      /* 45: enum ibv_access_flags */
    NEWER_ACCESS_FLUSH_PERSISTENT = 1 << 9,                  /* 45: enum ibv_access_flags */
    NEWER_FLUSH_GLOBAL = 1 << 0,                             /* 45: enum ibv_placement_type */
    NEWER_FLUSH_PERSISTENT = 1 << 1,                         /* 45: enum ibv_placement_type */
    NEWER_FLUSH_RANGE = 0,                                   /* 45: enum ibv_selectivity_level */
    NEWER_FLUSH_REGION = 1,                                  /* 45: enum ibv_selectivity_level, IBV_FLUSH_MR */
    NEWER_ODP_SUPPORT_FLUSH = 1 << 6,                        /* 58: enum ibv_odp_transport_cap_bits */
    NEWER_ODP_SUPPORT_ATOMIC_WRITE = 1 << 7,                 /* 58: enum ibv_odp_transport_cap_bits */
    NEWER_EVENT_DEVICE_SPEED_CHANGE = 20,                    /* 62: enum ibv_event_type */
    NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC = 1 << 2, /* 64: enum ibv_parent_domain_init_attr_mask */
};

/* ibv_dmah (release 59): a hint about the user of memory, for the PCIe transactions of an adapter. */
struct newer_dmah {
    struct ibv_context *context;
};

enum { NEWER_DMAH_CPU_ID = 1 << 0, NEWER_DMAH_PH = 1 << 1, NEWER_DMAH_TPH_MEM_TYPE = 1 << 2 };

struct newer_dmah_init_attr {
    uint32_t comp_mask; /* NEWER_DMAH_ */
    uint32_t cpu_id;
    uint8_t ph, tph_mem_type;
};

/* ibv_comp_cntr (release 65): counts completed work of queue pairs, or its bytes. */
struct newer_comp_cntr {
    struct ibv_context *context;
    uint32_t handle;
};

enum { NEWER_COUNT_WORK, NEWER_COUNT_BYTES }; /* enum ibv_comp_cntr_type */

enum { /* enum ibv_qp_attach_comp_cntr_op */
       NEWER_COUNT_SEND = 1 << 0,
       NEWER_COUNT_RECV = 1 << 1,
       NEWER_COUNT_READ = 1 << 2,
       NEWER_COUNT_REMOTE_READ = 1 << 3,
       NEWER_COUNT_WRITE = 1 << 4,
       NEWER_COUNT_REMOTE_WRITE = 1 << 5,
};

struct newer_comp_cntr_caps {
    uint64_t max_value;
    uint32_t max_counters, supported_qp_attach_ops; /* NEWER_COUNT_ */
};

struct newer_comp_cntr_init_attr {
    uint32_t comp_mask, type, flags;
};

struct newer_qp_attach_comp_cntr_attr {
    uint32_t comp_mask, op_mask; /* NEWER_COUNT_ */
};

struct newer_buf; /* ibv_buf (release 64), which programs never look into */

enum {
    NEWER_MR_IOVA = 1 << 0,
    NEWER_MR_ADDR = 1 << 1,
    NEWER_MR_FD = 1 << 2,
    NEWER_MR_FD_OFFSET = 1 << 3,
    NEWER_MR_DMAH = 1 << 4,
    NEWER_MR_BUF = 1 << 5,
};

/* ibv_mr_init_attr. A program built with release 59 to 63 passes a struct that ends before `buf`: no code reads members
 * that the mask does not name. */
struct newer_mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask; /* NEWER_MR_ */
    uint64_t iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    struct newer_dmah *dmah;
    struct newer_buf *buf;
};

/* Members that newer releases have appended. Each follows a member that all releases have. */

static inline uint32_t *newer_dm_handle(struct ibv_dm *dm) /* 35, in what was padding */
{
    return (uint32_t *)((char *)dm + offsetof(struct ibv_dm, comp_mask)) + 1;
}

static inline uint32_t *newer_phys_port_cnt_ex(struct ibv_device_attr_ex *attr) /* 38, in what was padding */
{
    return (uint32_t *)((char *)attr + offsetof(struct ibv_device_attr_ex, xrc_odp_caps)) + 1;
}

/* The end of struct ibv_qp_ex as the newest release has it. */
struct newer_qp_ex_tail {
    void (*wr_atomic_write)(struct ibv_qp_ex *, uint32_t rkey, uint64_t address, const void *value);            /* 44 */
    void (*wr_flush)(struct ibv_qp_ex *, uint32_t rkey, uint64_t address, size_t, uint8_t type, uint8_t level); /* 45 */
};

enum {
    NEWER_QP_EX_TAIL = offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void (*)(void)),
    NEWER_QP_EX_BYTES = NEWER_QP_EX_TAIL + sizeof(struct newer_qp_ex_tail), /* the size of an object */
};

/* The object must have NEWER_QP_EX_BYTES. */
static inline struct newer_qp_ex_tail *newer_qp_ex_tail(struct ibv_qp_ex *qp)
{
    return (struct newer_qp_ex_tail *)((char *)qp + NEWER_QP_EX_TAIL);
}

#if !HAS_IBV_WR_ATOMIC_WRITE
static inline void ibv_wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t address, const void *value)
{
    newer_qp_ex_tail(qp)->wr_atomic_write(qp, rkey, address, value);
}
#endif
