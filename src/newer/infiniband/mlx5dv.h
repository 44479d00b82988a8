/* The interface of libmlx5.so.1 as of release 65 of rdma-core: names, values and layouts, which are facts, in words of
 * our own; of what softverbs refuses only the names (calls/mlx5.def). The distribution's header may be older, or
 * missing. tests/abi/mlx5_test.c has the layouts of release 65. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* mlx5dv_query_device(3): comp_mask, in which the program asks, and gets the answer */
enum {
    MLX5DV_CONTEXT_MASK_CQE_COMPRESION = 1 << 0, /* so spelt */
    MLX5DV_CONTEXT_MASK_SWP = 1 << 1,
    MLX5DV_CONTEXT_MASK_STRIDING_RQ = 1 << 2,
    MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS = 1 << 3,
    MLX5DV_CONTEXT_MASK_DYN_BFREGS = 1 << 4,
    MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE = 1 << 5,
    MLX5DV_CONTEXT_MASK_FLOW_ACTION_FLAGS = 1 << 6,
    MLX5DV_CONTEXT_MASK_DC_ODP_CAPS = 1 << 7,
    MLX5DV_CONTEXT_MASK_HCA_CORE_CLOCK = 1 << 8,
    MLX5DV_CONTEXT_MASK_NUM_LAG_PORTS = 1 << 9,
    MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD = 1 << 10,
    MLX5DV_CONTEXT_MASK_DCI_STREAMS = 1 << 11,      /* 37 */
    MLX5DV_CONTEXT_MASK_WR_MEMCPY_LENGTH = 1 << 12, /* 37 */
    MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD = 1 << 13,   /* 37 */
    MLX5DV_CONTEXT_MASK_MAX_DC_RD_ATOM = 1 << 14,   /* 47 */
    MLX5DV_CONTEXT_MASK_REG_C0 = 1 << 15,           /* 50 */
    MLX5DV_CONTEXT_MASK_OOO_RECV_WRS = 1 << 16,     /* 55 */
};

/* the flags of a device */
enum {
    MLX5DV_CONTEXT_FLAGS_CQE_V1 = 1 << 0,
    MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED = 1 << 2,
    MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW = 1 << 3,
    MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP = 1 << 4,
    MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD = 1 << 5,
    MLX5DV_CONTEXT_FLAGS_PACKET_BASED_CREDIT_MODE = 1 << 6,
    MLX5DV_CONTEXT_FLAGS_REAL_TIME_TS = 1 << 7,
    MLX5DV_CONTEXT_FLAGS_BLUEFLAME = 1 << 8, /* 58 */
};

struct mlx5dv_reg {
    uint32_t value;
    uint32_t mask;
};

struct mlx5dv_context {
    uint8_t version;
    uint64_t flags;
    uint64_t comp_mask;
    struct {
        uint32_t max_num;
        uint32_t supported_format;
    } cqe_comp_caps;
    struct {
        uint32_t sw_parsing_offloads;
        uint32_t supported_qpts;
    } sw_parsing_caps;
    struct {
        uint32_t min_single_stride_log_num_of_bytes;
        uint32_t max_single_stride_log_num_of_bytes;
        uint32_t min_single_wqe_log_num_of_strides;
        uint32_t max_single_wqe_log_num_of_strides;
        uint32_t supported_qpts;
    } striding_rq_caps;
    uint32_t tunnel_offloads_caps;
    uint32_t max_dynamic_bfregs;
    uint64_t max_clock_info_update_nsec;
    uint32_t flow_action_flags;
    uint32_t dc_odp_caps;
    void *hca_core_clock;
    uint8_t num_lag_ports;
    struct {
        uint64_t block_size;
        uint32_t block_prot;
        uint16_t t10dif_bg;
        uint16_t crc_type;
    } sig_caps;
    struct {
        uint8_t max_log_num_concurent; /* so spelt */
        uint8_t max_log_num_errored;
    } dci_streams_caps;
    size_t max_wr_memcpy_length;
    struct {
        uint16_t failed_selftests;
        uint8_t crypto_engines;
        uint8_t wrapped_import_method;
        uint8_t log_max_num_deks;
        uint32_t flags;
    } crypto_caps;
    uint64_t max_dc_rd_atom;
    uint64_t max_dc_init_rd_atom;
    struct mlx5dv_reg reg_c0;
    struct {
        uint32_t max_rc;
        uint32_t max_xrc;
        uint32_t max_dct;
        uint32_t max_ud;
        uint32_t max_uc;
    } ooo_recv_wrs_caps;
};

