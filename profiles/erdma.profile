# Like Alibaba's eRDMA with the driver of Linux 6.1: RC alone, no shared receive queues, receives of one element, iWARP by name.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
board_id = none                                       # linux drivers/infiniband/hw/erdma/erdma_main.c:431
vendor_id = 0x1ded                                    # linux drivers/infiniband/hw/erdma/erdma_verbs.c:272
vendor_part_id = 4223                                 # linux drivers/infiniband/hw/erdma/erdma_main.c:222
max_mr_size = 0x80000000000                           # assumed: the firmware decides
page_size_cap = 0x7ffff000                            # linux drivers/infiniband/hw/erdma/erdma_hw.h:113
max_qp = 131071                                       # assumed: the firmware decides
max_qp_wr = 8192                                      # linux drivers/infiniband/hw/erdma/erdma_verbs.h:17
device_cap_flags = 0x00200000                         # linux drivers/infiniband/hw/erdma/erdma_verbs.c:280
max_sge = 1                                           # linux drivers/infiniband/hw/erdma/erdma_verbs.h:23
max_sge_rd = 1                                        # linux drivers/infiniband/hw/erdma/erdma_verbs.h:20
max_cq = 262143                                       # assumed: twice as many as queue pairs, less one
max_cqe = 1048576                                     # assumed: the firmware decides
max_mr = 262144                                       # assumed: twice as many as queue pairs
max_pd = 131072                                       # linux drivers/infiniband/hw/erdma/erdma_verbs.h:16
max_qp_rd_atom = 128                                  # linux drivers/infiniband/hw/erdma/erdma_verbs.h:18
max_qp_init_rd_atom = 128                             # linux drivers/infiniband/hw/erdma/erdma_verbs.h:19
max_res_rd_atom = 16777216                            # assumed: READs of all queue pairs
others = zero                                         # linux drivers/infiniband/hw/erdma/erdma_verbs.c:269

# -- port
max_mtu = 1024                                        # linux drivers/infiniband/hw/erdma/erdma_verbs.c:329 (of an Ethernet MTU of 1500)
active_mtu = 1024                                     # linux drivers/infiniband/hw/erdma/erdma_verbs.c:330 (of an Ethernet MTU of 1500)
gid_tbl_len = 1                                       # linux drivers/infiniband/hw/erdma/erdma_verbs.c:321
pkey_tbl_len = 0                                      # linux drivers/infiniband/hw/erdma/erdma_verbs.c:319
port_cap_flags = 0x00090000                           # linux drivers/infiniband/hw/erdma/erdma_verbs.c:322
max_msg_sz = 0xffffffff                               # linux drivers/infiniband/hw/erdma/erdma_verbs.c:323
phys_state = 5                                        # linux drivers/infiniband/hw/erdma/erdma_verbs.c:339
link_layer = Ethernet                                 # linux drivers/infiniband/core/verbs.c:241
gid_type = IB                                         # linux drivers/infiniband/core/cache.c:399

# -- what it has
node_type = RNIC                                      # linux drivers/infiniband/hw/erdma/erdma_main.c:487
transport = iWARP                                     # linux drivers/infiniband/hw/erdma/erdma_main.c:487
qp_types = RC                                         # linux drivers/infiniband/hw/erdma/erdma_verbs.c:398
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ SEND_WITH_INV  # rdma-core providers/erdma/erdma_verbs.c:564
max_inline = 96                                       # linux drivers/infiniband/hw/erdma/erdma_verbs.h:24
spare_inline = 96                                     # rdma-core providers/erdma/erdma_verbs.c:676
round_cqe = power_of_two                              # rdma-core providers/erdma/erdma_verbs.c:178

# -- how it refuses
errno_qp_type = EOPNOTSUPP                            # linux drivers/infiniband/hw/erdma/erdma_verbs.c:399
errno_qp_size = EINVAL                                # linux drivers/infiniband/hw/erdma/erdma_verbs.c:389
errno_inline = EINVAL                                 # linux drivers/infiniband/hw/erdma/erdma_verbs.c:389
errno_cq_size = EINVAL                                # linux drivers/infiniband/hw/erdma/erdma_verbs.c:1427
errno_mr_size = EINVAL                                # linux drivers/infiniband/hw/erdma/erdma_verbs.c:916
errno_opcode = EINVAL                                 # rdma-core providers/erdma/erdma_verbs.c:661
errno_pd_count = ENOSPC                               # linux drivers/infiniband/hw/erdma/erdma_verbs.c:214
errno_mr_count = ENOSPC                               # linux drivers/infiniband/hw/erdma/erdma_verbs.c:764
errno_qp_count = ENOMEM                               # linux drivers/infiniband/hw/erdma/erdma_verbs.c:700
errno_cq_count = EBUSY                                # linux drivers/infiniband/hw/erdma/erdma_verbs.c:1440, lib/xarray.c:1845
without ibv_alloc_dm = EOPNOTSUPP                     # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:51
without ibv_alloc_mw = EOPNOTSUPP                     # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:64
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP          # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:45
without ibv_attach_mcast = EOPNOTSUPP                 # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:140
without ibv_create_ah = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:160
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:174
without ibv_create_cq_ex = EOPNOTSUPP                 # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:189
without ibv_create_flow = EOPNOTSUPP                  # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:196
without ibv_create_qp_ex = EOPNOTSUPP                 # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:217
without ibv_create_rwq_ind_table = EOPNOTSUPP         # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:225
without ibv_create_srq = EOPNOTSUPP                   # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:232
without ibv_create_srq_ex = EOPNOTSUPP                # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:240
without ibv_create_wq = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP                  # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP         # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP                      # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP           # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:543
without ibv_reg_dmabuf_mr = EOPNOTSUPP                # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:606
without ibv_rereg_mr = EOPNOTSUPP                     # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:618
without ibv_resize_cq = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:624
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:356
without ibv_modify_srq = EOPNOTSUPP                   # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:409
without ibv_query_srq = EOPNOTSUPP                    # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:518
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/erdma/erdma.c:20, libibverbs/dummy_ops.c:164
