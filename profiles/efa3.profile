# Like Amazon's EFA of the part 0xefa3, as in P5en and P6: UD by the verbs, SRD by libefa, which has READ and WRITE.
# Nobody has published the answers of its firmware, so what the firmware decides is as of the part 0xefa1 (efa.profile).
# Its unsolicited receives of WRITEs are known by what its users ask of it.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d
# source amzn-drivers: github.com/amzn/amzn-drivers at commit 64788ef7c182a9383445942b5f5f77fe1d25a290

# -- device
devices = rdmap85s0                            # rdma-core kernel-boot/rdma_rename.c:518 (of bus 85 and slot 0)
pci = 0000:55:00.0,vendor=0x1d0f,device=0xefa3 # rdma-core kernel-boot/rdma_rename.c:518 (the name says which function)
driver = efa                                   # amzn-drivers kernel/linux/efa/src/efa.h:20
board_id = none                                # linux drivers/infiniband/hw/efa/efa_main.c:357
vendor_id = 0x1d0f                             # linux drivers/infiniband/hw/efa/efa_main.c:21
vendor_part_id = 61347                         # amzn-drivers kernel/linux/efa/src/efa_main.c:30
max_mr_size = 103079215104                     # assumed: as efa1
page_size_cap = 0xfffff000                     # assumed: as efa1
hw_ver = 61347                                 # assumed: the part, as efa1's
max_ah = 1024                                  # assumed: as efa1
max_qp = 256                                   # assumed: as efa1
max_qp_wr = 4096                               # assumed: as efa1
max_sge = 2                                    # rdma-core providers/efa/efa_io_defs.h:9
max_sge_rd = 1                                 # rdma-core providers/efa/efa_io_defs.h:10
max_cq = 512                                   # assumed: as efa1
max_cqe = 32768                                # assumed: as efa1
max_mr = 262144                                # assumed: as efa1
max_pd = 256                                   # assumed: as efa1
max_pkeys = 1                                  # linux drivers/infiniband/hw/efa/efa_verbs.c:237
others = zero                                  # linux drivers/infiniband/hw/efa/efa_verbs.c:220

# -- port
max_mtu = 4096                                 # linux drivers/infiniband/hw/efa/efa_verbs.c:281
active_mtu = 4096                              # linux drivers/infiniband/hw/efa/efa_verbs.c:282
gid_tbl_len = 1                                # linux drivers/infiniband/hw/efa/efa_verbs.c:277
pkey_tbl_len = 1                               # linux drivers/infiniband/hw/efa/efa_verbs.c:278
max_msg_sz = 8928                              # assumed: as efa1
lmc = 1                                        # linux drivers/infiniband/hw/efa/efa_verbs.c:273
max_vl_num = 1                                 # linux drivers/infiniband/hw/efa/efa_verbs.c:284
active_width = 2                               # linux drivers/infiniband/hw/efa/efa_verbs.c:280
active_speed = 32                              # linux drivers/infiniband/hw/efa/efa_verbs.c:279
phys_state = 5                                 # linux drivers/infiniband/hw/efa/efa_verbs.c:276
link_layer = unspecified                       # linux drivers/infiniband/hw/efa/efa_verbs.c:2133
gid_type = IB                                  # linux drivers/infiniband/core/cache.c:399

# -- what it has
node_type = unspecified                        # linux drivers/infiniband/hw/efa/efa_main.c:430
transport = unspecified                        # linux drivers/infiniband/hw/efa/efa_main.c:430
qp_types = UD                                  # linux drivers/infiniband/hw/efa/efa_verbs.c:600
opcodes = SEND SEND_WITH_IMM                   # rdma-core providers/efa/verbs.c:2037
send_ops = SEND SEND_WITH_IMM                  # rdma-core providers/efa/verbs.c:2037
max_send_wr = 4096                             # assumed: as efa1
max_recv_wr = 32768                            # assumed: as efa1
max_send_sge = 2                               # rdma-core providers/efa/efa_io_defs.h:9
max_recv_sge = 3                               # assumed: as efa1
qpn_bits = 16                                  # rdma-core providers/efa/efa_io_defs.h:110
max_inline = 32                                # rdma-core providers/efa/efa_io_defs.h:11
spare_inline = 0                               # rdma-core providers/efa/verbs.c:2686
access = LOCAL_WRITE REMOTE_READ REMOTE_WRITE  # amzn-drivers kernel/linux/efa/src/efa_verbs.c:2650
efa_caps = RDMA_READ RNR_RETRY CQ_WITH_SGID RDMA_WRITE UNSOLICITED_WRITE_RECV # assumed: what aws-ofi-nccl asks of it
max_rdma_size = 0x40000000                     # assumed: as efa1
round_cqe = power_of_two                       # rdma-core providers/efa/verbs.c:1277
wc_flags = 0x7f                                # rdma-core providers/efa/verbs.c:1220

# -- how it refuses
errno_qp_type = EOPNOTSUPP                     # linux drivers/infiniband/hw/efa/efa_verbs.c:603
errno_qp_size = EINVAL                         # linux drivers/infiniband/hw/efa/efa_verbs.c:564
errno_inline = EINVAL                          # linux drivers/infiniband/hw/efa/efa_verbs.c:564
errno_cq_size = EINVAL                         # linux drivers/infiniband/hw/efa/efa_verbs.c:1081
errno_opcode = EINVAL                          # rdma-core providers/efa/verbs.c:2638
errno_access = EOPNOTSUPP                      # linux drivers/infiniband/hw/efa/efa_verbs.c:1580
errno_count = ENOMEM                           # linux drivers/infiniband/hw/efa/efa_com.c:484
without ibv_alloc_dm = EOPNOTSUPP              # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:51
without ibv_alloc_mw = EOPNOTSUPP              # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:64
without ibv_alloc_null_mr = EOPNOTSUPP         # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:100
without ibv_advise_mr = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:45
without ibv_attach_mcast = EOPNOTSUPP          # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:140
without ibv_create_counters = EOPNOTSUPP       # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:174
without ibv_create_flow = EOPNOTSUPP           # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:196
without ibv_create_rwq_ind_table = EOPNOTSUPP  # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:225
without ibv_create_srq = EOPNOTSUPP            # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:232
without ibv_create_srq_ex = EOPNOTSUPP         # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:240
without ibv_create_wq = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:247
without ibv_get_srq_num = EOPNOTSUPP           # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP  # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP               # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP               # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP    # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:513
without ibv_reg_dm_mr = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:543
without ibv_rereg_mr = EOPNOTSUPP              # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:618
without ibv_resize_cq = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:624
without ibv_import_mr = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:356
without ibv_modify_srq = EOPNOTSUPP            # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:409
without ibv_query_srq = EOPNOTSUPP             # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:518
without ibv_alloc_dmah = EOPNOTSUPP            # rdma-core providers/efa/efa.c:30, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP  # linux drivers/infiniband/hw/efa/efa_main.c:357 (no operation of counters)
without ibv_create_comp_cntr = EOPNOTSUPP      # linux drivers/infiniband/hw/efa/efa_main.c:357 (no operation of counters)
