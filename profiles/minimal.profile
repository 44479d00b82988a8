# The least of all: of each number the smallest that any of the other profiles has, RC alone, and no call that one of the providers lacks.
# What a program does here it does on each adapter with RC. The specification's own minimum would be smaller still in places.

max_mr_size = 103079215104                # least: efa
max_qp = 10                               # least: apple-thunderbolt
max_qp_wr = 63                            # least: apple-thunderbolt
max_sge = 1                               # least: apple-thunderbolt
max_sge_rd = 1                            # least: efa
max_cq = 512                              # least: efa
max_cqe = 1024                            # least: apple-thunderbolt
max_mr = 100                              # least: apple-thunderbolt
max_pd = 256                              # least: efa
max_qp_rd_atom = 8                        # least: irdma of those with RC
max_qp_init_rd_atom = 8                   # least: irdma of those with RC
atomic_cap = 0                            # least: apple-thunderbolt
max_mw = 0                                # least: apple-thunderbolt
max_mcast_grp = 0                         # least: bnxt_re
max_ah = 1024                             # least: efa
max_srq = 0                               # least: apple-thunderbolt
max_srq_wr = 16383                        # least: connectx-3
max_pkeys = 1                             # least: bnxt_re
max_msg_sz = 8388608                      # least: rxe of those with RC
max_inline = 0                            # least: apple-thunderbolt
arms = new                                # https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git/tree/drivers/infiniband/sw/rxe/rxe_verbs.c?h=v6.1.192#n845 (rxe and siw)
qp_types = RC                             # assumed: one type, that which most programs need
opcodes = RDMA_WRITE SEND RDMA_READ       # assumed: those of RC that all adapters with RC have
send_ops = none                           # assumed: as of the providers without builders
max_mtu = 1024                            # least: siw
active_mtu = 1024                         # least: siw
others = zero                             # assumed: what is not named nobody promises