/* mlx5dv_open_device(3) */
enum {
    MLX5DV_CONTEXT_FLAGS_DEVX = 1 << 0,
};

enum {
    MLX5DV_CONTEXT_ATTR_MASK_FD_ARRAY = 1 << 0, /* 57 */
};

struct mlx5dv_context_attr {
    uint32_t flags;
    uint64_t comp_mask;
    struct ibv_fd_arr *fds; /* 57 */
};

/* mlx5dv_create_cq(3) */
enum {
    MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE = 1 << 0,
    MLX5DV_CQ_INIT_ATTR_MASK_FLAGS = 1 << 1,
    MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE = 1 << 2,
};

enum {
    MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD = 1 << 0,
};

struct mlx5dv_cq_init_attr {
    uint64_t comp_mask;
    uint8_t cqe_comp_res_format;
    uint32_t flags;
    uint16_t cqe_size;
};

/* mlx5dv_create_qp(3) */
enum {
    MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS = 1 << 0,
    MLX5DV_QP_INIT_ATTR_MASK_DC = 1 << 1,
    MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS = 1 << 2,
    MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS = 1 << 3,
};

enum {
    MLX5DV_QP_CREATE_TUNNEL_OFFLOADS = 1 << 0,
    MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC = 1 << 1,
    MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC = 1 << 2,
    MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE = 1 << 3,
    MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE = 1 << 4,
    MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE = 1 << 5,
    MLX5DV_QP_CREATE_SIG_PIPELINING = 1 << 6,
    MLX5DV_QP_CREATE_OOO_DP = 1 << 7, /* 55 */
};

enum mlx5dv_dc_type {
    MLX5DV_DCTYPE_DCT = 1,
    MLX5DV_DCTYPE_DCI,
};

struct mlx5dv_dc_init_attr {
    enum mlx5dv_dc_type dc_type;
    union {
        uint64_t dct_access_key;
        struct {
            uint8_t log_num_concurent;
            uint8_t log_num_errored;
        } dci_streams;
    };
};

enum {
    MLX5DV_QP_EX_WITH_MR_INTERLEAVED = 1 << 0,
    MLX5DV_QP_EX_WITH_MR_LIST = 1 << 1,
    MLX5DV_QP_EX_WITH_MKEY_CONFIGURE = 1 << 2,
    MLX5DV_QP_EX_WITH_RAW_WQE = 1 << 3,
    MLX5DV_QP_EX_WITH_MEMCPY = 1 << 4,
};

struct mlx5dv_qp_init_attr {
    uint64_t comp_mask;
    uint32_t create_flags;
    struct mlx5dv_dc_init_attr dc_init_attr;
    uint64_t send_ops_flags;
};

/* mlx5dv_create_wq(3) */
enum {
    MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ = 1 << 0,
};

struct mlx5dv_wq_init_attr {
    uint64_t comp_mask;
    struct {
        uint32_t single_stride_log_num_of_bytes;
        uint32_t single_wqe_log_num_of_strides;
        uint8_t two_byte_shift_en;
    } striding_rq_attrs;
};

/* mlx5dv_alloc_dm(3) */
enum mlx5dv_alloc_dm_type {
    MLX5DV_DM_TYPE_MEMIC,
};

struct mlx5dv_alloc_dm_attr {
    enum mlx5dv_alloc_dm_type type;
    uint64_t comp_mask;
};

/* mlx5dv_create_mkey(3) */
enum {
    MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT = 1 << 0,
    MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE = 1 << 1,
    MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO = 1 << 2,
    MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG = 1 << 3,
    MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE = 1 << 4,
};

struct mlx5dv_mkey_init_attr {
    struct ibv_pd *pd;
    uint32_t create_flags;
    uint16_t max_entries;
};

struct mlx5dv_mkey {
    uint32_t lkey;
    uint32_t rkey;
};

