# An Intel E810 with RoCEv2 and the driver irdma of Linux, as an owner's ibv_devinfo -v shows it: no shared receive queues, no atomics, 6 elements.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
fw_ver = 1.74                                         # https://github.com/deepseek-ai/3FS/issues/192
vendor_id = 0x8086                                    # https://github.com/deepseek-ai/3FS/issues/192
vendor_part_id = 5522                                 # https://github.com/deepseek-ai/3FS/issues/192
hw_ver = 2                                            # https://github.com/deepseek-ai/3FS/issues/192
max_mr_size = 0x200000000000                          # https://github.com/deepseek-ai/3FS/issues/192
page_size_cap = 0x40201000                            # https://github.com/deepseek-ai/3FS/issues/192
max_qp = 4092                                         # https://github.com/deepseek-ai/3FS/issues/192
max_qp_wr = 8127                                      # https://github.com/deepseek-ai/3FS/issues/192
device_cap_flags = 0x01221000                         # https://github.com/deepseek-ai/3FS/issues/192
max_sge = 6                                           # https://github.com/deepseek-ai/3FS/issues/192
max_sge_rd = 6                                        # https://github.com/deepseek-ai/3FS/issues/192
max_cq = 8189                                         # https://github.com/deepseek-ai/3FS/issues/192
max_cqe = 1048574                                     # https://github.com/deepseek-ai/3FS/issues/192
max_mr = 4194301                                      # https://github.com/deepseek-ai/3FS/issues/192
max_pd = 262141                                       # https://github.com/deepseek-ai/3FS/issues/192
max_qp_rd_atom = 8                                    # https://github.com/deepseek-ai/3FS/issues/192
max_qp_init_rd_atom = 8                               # https://github.com/deepseek-ai/3FS/issues/192
atomic_cap = 0                                        # https://github.com/deepseek-ai/3FS/issues/192
max_mw = 0                                            # https://github.com/deepseek-ai/3FS/issues/192
max_mcast_grp = 4096                                  # https://github.com/deepseek-ai/3FS/issues/192
max_mcast_qp_attach = 8                               # https://github.com/deepseek-ai/3FS/issues/192
max_total_mcast_qp_attach = 32768                     # https://github.com/deepseek-ai/3FS/issues/192
max_ah = 131072                                       # https://github.com/deepseek-ai/3FS/issues/192
max_srq = 0                                           # https://github.com/deepseek-ai/3FS/issues/192
max_pkeys = 1                                         # https://github.com/deepseek-ai/3FS/issues/192
device_cap_flags_ex = 0x1221000                       # https://github.com/deepseek-ai/3FS/issues/192
board_id = none                                       # https://github.com/deepseek-ai/3FS/issues/192
others = zero                                         # linux drivers/infiniband/hw/irdma/verbs.c:23

# -- port
max_mtu = 4096                                        # linux drivers/infiniband/hw/irdma/verbs.c:80
active_mtu = 1024                                     # linux drivers/infiniband/hw/irdma/verbs.c:81 (of an Ethernet MTU of 1500)
gid_tbl_len = 32                                      # linux drivers/infiniband/hw/irdma/verbs.c:98
pkey_tbl_len = 1                                      # linux drivers/infiniband/hw/irdma/verbs.h:9
port_cap_flags = 0x00810000                           # linux drivers/infiniband/hw/irdma/verbs.c:105
max_msg_sz = 0x7fffffff                               # linux drivers/infiniband/hw/irdma/user.h:77
phys_state = 5                                        # linux drivers/infiniband/hw/irdma/verbs.c:88
link_layer = Ethernet                                 # linux drivers/infiniband/core/verbs.c:241
gid_type = RoCEv2                                     # linux drivers/infiniband/hw/irdma/verbs.c:3649

# -- what it has
node_type = CA                                        # linux drivers/infiniband/hw/irdma/verbs.c:4507
transport = InfiniBand                                # https://github.com/deepseek-ai/3FS/issues/192
qp_types = RC UD                                      # linux drivers/infiniband/hw/irdma/verbs.c:845
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ LOCAL_INV BIND_MW SEND_WITH_INV  # rdma-core providers/irdma/uverbs.c:1874
max_inline = 101                                      # linux drivers/infiniband/hw/irdma/user.h:83
spare_inline = 0                                      # rdma-core providers/irdma/uk.c:840

# -- how it refuses
errno_qp_type = EOPNOTSUPP                            # rdma-core providers/irdma/uverbs.c:1530
errno_qp_size = EINVAL                                # rdma-core providers/irdma/uverbs.c:1554
errno_inline = EINVAL                                 # rdma-core providers/irdma/uverbs.c:1554
errno_cq_size = EINVAL                                # rdma-core providers/irdma/uverbs.c:559
errno_opcode = EINVAL                                 # rdma-core providers/irdma/uverbs.c:1953
errno_count = EOVERFLOW                               # linux drivers/infiniband/hw/irdma/main.h:431
errno_mr_count = ENOMEM                               # linux drivers/infiniband/hw/irdma/verbs.c:2667
without ibv_create_srq = EOPNOTSUPP                   # rdma-core providers/irdma/umain.c:79, libibverbs/dummy_ops.c:232
without ibv_alloc_dm = EOPNOTSUPP                     # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:51
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP          # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:45
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:174
without ibv_create_flow = EOPNOTSUPP                  # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:196
without ibv_create_qp_ex = EOPNOTSUPP                 # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:217
without ibv_create_rwq_ind_table = EOPNOTSUPP         # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:225
without ibv_create_srq_ex = EOPNOTSUPP                # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:240
without ibv_create_wq = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP                  # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP         # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP                      # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP           # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:543
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:356
without ibv_modify_srq = EOPNOTSUPP                   # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:409
without ibv_query_srq = EOPNOTSUPP                    # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:518
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/irdma/umain.c:87, libibverbs/dummy_ops.c:164
