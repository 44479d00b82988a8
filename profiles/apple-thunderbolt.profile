# Like Apple's RDMA over Thunderbolt of macOS 26: UC alone, 10 queue pairs, 100 memory regions, queues of 63.
# It is UC on a link that does not lose; here, too. Its transport has a number of its own (100), which this profile leaves at InfiniBand.
#

# -- device
max_qp = 10                                           # https://github.com/ml-explore/mlx/issues/3162
max_mr = 100                                          # https://github.com/ml-explore/mlx/issues/3162
errno_count = EBUSY                                   # https://github.com/ml-explore/mlx/issues/3162
max_qp_wr = 63                                        # https://github.com/hellas-ai/thunderbolt-ibverbs/pull/41
max_srq = 0                                           # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
max_mw = 0                                            # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
atomic_cap = 0                                        # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
max_qp_rd_atom = 0                                    # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
max_qp_init_rd_atom = 0                               # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
max_sge = 1                                           # assumed: programs use one
max_cqe = 1024                                        # assumed: more than programs use

# -- port
active_mtu = 1024                                     # https://github.com/hellas-ai/thunderbolt-ibverbs/pull/27
max_mtu = 4096                                        # assumed: as large as there is
gid_tbl_len = 4                                       # https://github.com/ml-explore/mlx/pull/3389 (indices to 3)

# -- what it has
qp_types = UC                                         # https://github.com/hellas-ai/thunderbolt-ibverbs/pull/9
opcodes = SEND SEND_WITH_IMM RDMA_WRITE RDMA_WRITE_WITH_IMM  # https://github.com/hellas-ai/thunderbolt-ibverbs/pull/9
max_inline = 0                                        # assumed: no program asks for any
files = registered                                    # https://github.com/torvalds/linux/blob/v6.5/mm/gup.c (what refuses them is Linux)

# -- how it refuses
without ibv_create_srq = EOPNOTSUPP                   # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
without ibv_create_srq_ex = EOPNOTSUPP                # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
without ibv_open_xrcd = EOPNOTSUPP                    # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
without ibv_alloc_mw = EOPNOTSUPP                     # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
without ibv_attach_mcast = EOPNOTSUPP                 # https://developer.apple.com/documentation/technotes/tn3205-low-latency-communication-with-rdma-over-thunderbolt