/* mlx5dv_wr_mkey_configure(3) and its kin */
enum {
    MLX5DV_WC_UMR = IBV_WC_DRIVER1,
    MLX5DV_WC_RAW_WQE = IBV_WC_DRIVER2,
    MLX5DV_WC_MEMCPY = IBV_WC_DRIVER3,
};

struct mlx5dv_mr_interleaved {
    uint64_t addr;
    uint32_t bytes_count;
    uint32_t bytes_skip;
    uint32_t lkey;
};

struct mlx5dv_mkey_conf_attr {
    uint32_t conf_flags;
    uint64_t comp_mask;
};

struct mlx5dv_sig_block_attr;
struct mlx5dv_crypto_attr;

struct mlx5dv_qp_ex {
    uint64_t comp_mask;
    void (*wr_set_dc_addr)(struct mlx5dv_qp_ex *, struct ibv_ah *, uint32_t remote_dctn, uint64_t remote_dc_key);
    void (*wr_mr_interleaved)(struct mlx5dv_qp_ex *, struct mlx5dv_mkey *, uint32_t access_flags, uint32_t rounds,
                              uint16_t num_interleaved, struct mlx5dv_mr_interleaved *);
    void (*wr_mr_list)(struct mlx5dv_qp_ex *, struct mlx5dv_mkey *, uint32_t access_flags, uint16_t num_sges,
                       struct ibv_sge *);
    void (*wr_mkey_configure)(struct mlx5dv_qp_ex *, struct mlx5dv_mkey *, uint8_t num_setters,
                              struct mlx5dv_mkey_conf_attr *);
    void (*wr_set_mkey_access_flags)(struct mlx5dv_qp_ex *, uint32_t access_flags);
    void (*wr_set_mkey_layout_list)(struct mlx5dv_qp_ex *, uint16_t num_sges, const struct ibv_sge *);
    void (*wr_set_mkey_layout_interleaved)(struct mlx5dv_qp_ex *, uint32_t rounds, uint16_t num_interleaved,
                                           const struct mlx5dv_mr_interleaved *);
    void (*wr_set_mkey_sig_block)(struct mlx5dv_qp_ex *, const struct mlx5dv_sig_block_attr *);
    void (*wr_raw_wqe)(struct mlx5dv_qp_ex *, const void *wqe); /* 36 */
    void (*wr_set_dc_addr_stream)(struct mlx5dv_qp_ex *, struct ibv_ah *, uint32_t remote_dctn, uint64_t remote_dc_key,
                                  uint16_t stream_id); /* 37 */
    void (*wr_memcpy)(struct mlx5dv_qp_ex *, uint32_t dest_lkey, uint64_t dest_addr, uint32_t src_lkey,
                      uint64_t src_addr, size_t length);                                  /* 37 */
    void (*wr_set_mkey_crypto)(struct mlx5dv_qp_ex *, const struct mlx5dv_crypto_attr *); /* 37 */
};

/* _mlx5dv_mkey_check(3) */
enum mlx5dv_mkey_err_type {
    MLX5DV_MKEY_NO_ERR,
};

struct mlx5dv_mkey_err {
    enum mlx5dv_mkey_err_type err_type;
    struct {
        uint64_t actual_value;
        uint64_t expected_value;
        uint64_t offset;
    } sig;
};

/* mlx5dv_init_obj(3) */
enum {
    MLX5DV_OBJ_QP = 1 << 0,
    MLX5DV_OBJ_CQ = 1 << 1,
    MLX5DV_OBJ_SRQ = 1 << 2,
    MLX5DV_OBJ_RWQ = 1 << 3,
    MLX5DV_OBJ_DM = 1 << 4,
    MLX5DV_OBJ_AH = 1 << 5,
    MLX5DV_OBJ_PD = 1 << 6,
    MLX5DV_OBJ_DEVX = 1 << 7,
};

enum {
    MLX5DV_QP_MASK_UAR_MMAP_OFFSET = 1 << 0,
    MLX5DV_QP_MASK_RAW_QP_HANDLES = 1 << 1,
    MLX5DV_QP_MASK_RAW_QP_TIR_ADDR = 1 << 2,
};

