# A ConnectX-7 with RoCE: what must leave the host on UDP, and with the word mlx5 behind its name programs of libmlx5. Its part and
# counts are those of connectx-7.profile; its port and what Ethernet adds are as of connectx-6.profile, by owners' ibv_devinfo -v of
# mlx5 adapters. Of tag matching the driver has the sizes of headers and elements as constants; how many tags is assumed.
#
# source linux: git.kernel.org, linux-stable, tag v6.1.192
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d

# -- device
fw_ver = 28.43.2026                                   # https://github.com/openucx/ucx/issues/10868
vendor_id = 0x02c9                                    # https://github.com/openucx/ucx/issues/10317
vendor_part_id = 4129                                 # https://github.com/openucx/ucx/issues/10317
pci = 0000:17:00.0,vendor=0x15b3,device=0x1021        # https://github.com/openucx/ucx/pull/5595 (the numbers; the address is assumed)
hw_ver = 0                                            # https://github.com/openucx/ucx/issues/10317
board_id = LNV0000000056                              # https://github.com/openucx/ucx/issues/10317
max_qp = 131072                                       # https://github.com/openucx/ucx/issues/10317
device_cap_flags = 0xad721c36                         # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_mr_size = 0xffffffffffffffff                      # https://github.com/openucx/ucx/issues/8229
page_size_cap = 0xfffffffffffff000                    # https://github.com/openucx/ucx/issues/8229
max_qp_wr = 32768                                     # https://github.com/openucx/ucx/issues/8229
max_sge = 30                                          # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_sge_rd = 30                                       # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_cq = 16777216                                     # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_cqe = 4194303                                     # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_mr = 16777216                                     # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_pd = 8388608                                      # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_qp_rd_atom = 16                                   # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_qp_init_rd_atom = 16                              # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
atomic_cap = 1                                        # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_mw = 16777216                                     # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_mcast_grp = 2097152                               # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_mcast_qp_attach = 240                             # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_total_mcast_qp_attach = 503316480                 # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_ah = 2147483647                                   # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_srq = 8388608                                     # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_srq_wr = 32767                                    # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_srq_sge = 31                                      # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
local_ca_ack_delay = 16                               # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
odp_general_caps = 3                                  # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
odp_rc_caps = 0x3f                                    # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
odp_uc_caps = 0                                       # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
odp_ud_caps = 1                                       # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
odp_xrc_caps = 0x3d                                   # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
completion_timestamp_mask = 0x7fffffffffffffff        # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
hca_core_clock = 1000000                              # assumed: nanoseconds, as time stamps here are
max_res_rd_atom = 2097152                             # https://github.com/openucx/ucx/issues/9212 (an mlx5 adapter)
max_pkeys = 1                                         # linux drivers/infiniband/hw/mlx5/main.c:834
max_tso = 262144                                      # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
tso_qp_types = 0x100                                  # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
rss_qp_types = 0x100                                  # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_rwq_indirection_tables = 65536                    # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_rwq_indirection_table_size = 2048                 # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
rx_hash_function = 1                                  # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
rx_hash_fields_mask = 0x800000ff                      # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_wq_type_rq = 8388608                              # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_cq_count = 65535                                  # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_cq_period = 4095                                  # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
device_cap_flags_ex = 0x15AD721C36                    # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
tm_max_rndv_hdr_size = 64                             # assumed: MLX5_TM_MAX_RNDV_MSG_SIZE of the driver
tm_max_num_tags = 127                                 # assumed: one less than a power of two
tm_max_ops = 32768                                    # assumed: the largest queue
tm_max_sge = 1                                        # assumed: MLX5_TM_MAX_SGE of the driver
tm_flags = 1                                          # assumed: rendezvous on RC
mlx5_ooo_recv_wr = 32768                              # assumed: the largest queue
others = zero                                         # linux drivers/infiniband/hw/mlx5/main.c:828

# -- port
max_mtu = 4096                                        # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
active_mtu = 4096                                     # https://github.com/deepseek-ai/DeepEP/issues/55
gid_tbl_len = 255                                     # https://github.com/openucx/ucx/issues/10317
pkey_tbl_len = 1                                      # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
port_cap_flags = 0x04010000                           # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
max_msg_sz = 0x40000000                               # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
active_width = 2                                      # https://github.com/openucx/ucx/issues/10868 (200 Gb/s)
active_speed = 64                                     # https://github.com/openucx/ucx/issues/10868 (200 Gb/s)
max_vl_num = 0                                        # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
link_layer = Ethernet                                 # https://github.com/openucx/ucx/issues/5376 (an mlx5 adapter)
gid_type = RoCEv2                                     # linux drivers/infiniband/hw/mlx5/main.c:589

# -- what it has
node_type = CA                                        # linux drivers/infiniband/hw/mlx5/main.c:3628
transport = InfiniBand                                # linux drivers/infiniband/hw/mlx5/main.c:3628
qp_types = RC UC UD RAW_PACKET XRC_SEND XRC_RECV      # linux drivers/infiniband/hw/mlx5/qp.c:450
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV TSO  # rdma-core providers/mlx5/qp.c:50
send_ops = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD LOCAL_INV BIND_MW SEND_WITH_INV TSO  # rdma-core providers/mlx5/qp.c:3451
max_inline = 1024                                     # assumed: what is left of the largest entry depends on the elements
round_cqe = power_of_two_less_one                     # rdma-core providers/mlx5/verbs.c:1150

# -- how it refuses
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/mlx5/mlx5.c:100, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/mlx5/mlx5.c:100, libibverbs/dummy_ops.c:164
