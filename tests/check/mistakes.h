/* The cases of the program mistakes, by file. */
#pragma once

#include <errno.h>
#include <unistd.h>

#include "loopback.h"

/* A WRITE of `bytes` bytes from `from`, posted by the caller's line. */
#define WRITE(loopback, from, bytes, flags)                                                                            \
    __extension__({                                                                                                    \
        struct ibv_sge sge = loopback_piece(loopback, from, bytes);                                                    \
        struct ibv_send_wr *rest, wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};       \
        wr.send_flags = (flags);                                                                                       \
        wr.wr.rdma.remote_addr = (uintptr_t)(loopback)->memory + LOOPBACK_MEMORY / 2;                                  \
        wr.wr.rdma.rkey = (loopback)->mr->rkey;                                                                        \
        ibv_post_send((loopback)->qp[0], &wr, &rest);                                                                  \
    })

/* The checker takes a wait for one without end after half a second. */
static inline void wait_longer_than_the_checker(void)
{
    enum { LATE = 900000 /* us */ };
    usleep(LATE); /* what is tested */
}

/* mistakes_failed.c */
void fail_work(enum loopback_variant);
void fail_one_of_two(enum loopback_variant);
void receive_too_little(enum loopback_variant);

/* mistakes.c: acknowledges events of a queue, while another thread destroys it. */
struct acknowledgement {
    struct ibv_cq *cq;
    unsigned number;
};
void *acknowledge_late(void *acknowledgement);

/* mistakes_queues.c */
void overrun_cq(enum loopback_variant);
void fill_send_queue(enum loopback_variant);
void run_out_of_receives(enum loopback_variant);
void pass_limit(enum loopback_variant);
void wait_unarmed(enum loopback_variant);
void miss_event(enum loopback_variant);

/* mistakes_posts.c */
void ignore_refusal(enum loopback_variant);
void fill_and_ignore(enum loopback_variant);
void post_inline_unasked(enum loopback_variant);
void misalign_atomic(enum loopback_variant);
void misplace_key(enum loopback_variant);
void read_into_closed_memory(enum loopback_variant);
void build_out_of_turn(enum loopback_variant);
void build_wrongly(enum loopback_variant);
void spoil_address(enum loopback_variant);

/* mistakes_waiting.c */
void acknowledge_twice(enum loopback_variant);
void leave_entries(enum loopback_variant);
void wait_rightly(enum loopback_variant);
void forget_receive(enum loopback_variant);
void await_gone(enum loopback_variant);

/* mistakes_processes.c */
void share_domain(enum loopback_variant);
void use_in_child(enum loopback_variant);
void make_in_child(enum loopback_variant);
void call_in_handler(enum loopback_variant);
void leave_in_both(enum loopback_variant);
void lock_too_much(enum loopback_variant);
void lock_queues(enum loopback_variant);
void poll_in_two_threads(enum loopback_variant);

/* mistakes_lifetime.c */
void use_destroyed(enum loopback_variant);
void use_what_is_gone(enum loopback_variant);
void destroy_inside(enum loopback_variant);
void name_wrong_region(enum loopback_variant);
void poll_nothing(enum loopback_variant);
void destroy_address(enum loopback_variant);
void use_foreign_address(enum loopback_variant);

/* mistakes_attributes.c */
void connect_without_timeout(enum loopback_variant);
void connect_without_retries(enum loopback_variant);
void connect_for_ever(enum loopback_variant);
void disagree(enum loopback_variant);
void connect_deeply(enum loopback_variant);
void address_without_hops(enum loopback_variant);
void mix_families(enum loopback_variant);
void allow_less(enum loopback_variant);
void number_differently(enum loopback_variant);

/* mistakes_memory.c */
void register_file(enum loopback_variant);
void give_up_region(enum loopback_variant);
void give_up_in_each_way(enum loopback_variant);
void give_up_rightly(enum loopback_variant);

/* mistakes_none.c */
void do_what_is_allowed(enum loopback_variant);
void be_too_busy(enum loopback_variant);
void let_peers_write(enum loopback_variant);
void be_refused_often(enum loopback_variant);
void post_behind_arming(enum loopback_variant);
void connect_xrc(enum loopback_variant);
void post_fenced(enum loopback_variant);
void post_empty_element(enum loopback_variant);
void handle_faults(enum loopback_variant);
void register_again(enum loopback_variant);
void map_over_receive(enum loopback_variant);

/* mistakes_shared.c */
void share_with_one_id(enum loopback_variant);

/* Until there is an entry. */
static inline void begin_poll(struct loopback *loopback)
{
    int error;
    while ((error = ibv_start_poll(loopback->cq_ex, &(struct ibv_poll_cq_attr){0})) == ENOENT) {
    }
    MUST(!error);
}