struct mlx5dv_qp {
    __be32 *dbrec;
    struct {
        void *buf;
        uint32_t wqe_cnt;
        uint32_t stride;
    } sq, rq;
    struct {
        void *reg;
        uint32_t size;
    } bf;
    uint64_t comp_mask;
    off_t uar_mmap_offset;
    uint32_t tirn;
    uint32_t tisn;
    uint32_t rqn;
    uint32_t sqn;
    uint64_t tir_icm_addr;
};

/* The path to a receiver, as it stands in a work request. Numbers are big-endian. */
struct mlx5_wqe_av {
    union {
        struct {
            __be32 qkey;
            __be32 reserved;
        } qkey;
        __be64 dc_key;
    } key;
    __be32 dqp_dct;
    uint8_t stat_rate_sl;
    uint8_t fl_mlid;
    __be16 rlid; /* RoCE version 2: the source port of UDP */
    uint8_t reserved0[4];
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    __be32 grh_gid_fl;
    uint8_t rgid[16];
};

struct mlx5dv_ah {
    struct mlx5_wqe_av *av;
    uint64_t comp_mask;
};

struct mlx5dv_cq {
    void *buf;
    __be32 *dbrec; /* two words: what was consumed, and how the queue was armed */
    uint32_t cqe_cnt;
    uint32_t cqe_size;
    void *cq_uar;
    uint32_t cqn;
    uint64_t comp_mask;
};

enum {
    MLX5DV_SRQ_MASK_SRQN = 1 << 0,
};

struct mlx5dv_srq {
    void *buf;
    __be32 *dbrec;
    uint32_t stride;
    uint32_t head;
    uint32_t tail;
    uint64_t comp_mask;
    uint32_t srqn;
};

enum {
    MLX5DV_DM_MASK_REMOTE_VA = 1 << 0,
};

struct mlx5dv_dm {
    void *buf;
    uint64_t length;
    uint64_t comp_mask;
    uint64_t remote_va;
};

struct mlx5dv_pd {
    uint32_t pdn;
    uint64_t comp_mask;
};

struct mlx5dv_obj { /* pairs of an object and the place for its description */
    struct {
        struct ibv_qp *in;
        struct mlx5dv_qp *out;
    } qp;
    struct {
        struct ibv_cq *in;
        struct mlx5dv_cq *out;
    } cq;
    struct {
        struct ibv_srq *in;
        struct mlx5dv_srq *out;
    } srq;
    struct {
        void *in, *out;
    } rwq;
    struct {
        struct ibv_dm *in;
        struct mlx5dv_dm *out;
    } dm;
    struct {
        struct ibv_ah *in;
        struct mlx5dv_ah *out;
    } ah;
    struct {
        struct ibv_pd *in;
        struct mlx5dv_pd *out;
    } pd;
    struct {
        void *in, *out;
    } devx;
};

/* mlx5dv_set_context_attr(3) */
enum mlx5dv_set_ctx_attr_type {
    MLX5DV_CTX_ATTR_BUF_ALLOCATORS = 1,
};

/* mlx5dv_get_clock_info(3): the time stamp `last_cycles` was at `nsec`; others by mult, shift and frac */
struct mlx5dv_clock_info {
    uint64_t nsec;
    uint64_t last_cycles;
    uint64_t frac;
    uint32_t mult;
    uint32_t shift;
    uint64_t mask;
};

/* mlx5dv_query_port(3) */
struct mlx5dv_port {
    uint64_t flags; /* which of the members are valid */
    uint16_t vport;
    uint16_t vport_vhca_id;
    uint16_t esw_owner_vhca_id;
    uint16_t rsvd0;
    uint64_t vport_steering_icm_rx;
    uint64_t vport_steering_icm_tx;
    struct mlx5dv_reg reg_c0;
};

/* mlx5dv_devx_alloc_uar(3) */
#define MLX5DV_UAR_ALLOC_TYPE_BF 0u
#define MLX5DV_UAR_ALLOC_TYPE_NC 1u
#define MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED (1u << 31)

struct mlx5dv_devx_uar {
    void *reg_addr;
    void *base_addr;
    uint32_t page_id;
    off_t mmap_off;
    uint64_t comp_mask;
};

/* mlx5dv_reg_dmabuf_mr(3): mlx5_access */
enum {
    MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT = 1 << 0, /* 54 */
};
