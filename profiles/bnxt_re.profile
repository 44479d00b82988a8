# A Broadcom adapter with the driver bnxt_re of Linux 6.1: RC and UD, no UC, 4351 work requests, no multicast groups.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
max_qp = 131073                                       # https://github.com/uccl-project/uccl/issues/250
max_qp_wr = 4351                                      # https://github.com/uccl-project/uccl/issues/250
max_qp_rd_atom = 126                                  # https://github.com/uccl-project/uccl/issues/250
max_qp_init_rd_atom = 126                             # https://github.com/uccl-project/uccl/issues/250
max_cq = 65536                                        # https://github.com/uccl-project/uccl/issues/250
max_cqe = 8388607                                     # https://github.com/uccl-project/uccl/issues/250
board_id = none                                       # assumed: the file hca_type has the adapter of the seller
vendor_id = 0x14e4                                    # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:139
max_mr_size = 0x8000000000                            # linux drivers/infiniband/hw/bnxt_re/bnxt_re.h:51
page_size_cap = 0x7ffff000                            # linux drivers/infiniband/hw/bnxt_re/bnxt_re.h:48
max_sge = 6                                           # linux drivers/infiniband/hw/bnxt_re/qplib_sp.c:134
max_sge_rd = 6                                        # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:158
max_mr = 65536                                        # assumed: the firmware decides
max_mw = 65536                                        # assumed: the firmware decides
max_pd = 65536                                        # linux drivers/infiniband/hw/bnxt_re/qplib_sp.c:142
atomic_cap = 0                                        # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:165
max_ah = 65536                                        # assumed: the firmware decides
max_srq = 8192                                        # assumed: the firmware decides
max_srq_wr = 1048575                                  # assumed: the firmware decides
max_srq_sge = 6                                       # assumed: as many as of a queue pair
max_pkeys = 1                                         # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:191
local_ca_ack_delay = 16                               # linux drivers/infiniband/hw/bnxt_re/bnxt_re.h:81
max_mcast_grp = 0                                     # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:180
others = zero                                         # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:130

# -- port
max_mtu = 4096                                        # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:212
active_mtu = 1024                                     # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:213 (of an Ethernet MTU of 1500)
gid_tbl_len = 256                                     # linux drivers/infiniband/hw/bnxt_re/qplib_sp.h:48
pkey_tbl_len = 1                                      # linux drivers/infiniband/hw/bnxt_re/qplib_sp.c:149
port_cap_flags = 0x04890000                           # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:215
max_msg_sz = 0x40000000                               # linux drivers/infiniband/hw/bnxt_re/bnxt_re.h:50
max_vl_num = 4                                        # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:227
phys_state = 5                                        # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:207
link_layer = Ethernet                                 # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:383
gid_type = RoCEv2                                     # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:248

# -- what it has
node_type = CA                                        # linux drivers/infiniband/hw/bnxt_re/main.c:733
transport = InfiniBand                                # linux drivers/infiniband/hw/bnxt_re/main.c:733
qp_types = RC UD                                      # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:853
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ BIND_MW SEND_WITH_INV  # rdma-core providers/bnxt_re/verbs.c:2579
max_inline = 96                                       # assumed: the firmware decides
spare_inline = 0                                      # rdma-core providers/bnxt_re/verbs.c:2377 (what the driver leaves at 0: linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:910)

# -- how it refuses
errno_qp_type = EOPNOTSUPP                            # linux drivers/infiniband/hw/bnxt_re/ib_verbs.c:1240
errno_qp_size = EINVAL                                # rdma-core providers/bnxt_re/verbs.c:1173
errno_cq_size = EINVAL                                # rdma-core providers/bnxt_re/verbs.c:343
errno_opcode = EINVAL                                 # rdma-core providers/bnxt_re/verbs.c:2614
without ibv_alloc_dm = EOPNOTSUPP                     # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:51
without ibv_alloc_mw = EOPNOTSUPP                     # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:64
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP          # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:45
without ibv_attach_mcast = EOPNOTSUPP                 # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:140
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:174
without ibv_create_cq_ex = EOPNOTSUPP                 # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:189
without ibv_create_rwq_ind_table = EOPNOTSUPP         # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:225
without ibv_create_srq_ex = EOPNOTSUPP                # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:240
without ibv_create_wq = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP                  # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:386
without ibv_open_qp = EOPNOTSUPP                      # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP           # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:543
without ibv_rereg_mr = EOPNOTSUPP                     # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:618
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:356
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/bnxt_re/main.c:94, libibverbs/dummy_ops.c:164
