# Microsoft's Azure network adapter with the driver mana_ib of Linux: RC and raw packets, no datagrams, no shared receive queues, no atomics.
#
# source rdma-core: github.com/linux-rdma/rdma-core at commit 691953d8d502f54088f776c5ba2aeed0a5ac945d
# source linux-6.12: git.kernel.org, linux-stable, tag v6.12.117

# -- device
board_id = none                                       # linux-6.12 drivers/infiniband/hw/mana/main.c:544
max_mr_size = 0xffffffffffffffff                      # linux-6.12 drivers/infiniband/hw/mana/mana_ib.h:22
page_size_cap = 0x003ff000                            # linux-6.12 drivers/infiniband/hw/mana/mana_ib.h:17
max_qp = 16384                                        # assumed: the firmware decides
max_qp_wr = 4096                                      # assumed: the firmware decides
device_cap_flags = 0x00001000                         # linux-6.12 drivers/infiniband/hw/mana/main.c:555
max_sge = 13                                          # assumed: the firmware decides
max_sge_rd = 13                                       # assumed: as many as a queue pair has
max_cqe = 4096                                        # assumed: as many as max_qp_wr
max_qp_rd_atom = 16                                   # assumed: the firmware decides
max_qp_init_rd_atom = 16                              # assumed: the firmware decides
atomic_cap = 0                                        # linux-6.12 drivers/infiniband/hw/mana/main.c:566
max_ah = 2147483647                                   # linux-6.12 drivers/infiniband/hw/mana/main.c:568
max_pkeys = 1                                         # linux-6.12 drivers/infiniband/hw/mana/main.c:569
max_mw = 0                                            # linux-6.12 drivers/infiniband/hw/mana/main.c:550
max_srq = 0                                           # linux-6.12 drivers/infiniband/hw/mana/main.c:550

# -- port
max_mtu = 4096                                        # linux-6.12 drivers/infiniband/hw/mana/main.c:584
active_mtu = 1024                                     # linux-6.12 drivers/infiniband/hw/mana/main.c:585 (of an Ethernet MTU of 1500)
gid_tbl_len = 16                                      # linux-6.12 drivers/infiniband/hw/mana/main.c:598
pkey_tbl_len = 1                                      # linux-6.12 drivers/infiniband/hw/mana/main.c:596
local_ca_ack_delay = 16                               # linux-6.12 drivers/infiniband/hw/mana/mana_ib.h:33
phys_state = 5                                        # linux-6.12 drivers/infiniband/hw/mana/main.c:589
link_layer = Ethernet                                 # linux-6.12 drivers/infiniband/hw/mana/main.c:605
gid_type = RoCEv2                                     # linux-6.12 drivers/infiniband/hw/mana/main.c:539

# -- what it has
node_type = CA                                        # rdma-core providers/mana/mana.c:28
transport = InfiniBand                                # rdma-core providers/mana/mana.c:28
qp_types = RC RAW_PACKET                              # rdma-core providers/mana/qp.c:348
opcodes = RDMA_WRITE RDMA_WRITE_WITH_IMM SEND SEND_WITH_IMM RDMA_READ  # rdma-core providers/mana/wr.c:206
max_inline = 0                                        # assumed: asked for by nobody, as the provider copies nothing

# -- how it refuses
errno_qp_type = EOPNOTSUPP                            # rdma-core providers/mana/qp.c:353
errno_opcode = EOPNOTSUPP                             # rdma-core providers/mana/wr.c:197
without ibv_alloc_null_mr = EOPNOTSUPP                # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:100
without ibv_alloc_td = EOPNOTSUPP                     # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:121
without ibv_advise_mr = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:45
without ibv_attach_mcast = EOPNOTSUPP                 # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:140
without ibv_create_ah = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:160
without ibv_create_counters = EOPNOTSUPP              # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:174
without ibv_create_cq_ex = EOPNOTSUPP                 # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:189
without ibv_create_flow = EOPNOTSUPP                  # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:196
without ibv_create_srq = EOPNOTSUPP                   # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:232
without ibv_create_srq_ex = EOPNOTSUPP                # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:240
without ibv_get_srq_num = EOPNOTSUPP                  # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:350
without ibv_modify_cq = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:386
without ibv_modify_qp_rate_limit = EOPNOTSUPP         # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:403
without ibv_open_qp = EOPNOTSUPP                      # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:420
without ibv_open_xrcd = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:427
without ibv_query_ece = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:483
without ibv_set_ece = EOPNOTSUPP                      # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:634
without ibv_query_rt_values_ex = EOPNOTSUPP           # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:513
without ibv_rereg_mr = EOPNOTSUPP                     # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:618
without ibv_resize_cq = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:624
without ibv_import_mr = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:363
without ibv_import_pd = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:370
without ibv_import_dm = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:356
without ibv_modify_srq = EOPNOTSUPP                   # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:409
without ibv_query_srq = EOPNOTSUPP                    # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:518
without ibv_alloc_dmah = EOPNOTSUPP                   # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:58
without ibv_query_comp_cntr_caps = EOPNOTSUPP         # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:467
without ibv_create_comp_cntr = EOPNOTSUPP             # rdma-core providers/mana/mana.c:398, libibverbs/dummy_ops.c:164
