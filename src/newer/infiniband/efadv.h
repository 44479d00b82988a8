/* The interface of libefa.so.1 as of release 65 of rdma-core: names, values and layouts, which are facts, in words of
 * our own. The distribution's header may be older, or missing. tests/abi/efa_layout_test.c compares what both have. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    EFADV_QP_DRIVER_TYPE_SRD = 0,
};

/* efadv_query_device(3): device_caps */
enum {
    EFADV_DEVICE_ATTR_CAPS_RDMA_READ = 1 << 0,
    EFADV_DEVICE_ATTR_CAPS_RNR_RETRY = 1 << 1,
    EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID = 1 << 2,
    EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE = 1 << 3,             /* 46 */
    EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV = 1 << 4, /* 52 */
    EFADV_DEVICE_ATTR_CAPS_CQ_WITH_EXT_MEM_DMABUF = 1 << 5, /* 59 */
    EFADV_DEVICE_ATTR_CAPS_COMP_CNTR = 1 << 6,              /* 65 */
};

struct efadv_device_attr {
    uint64_t comp_mask;
    uint32_t max_sq_wr;
    uint32_t max_rq_wr;
    uint16_t max_sq_sge;
    uint16_t max_rq_sge;
    uint16_t inline_buf_size;
    uint16_t inline_buf_size_ex; /* 63 */
    uint32_t device_caps;        /* 27, as the next */
    uint32_t max_rdma_size;
};

struct efadv_ah_attr {
    uint64_t comp_mask;
    uint16_t ahn;
    uint8_t reserved[6];
};

/* efadv_create_qp_ex(3): flags */
enum {
    EFADV_QP_FLAGS_UNSOLICITED_WRITE_RECV = 1 << 0, /* 52 */
    EFADV_QP_FLAGS_INLINE_WRITE = 1 << 1,           /* 63 */
};

struct efadv_qp_init_attr {
    uint64_t comp_mask;
    uint32_t driver_qp_type;
    uint16_t flags; /* 52 */
    uint8_t sl;     /* 55 */
    uint8_t reserved;
    uint64_t wr_flags; /* 64 */
};

/* efadv_create_qp_ex(3): wr_flags */
enum {
    EFADV_WR_EX_WITH_PROCESSING_HINTS = 1 << 0, /* 64 */
};

struct efadv_qp { /* 64 */
    uint64_t comp_mask;
    void (*wr_set_processing_hints)(struct efadv_qp *, uint32_t hints);
};

struct efadv_cq {
    uint64_t comp_mask;
    int (*wc_read_sgid)(struct efadv_cq *, union ibv_gid *sgid);
    bool (*wc_is_unsolicited)(struct efadv_cq *); /* 52 */
};

/* efadv_create_cq(3): wc_flags */
enum {
    EFADV_WC_EX_WITH_SGID = 1 << 0,
    EFADV_WC_EX_WITH_IS_UNSOLICITED = 1 << 1, /* 52 */
};

struct efadv_cq_init_attr {
    uint64_t comp_mask;
    uint64_t wc_flags;
    uint64_t flags; /* 59, as the next */
    struct {
        uint8_t *buffer;
        uint64_t length;
        uint64_t offset;
        int32_t fd;
        uint8_t reserved[4];
    } ext_mem_dmabuf;
};

struct efadv_cq_attr { /* 59 */
    uint64_t comp_mask;
    uint8_t *buffer;
    uint32_t entry_size;
    uint32_t num_entries;
    uint32_t *doorbell; /* 60 */
};

struct efadv_wq_attr { /* 59 */
    uint64_t comp_mask;
    uint8_t *buffer;
    uint32_t entry_size;
    uint32_t num_entries;
    uint32_t *doorbell;
    uint32_t max_batch;
    uint16_t caps; /* 65 */
    uint8_t reserved[2];
};

struct efadv_mr_attr { /* 50 */
    uint64_t comp_mask;
    uint16_t ic_id_validity;
    uint16_t recv_ic_id;
    uint16_t rdma_read_ic_id;
    uint16_t rdma_recv_ic_id;
};

/* efadv_get_max_sq_depth(3): flags */
enum {
    EFADV_SQ_DEPTH_ATTR_INLINE_WRITE = 1 << 0, /* 63 */
};

struct efadv_sq_depth_attr { /* 63 */
    uint64_t comp_mask;
    uint32_t flags;
    uint32_t max_send_sge;
    uint32_t max_rdma_sge;
    uint32_t max_inline_data;
};

struct efadv_rq_depth_attr { /* 63 */
    uint64_t comp_mask;
    uint32_t max_recv_sge;
    uint8_t reserved[4];
};

struct ibv_comp_cntr; /* 65 */
struct ibv_comp_cntr_init_attr;
struct efadv_comp_cntr_init_attr;
