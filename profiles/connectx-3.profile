# A ConnectX-3 with RoCE, as an owner's ibv_devinfo -v shows it: RoCE v1 alone, no builders, 1024 bytes inline.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
fw_ver = 2.33.5100                                    # https://github.com/claudebarthels/infinity/issues/5
vendor_id = 0x02c9                                    # https://github.com/claudebarthels/infinity/issues/5
vendor_part_id = 4099                                 # https://github.com/claudebarthels/infinity/issues/5
hw_ver = 0                                            # https://github.com/claudebarthels/infinity/issues/5
board_id = MT_1080120023                              # https://github.com/claudebarthels/infinity/issues/5
max_mr_size = 0xffffffffffffffff                      # https://github.com/claudebarthels/infinity/issues/5
page_size_cap = 0xfffffe00                            # https://github.com/claudebarthels/infinity/issues/5
max_qp = 131000                                       # https://github.com/claudebarthels/infinity/issues/5
max_qp_wr = 16351                                     # https://github.com/claudebarthels/infinity/issues/5
device_cap_flags = 0x057e9c66                         # https://github.com/claudebarthels/infinity/issues/5
max_sge = 32                                          # https://github.com/claudebarthels/infinity/issues/5
max_sge_rd = 30                                       # https://github.com/claudebarthels/infinity/issues/5
max_cq = 65408                                        # https://github.com/claudebarthels/infinity/issues/5
max_cqe = 4194303                                     # https://github.com/claudebarthels/infinity/issues/5
max_mr = 524032                                       # https://github.com/claudebarthels/infinity/issues/5
max_pd = 32764                                        # https://github.com/claudebarthels/infinity/issues/5
max_qp_rd_atom = 16                                   # https://github.com/claudebarthels/infinity/issues/5
max_res_rd_atom = 2096000                             # https://github.com/claudebarthels/infinity/issues/5
max_qp_init_rd_atom = 128                             # https://github.com/claudebarthels/infinity/issues/5
atomic_cap = 1                                        # https://github.com/claudebarthels/infinity/issues/5
max_mw = 0                                            # https://github.com/claudebarthels/infinity/issues/5
max_mcast_grp = 8192                                  # https://github.com/claudebarthels/infinity/issues/5
max_mcast_qp_attach = 248                             # https://github.com/claudebarthels/infinity/issues/5
max_total_mcast_qp_attach = 2031616                   # https://github.com/claudebarthels/infinity/issues/5
max_ah = 2147483647                                   # https://github.com/claudebarthels/infinity/issues/5
max_srq = 65472                                       # https://github.com/claudebarthels/infinity/issues/5
max_srq_wr = 16383                                    # https://github.com/claudebarthels/infinity/issues/5
max_srq_sge = 31                                      # https://github.com/claudebarthels/infinity/issues/5
local_ca_ack_delay = 15                               # https://github.com/claudebarthels/infinity/issues/5
max_pkeys = 128                                       # https://github.com/claudebarthels/infinity/issues/5
completion_timestamp_mask = 0xffffffffffff            # linux drivers/infiniband/hw/mlx4/main.c:555
max_cq_count = 65535                                  # linux drivers/infiniband/hw/mlx4/main.c:573
max_cq_period = 65535                                 # linux drivers/infiniband/hw/mlx4/main.c:574
others = zero                                         # linux drivers/infiniband/hw/mlx4/main.c:474

# -- port
max_mtu = 4096                                        # linux drivers/infiniband/hw/mlx4/main.c:779
active_mtu = 1024                                     # linux drivers/infiniband/hw/mlx4/main.c:794 (of an Ethernet MTU of 1500)
gid_tbl_len = 128                                     # assumed: the driver makes it of the firmware's and the functions
pkey_tbl_len = 1                                      # linux drivers/infiniband/hw/mlx4/main.c:778
port_cap_flags = 0x04010000                           # linux drivers/infiniband/hw/mlx4/main.c:773
max_msg_sz = 0x40000000                               # assumed: the firmware decides
max_vl_num = 2                                        # linux drivers/infiniband/hw/mlx4/main.c:780
link_layer = Ethernet                                 # linux drivers/infiniband/hw/mlx4/main.c:558
gid_type = RoCEv1                                     # linux drivers/infiniband/hw/mlx4/main.c:2493

# -- what it has
node_type = CA                                        # linux drivers/infiniband/hw/mlx4/main.c:2664
transport = InfiniBand                                # linux drivers/infiniband/hw/mlx4/main.c:2664
qp_types = RC UC UD RAW_PACKET XRC_SEND XRC_RECV      # linux drivers/infiniband/hw/mlx4/qp.c:1354
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV  # rdma-core providers/mlx4/qp.c:46
send_ops = none                                       # rdma-core providers/mlx4/verbs.c:871
max_inline = 1024                                     # rdma-core providers/mlx4/verbs.c:915
wc_flags = 0xff                                       # rdma-core providers/mlx4/verbs.c:415
round_cqe = power_of_two_less_one                     # rdma-core providers/mlx4/verbs.c:522

# -- how it refuses
errno_qp_size = EINVAL                                # rdma-core providers/mlx4/verbs.c:903
errno_inline = EINVAL                                 # rdma-core providers/mlx4/verbs.c:916
errno_cq_size = EINVAL                                # rdma-core providers/mlx4/verbs.c:484
without ibv_alloc_dm = EOPNOTSUPP                     # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:51
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:100
without ibv_alloc_parent_domain = EOPNOTSUPP          # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:108
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:45
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:174
without ibv_modify_qp_rate_limit = EOPNOTSUPP         # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:403
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:634
without ibv_reg_dm_mr = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:543
without ibv_reg_dmabuf_mr = EOPNOTSUPP                # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:606
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:356
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/mlx4/mlx4.c:86, libibverbs/dummy_ops.c:164
