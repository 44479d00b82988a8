# Soft iWARP of Linux 6.1 with its provider of rdma-core: RC alone, one GID, no atomics, no immediate data.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
fw_ver = 0.0.0                                     # rdma-core providers/siw/siw.c:42
board_id = none                                    # linux drivers/infiniband/sw/siw/siw_main.c:252
max_mr_size = 0xffffffffffffffff                   # linux drivers/infiniband/sw/siw/siw_verbs.c:142
page_size_cap = 4096                               # linux drivers/infiniband/sw/siw/siw_verbs.c:155
vendor_id = 0x626d74                               # linux drivers/infiniband/sw/siw/siw.h:20
max_qp = 102400                                    # linux drivers/infiniband/sw/siw/siw.h:22
max_qp_wr = 32768                                  # linux drivers/infiniband/sw/siw/siw.h:23
device_cap_flags = 0x00200000                      # linux drivers/infiniband/sw/siw/siw_verbs.c:135
max_sge = 6                                        # linux include/uapi/rdma/siw-abi.h:13
max_sge_rd = 1                                     # linux drivers/infiniband/sw/siw/siw.h:27
max_cq = 102400                                    # linux drivers/infiniband/sw/siw/siw.h:28
max_cqe = 3276800                                  # linux drivers/infiniband/sw/siw/siw.h:29
max_mr = 1024000                                   # linux drivers/infiniband/sw/siw/siw.h:30
max_pd = 102400                                    # linux drivers/infiniband/sw/siw/siw.h:31
max_qp_rd_atom = 128                               # linux drivers/infiniband/sw/siw/siw_verbs.c:146
max_qp_init_rd_atom = 128                          # linux drivers/infiniband/sw/siw/siw_verbs.c:145
max_res_rd_atom = 13107200                         # linux drivers/infiniband/sw/siw/siw_verbs.c:149
max_mw = 0                                         # linux drivers/infiniband/sw/siw/siw.h:32
max_srq = 102400                                   # linux drivers/infiniband/sw/siw/siw.h:33
max_srq_wr = 327680                                # linux drivers/infiniband/sw/siw/siw.h:34
max_srq_sge = 6                                    # linux drivers/infiniband/sw/siw/siw_main.c:370
others = zero                                      # linux drivers/infiniband/sw/siw/siw_verbs.c:131

# -- port
max_mtu = 1024                                     # linux drivers/infiniband/sw/siw/siw_verbs.c:177 (of an Ethernet MTU of 1500)
active_mtu = 1024                                  # linux drivers/infiniband/sw/siw/siw_verbs.c:178 (of an Ethernet MTU of 1500)
gid_tbl_len = 1                                    # linux drivers/infiniband/sw/siw/siw_verbs.c:175
pkey_tbl_len = 0                                   # linux drivers/infiniband/sw/siw/siw_verbs.c:171
port_cap_flags = 0x00090000                        # linux drivers/infiniband/sw/siw/siw_verbs.c:181
max_msg_sz = 0xffffffff                            # linux drivers/infiniband/sw/siw/siw_verbs.c:176
phys_state = 5                                     # linux drivers/infiniband/sw/siw/siw_verbs.c:179
link_layer = Ethernet                              # linux drivers/infiniband/core/verbs.c:241
gid_type = IB                                      # linux drivers/infiniband/core/cache.c:399

# -- what it has
node_type = RNIC                                   # linux drivers/infiniband/sw/siw/siw_main.c:331
transport = iWARP                                  # linux drivers/infiniband/sw/siw/siw_main.c:331
qp_types = RC                                      # linux drivers/infiniband/sw/siw/siw_verbs.c:321
opcodes = RDMA_WRITE SEND RDMA_READ SEND_WITH_INV  # rdma-core providers/siw/siw.c:489
max_inline = 80                                    # linux include/uapi/rdma/siw-abi.h:90
spare_inline = 80                                  # rdma-core providers/siw/siw.c:548
arms = new                                         # rdma-core providers/siw/siw.c:472 (read by linux drivers/infiniband/sw/siw/siw_qp.c:1034)
round_cqe = power_of_two                           # linux drivers/infiniband/sw/siw/siw_verbs.c:1151

# -- how it refuses
errno_qp_type = EOPNOTSUPP                         # linux drivers/infiniband/sw/siw/siw_verbs.c:322
errno_qp_size = EINVAL                             # linux drivers/infiniband/sw/siw/siw_verbs.c:330
errno_inline = EINVAL                              # linux drivers/infiniband/sw/siw/siw_verbs.c:336
errno_cq_size = EINVAL                             # linux drivers/infiniband/sw/siw/siw_verbs.c:1147
errno_srq_size = EINVAL                            # linux drivers/infiniband/sw/siw/siw_verbs.c:1611
errno_opcode = EINVAL                              # rdma-core providers/siw/siw.c:536
errno_count = ENOMEM                               # linux drivers/infiniband/sw/siw/siw_verbs.c:317
without ibv_alloc_dm = EOPNOTSUPP                  # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:51
without ibv_alloc_mw = EOPNOTSUPP                  # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:64
without ibv_alloc_null_mr = EOPNOTSUPP             # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP       # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                  # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:45
without ibv_attach_mcast = EOPNOTSUPP              # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:140
without ibv_create_ah = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:160
without ibv_create_counters = EOPNOTSUPP           # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:174
without ibv_create_cq_ex = EOPNOTSUPP              # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:189
without ibv_create_flow = EOPNOTSUPP               # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:196
without ibv_create_qp_ex = EOPNOTSUPP              # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:217
without ibv_create_rwq_ind_table = EOPNOTSUPP      # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:225
without ibv_create_srq_ex = EOPNOTSUPP             # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:240
without ibv_create_wq = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP               # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP      # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP                   # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                   # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP        # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:543
without ibv_reg_dmabuf_mr = EOPNOTSUPP             # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:606
without ibv_rereg_mr = EOPNOTSUPP                  # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:618
without ibv_resize_cq = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:624
without ibv_import_mr = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:356
without ibv_query_srq = EOPNOTSUPP                 # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:518
without ibv_alloc_dmah = EOPNOTSUPP                # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP      # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP          # rdma-core providers/siw/siw.c:821, libibverbs/dummy_ops.c:164
