# Soft-RoCE of Linux 6.1 (Debian 12) with its provider of rdma-core: what the guest of the interoperability tests has.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
fw_ver = 0.0.0                                        # rdma-core providers/rxe/rxe.c:88
board_id = none                                       # linux drivers/infiniband/sw/rxe/rxe_verbs.c:999
max_mr_size = 0xffffffffffffffff                      # linux drivers/infiniband/sw/rxe/rxe_param.h:40
page_size_cap = 0xfffff000                            # linux drivers/infiniband/sw/rxe/rxe_param.h:41
vendor_id = 0xffffff                                  # linux drivers/infiniband/sw/rxe/rxe_param.h:118
max_qp = 1048560                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:87
max_qp_wr = 1048576                                   # linux drivers/infiniband/sw/rxe/rxe_param.h:42
device_cap_flags = 0x01223c76                         # linux drivers/infiniband/sw/rxe/rxe_param.h:43
max_sge = 32                                          # linux drivers/infiniband/sw/rxe/rxe_param.h:55
max_sge_rd = 32                                       # linux drivers/infiniband/sw/rxe/rxe_param.h:60
max_cq = 1048576                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:61
max_cqe = 32767                                       # linux drivers/infiniband/sw/rxe/rxe_param.h:62
max_mr = 524287                                       # linux drivers/infiniband/sw/rxe/rxe_param.h:95
max_pd = 1048576                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:63
max_qp_rd_atom = 128                                  # linux drivers/infiniband/sw/rxe/rxe_param.h:64
max_res_rd_atom = 258048                              # linux drivers/infiniband/sw/rxe/rxe_param.h:65
max_qp_init_rd_atom = 128                             # linux drivers/infiniband/sw/rxe/rxe_param.h:66
atomic_cap = 1                                        # linux drivers/infiniband/sw/rxe/rxe.c:63
max_mw = 524287                                       # linux drivers/infiniband/sw/rxe/rxe_param.h:98
max_mcast_grp = 8192                                  # linux drivers/infiniband/sw/rxe/rxe_param.h:67
max_mcast_qp_attach = 56                              # linux drivers/infiniband/sw/rxe/rxe_param.h:68
max_total_mcast_qp_attach = 458752                    # linux drivers/infiniband/sw/rxe/rxe_param.h:69
max_ah = 32767                                        # linux drivers/infiniband/sw/rxe/rxe_param.h:70
max_srq = 917503                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:91
max_srq_wr = 1048576                                  # linux drivers/infiniband/sw/rxe/rxe_param.h:73
max_srq_sge = 27                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:75
max_pkeys = 64                                        # linux drivers/infiniband/sw/rxe/rxe_param.h:78
local_ca_ack_delay = 15                               # linux drivers/infiniband/sw/rxe/rxe_param.h:79
device_cap_flags_ex = 0x01223c76                      # linux drivers/infiniband/core/uverbs_cmd.c:3649
others = zero                                         # linux drivers/infiniband/sw/rxe/rxe_verbs.c:24

# -- port
max_mtu = 4096                                        # linux drivers/infiniband/sw/rxe/rxe.c:84
active_mtu = 1024                                     # linux drivers/infiniband/sw/rxe/rxe_param.h:14
gid_tbl_len = 1024                                    # linux drivers/infiniband/sw/rxe/rxe_param.h:123
port_cap_flags = 0x00010000                           # linux drivers/infiniband/sw/rxe/rxe_param.h:124
max_msg_sz = 0x800000                                 # linux drivers/infiniband/sw/rxe/rxe_param.h:125
pkey_tbl_len = 1                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:137
max_vl_num = 1                                        # linux drivers/infiniband/sw/rxe/rxe_param.h:132
active_width = 1                                      # linux drivers/infiniband/core/verbs.c:1923 (the link of the guest)
active_speed = 32                                     # linux drivers/infiniband/core/verbs.c:1931 (the link of the guest)
phys_state = 5                                        # linux drivers/infiniband/sw/rxe/rxe_verbs.c:42
link_layer = Ethernet                                 # linux drivers/infiniband/sw/rxe/rxe_verbs.c:103
gid_type = RoCEv2                                     # linux drivers/infiniband/sw/rxe/rxe_verbs.c:127

# -- what it has
node_type = CA                                        # linux drivers/infiniband/sw/rxe/rxe_verbs.c:1082
transport = InfiniBand                                # linux drivers/infiniband/sw/rxe/rxe_verbs.c:1082
qp_types = RC UC UD                                   # linux drivers/infiniband/sw/rxe/rxe_qp.c:67
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV  # linux drivers/infiniband/sw/rxe/rxe_opcode.c:14
send_ops = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV FLUSH ATOMIC_WRITE  # rdma-core providers/rxe/rxe.c:1277
max_inline = 512                                      # linux drivers/infiniband/sw/rxe/rxe_param.h:58
num_comp_vectors = 1                                  # linux drivers/infiniband/sw/rxe/rxe_verbs.c:1084 (the guest has one processor)
wc_flags = 0x7f                                       # rdma-core providers/rxe/rxe.c:404
arms = new                                            # linux drivers/infiniband/sw/rxe/rxe_verbs.c:845
mw_types = 1 2                                        # linux drivers/infiniband/sw/rxe/rxe_param.h:54
round_send_wr = power_of_two_less_one                 # linux drivers/infiniband/sw/rxe/rxe_queue.c:98
round_recv_wr = power_of_two_less_one                 # linux drivers/infiniband/sw/rxe/rxe_queue.c:98
round_cqe = power_of_two_less_one                     # linux drivers/infiniband/sw/rxe/rxe_queue.c:98
round_srq_wr = power_of_two_less_one                  # linux drivers/infiniband/sw/rxe/rxe_queue.c:98

# -- how it refuses
errno_qp_type = EOPNOTSUPP                            # linux drivers/infiniband/sw/rxe/rxe_qp.c:72
errno_qp_size = EINVAL                                # linux drivers/infiniband/sw/rxe/rxe_qp.c:56
errno_inline = EINVAL                                 # linux drivers/infiniband/sw/rxe/rxe_qp.c:56
errno_cq_size = EINVAL                                # linux drivers/infiniband/sw/rxe/rxe_cq.c:39
errno_srq_size = EINVAL                               # linux drivers/infiniband/sw/rxe/rxe_srq.c:41
errno_opcode = EINVAL                                 # rdma-core providers/rxe/rxe.c:1465
errno_count = EINVAL                                  # linux drivers/infiniband/sw/rxe/rxe_pool.c:193
errno_mr_count = ENOMEM                               # linux drivers/infiniband/sw/rxe/rxe_verbs.c:898
without ibv_alloc_dm = EOPNOTSUPP                     # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:51
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP          # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:121
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:174
without ibv_create_flow = EOPNOTSUPP                  # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:196
without ibv_create_rwq_ind_table = EOPNOTSUPP         # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:225
without ibv_create_wq = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP                  # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP         # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP                      # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP           # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:543
without ibv_reg_dmabuf_mr = EOPNOTSUPP                # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:606
without ibv_rereg_mr = EOPNOTSUPP                     # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:618
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:356
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/rxe/rxe.c:1824, libibverbs/dummy_ops.c:164
