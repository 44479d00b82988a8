/* MPI-like ranks as processes, all to all: tags_ranks [RANKS [MESSAGES]]. Each rank has an SRQ with tag matching and,
 * for each other rank, a queue pair to send on and one to receive on. Receives are exact, for any tag, for any source,
 * or for both; messages are eager or rendezvous, from 0 bytes to 4 MiB, expected or not. Every byte is looked at, and
 * so are MPI's rules: a message takes the earliest receive that matches, and messages of one source and tag keep their
 * order.
 *
 * Above the device is what an MPI has: posted receives, and a queue of unexpected messages. An unexpected message is
 * first offered to the posted receives, which are taken back from the device for that; only then it counts as handled.
 */
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq; /* of the SRQ, and of what we send on its queue pairs */
static struct ibv_cq *out_cq;
static struct ibv_srq *srq;
static struct ibv_qp *out[RANKS_MOST], *in[RANKS_MOST];
static struct ibv_mr *mr;
static struct memory *memory;

/* -- receives and messages */

enum state { FREE, WAITING, TAKEN /* by a message without a completion yet */, MATCHED };

static struct posted {
    enum state state;
    uint64_t tag, mask, order;
    uint32_t handle, length;
    uint8_t fill;
} posted[POSTED];

struct message {
    uint32_t slot; /* the ordinary receive that holds it */
    uint64_t tag;
    uint32_t sequence;
};

/* Messages that came unexpected: those that are still to be offered to posted receives, and those that no one wanted.
 */
static struct message arrived[SLOTS], unwanted[SLOTS];
static uint32_t arrived_first, arrived_last, unwanted_count;
static int offered = -1; /* the receive that is being taken back for the first of `arrived` */

static uint64_t orders, done, total, by_device, by_software;
static uint32_t handled;                   /* unexpected messages */
static uint32_t next_of[RANKS_MOST][TAGS]; /* the number that the next message of source and tag must have */

static bool is_matching(const struct posted *receive, uint64_t tag)
{
    return receive->state == WAITING && (tag & receive->mask) == receive->tag;
}

static void post_slot(uint32_t slot)
{
    struct ibv_sge sge = {(uintptr_t)memory->slots[slot], sizeof memory->slots[slot], mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    need(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* Messages of one source and tag are matched in the order of sending, and by the earliest receive that can. */
static void match(int slot, uint64_t tag, uint32_t sequence)
{
    int from = (int)(tag >> 32);
    uint32_t short_tag = (uint32_t)tag, *next = &next_of[from][short_tag];
    need(posted[slot].state == TAKEN || is_matching(&posted[slot], tag));
    need((tag & posted[slot].mask) == posted[slot].tag);
    for (int i = 0; i < POSTED; i++)
        need(posted[i].order >= posted[slot].order || i == offered || !is_matching(&posted[i], tag));
    while (*next < sequence && tag_of(from, me, *next) != short_tag)
        ++*next;
    need(*next == sequence && tag_of(from, me, sequence) == short_tag);
    ++*next;
    posted[slot].state = MATCHED;
    posted[slot].length = length_of(from, me, sequence);
    posted[slot].fill = fill_of(from, me, sequence);
}

static void finish(int slot)
{
    need(posted[slot].state == MATCHED);
    for (uint32_t i = 0; i < posted[slot].length; i++)
        need(memory->buffers[slot][i] == posted[slot].fill);
    posted[slot].state = FREE;
    done++;
}

/* -- what software does for unexpected messages */

static void send_in(int from, enum ibv_wr_opcode opcode, uint64_t id, struct ibv_sge sge, uint64_t address,
                    uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = id,
                             .opcode = opcode,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED | (opcode == IBV_WR_SEND ? IBV_SEND_FENCE : 0)},
                       *bad;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    need(!ibv_post_send(in[from], &wr, &bad));
}

/* Our own READ and FIN; the FIN's completion finishes the receive. */
static void fetch(int slot, int from, const uint8_t *head)
{
    struct ibv_rvh where;
    memcpy(&where, head + sizeof(struct ibv_tmh), sizeof where);
    memcpy(memory->finishes[slot], head, HEAD);
    memory->finishes[slot][0] = IBV_TMH_FIN;
    send_in(from, IBV_WR_RDMA_READ, (uint64_t)slot,
            (struct ibv_sge){(uintptr_t)memory->buffers[slot], be32toh(where.len), mr->lkey}, be64toh(where.va),
            be32toh(where.rkey));
    send_in(from, IBV_WR_SEND, (uint64_t)slot, (struct ibv_sge){(uintptr_t)memory->finishes[slot], HEAD, mr->lkey}, 0,
            0);
}

static void deliver(int slot, const struct message *message)
{
    const uint8_t *bytes = memory->slots[message->slot];
    match(slot, message->tag, message->sequence);
    by_software++;
    if (bytes[0] == IBV_TMH_RNDV) {
        fetch(slot, (int)(message->tag >> 32), bytes);
    } else {
        memcpy(memory->buffers[slot], bytes + sizeof(struct ibv_tmh), posted[slot].length);
        finish(slot);
    }
    post_slot(message->slot);
}

static void operate(struct ibv_ops_wr *wr)
{
    struct ibv_ops_wr *bad;
    wr->flags |= IBV_OPS_TM_SYNC;
    wr->tm.unexpected_cnt = handled;
    need(!ibv_post_srq_ops(srq, wr, &bad));
}

static void take_back(int slot)
{
    struct ibv_ops_wr wr = {.wr_id = (uint64_t)slot, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED};
    wr.tm.handle = posted[slot].handle;
    operate(&wr);
}

static int earliest(uint64_t tag, uint64_t after)
{
    int found = -1;
    for (int i = 0; i < POSTED; i++)
        if (is_matching(&posted[i], tag) && posted[i].order > after &&
            (found < 0 || posted[i].order < posted[found].order))
            found = i;
    return found;
}

/* Offers the first of the arrived messages to the earliest receive after `after`; without one it stays unwanted. */
static void offer(uint64_t after)
{
    while (arrived_first != arrived_last) {
        struct message *message = &arrived[arrived_first % SLOTS];
        offered = earliest(message->tag, after);
        if (offered >= 0) {
            take_back(offered);
            return;
        }
        unwanted[unwanted_count++] = *message;
        arrived_first++;
        handled++;
        after = 0;
    }
    struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC};
    operate(&wr);
}

static void taken_back(int slot, enum ibv_wc_status status)
{
    need(slot == offered && (status == IBV_WC_SUCCESS || status == IBV_WC_TM_ERR));
    uint64_t after = posted[slot].order;
    offered = -1;
    if (status == IBV_WC_TM_ERR && posted[slot].state == WAITING)
        posted[slot].state = TAKEN;
    if (status == IBV_WC_SUCCESS) {
        deliver(slot, &arrived[arrived_first++ % SLOTS]);
        handled++;
        after = 0;
    }
    offer(after);
}

static void receive_unexpected(uint32_t slot)
{
    struct ibv_tmh head;
    memcpy(&head, memory->slots[slot], sizeof head);
    arrived[arrived_last++ % SLOTS] = (struct message){slot, be64toh(head.tag), be32toh(head.app_ctx)};
    if (offered < 0)
        offer(0);
}

/* -- posting receives */

static bool has_wild_one(void)
{
    for (int i = 0; i < POSTED; i++)
        if (posted[i].state == WAITING && !posted[i].mask)
            return true;
    return false;
}

/* One receive for anything is always there, so that all messages are matched in the end. */
static void choose(struct posted *receive)
{
    static const uint64_t masks[] = {UINT64_MAX, UINT64_MAX, 0xffffffff, 0xffffffff00000000, 0};
    uint32_t from = (uint32_t)random() % (uint32_t)ranks, tag = (uint32_t)random() % TAGS;
    receive->mask = has_wild_one() ? masks[random() % 5] : 0;
    receive->tag = full_tag((int)from, tag) & receive->mask;
    receive->state = WAITING;
    receive->order = ++orders;
}

static bool take_unwanted(int slot)
{
    for (uint32_t i = 0; i < unwanted_count; i++) {
        struct message message = unwanted[i];
        if (!is_matching(&posted[slot], message.tag))
            continue;
        memmove(&unwanted[i], &unwanted[i + 1], (--unwanted_count - i) * sizeof *unwanted);
        deliver(slot, &message);
        return true;
    }
    return false;
}

/* A message that is still to be offered must not be overtaken; until it is, nothing new is posted. */
static void post_receives(void)
{
    for (int slot = 0; slot < POSTED && offered < 0; slot++) {
        if (posted[slot].state != FREE)
            continue;
        choose(&posted[slot]);
        if (take_unwanted(slot))
            continue;
        struct ibv_sge sge = {(uintptr_t)memory->buffers[slot], LARGEST, mr->lkey};
        struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD};
        wr.tm.add.recv_wr_id = (uint64_t)slot;
        wr.tm.add.sg_list = &sge;
        wr.tm.add.num_sge = 1;
        wr.tm.add.tag = posted[slot].tag;
        wr.tm.add.mask = posted[slot].mask;
        operate(&wr);
        posted[slot].handle = wr.tm.handle;
    }
}

/* -- the SRQ's completions */

static void take_tagged(int slot, unsigned flags)
{
    struct ibv_wc_tm_info info;
    ibv_wc_read_tm_info(cq, &info);
    if (flags & IBV_WC_TM_MATCH) {
        match(slot, info.tag, info.priv);
        by_device++;
    }
    if (!(flags & IBV_WC_TM_DATA_VALID))
        return;
    need(ibv_wc_read_byte_len(cq) == posted[slot].length);
    finish(slot);
}

static bool take_completion(void)
{
    struct ibv_poll_cq_attr attr = {0};
    if (ibv_start_poll(cq, &attr))
        return false;
    uint64_t id = cq->wr_id;
    enum ibv_wc_status status = cq->status;
    enum ibv_wc_opcode opcode = ibv_wc_read_opcode(cq);
    unsigned flags = ibv_wc_read_wc_flags(cq) & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
    need(status == IBV_WC_SUCCESS || opcode == IBV_WC_TM_DEL);
    if (opcode == IBV_WC_TM_RECV && flags)
        take_tagged((int)id, flags);
    ibv_end_poll(cq);
    if (opcode == IBV_WC_TM_RECV && !flags)
        receive_unexpected((uint32_t)id);
    else if (opcode == IBV_WC_TM_DEL)
        taken_back((int)id, status);
    else if (opcode == IBV_WC_SEND)
        finish((int)id);
    return true;
}

/* -- sending */

static struct place {
    bool busy;
    uint8_t *data; /* of a rendezvous */
    bool halves;   /* one of its two completions arrived */
    struct ibv_mr *mr;
} places[RANKS_MOST][WINDOW];
static uint32_t sent[RANKS_MOST], ended;

static void post_finish_receive(int to, uint32_t index)
{
    struct ibv_sge sge = {(uintptr_t)memory->finished[to][index % FINISHES], HEAD, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)to << 32 | index % FINISHES, .sg_list = &sge, .num_sge = 1}, *bad;
    need(!ibv_post_recv(out[to], &wr, &bad));
}

static uint32_t put_data(struct place *place, uint8_t *head, uint32_t length, uint8_t fill)
{
    place->data = memset(malloc(length), fill, length);
    need((place->mr = ibv_reg_mr(pd, place->data, length, IBV_ACCESS_REMOTE_READ)));
    struct ibv_rvh where = {htobe64((uintptr_t)place->data), htobe32(place->mr->rkey), htobe32(length)};
    memcpy(head, &where, sizeof where);
    return sizeof where;
}

static void send_next(int to)
{
    uint32_t sequence = sent[to];
    struct place *place = &places[to][sequence % WINDOW];
    if (sequence == messages || place->busy)
        return;
    uint32_t length = length_of(me, to, sequence);
    uint8_t *at = memory->sends[to][sequence % WINDOW], fill = fill_of(me, to, sequence);
    struct ibv_tmh head = {.opcode = length > EAGER_MOST ? IBV_TMH_RNDV : IBV_TMH_EAGER,
                           .app_ctx = htobe32(sequence),
                           .tag = htobe64(full_tag(me, tag_of(me, to, sequence)))};
    memcpy(at, &head, sizeof head);
    if (length > EAGER_MOST) {
        post_finish_receive(to, sequence);
        length = put_data(place, at + sizeof head, length, fill);
    } else
        memset(at + sizeof head, fill, length);
    struct ibv_sge sge = {(uintptr_t)at, (uint32_t)sizeof head + length, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)to << 32 | sequence,
                             .opcode = IBV_WR_SEND,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    place->busy = true;
    sent[to]++;
    need(!ibv_post_send(out[to], &wr, &bad));
}

static void end_message(int to, uint32_t sequence)
{
    struct place *place = &places[to][sequence % WINDOW];
    need(place->busy);
    if (place->data) {
        need(!ibv_dereg_mr(place->mr));
        memset(place->data, 0xee, 1); /* no rank may look at it any more */
        free(place->data);
    }
    *place = (struct place){0};
    ended++;
}

/* An eager message ends with its send, a rendezvous with that and its FIN, where either may be first: an ACK that is
 * lost makes the send late. */
static bool take_sent(void)
{
    struct ibv_wc wc;
    struct ibv_tmh head;
    if (!ibv_poll_cq(out_cq, 1, &wc))
        return false;
    int to = (int)(wc.wr_id >> 32);
    uint32_t low = (uint32_t)wc.wr_id;
    need(wc.status == IBV_WC_SUCCESS);
    if (wc.opcode == IBV_WC_RECV) {
        memcpy(&head, memory->finished[to][low], sizeof head);
        need(head.opcode == IBV_TMH_FIN && wc.byte_len == HEAD);
        low = be32toh(head.app_ctx);
    }
    struct place *place = &places[to][low % WINDOW];
    if (!place->data || place->halves)
        end_message(to, low);
    else
        place->halves = true;
    return true;
}

/* -- setting up */

static void make_queue_pairs(int peer)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = out_cq,
        .recv_cq = out_cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 2 * WINDOW, .max_recv_wr = FINISHES, .max_send_sge = 1, .max_recv_sge = 1}};
    need((out[peer] = ibv_create_qp(pd, &attr)));
    attr = (struct ibv_qp_init_attr){.send_cq = ibv_cq_ex_to_cq(cq),
                                     .recv_cq = ibv_cq_ex_to_cq(cq),
                                     .srq = srq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = 2 * POSTED, .max_send_sge = 1}};
    need((in[peer] = ibv_create_qp(pd, &attr)));
    board->out[me][peer] = out[peer]->qp_num;
    board->in[me][peer] = in[peer]->qp_num;
}

static void make_rank(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && *list && (context = ibv_open_device(*list)));
    need((memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                        0)) != MAP_FAILED);
    need((pd = ibv_alloc_pd(context)));
    need((mr = ibv_reg_mr(pd, memory, sizeof *memory, IBV_ACCESS_LOCAL_WRITE)));
    struct ibv_cq_init_attr_ex attr = {.cqe = 4096, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    need((cq = ibv_create_cq_ex(context, &attr)));
    need((out_cq = ibv_create_cq(context, 1024, NULL, NULL, 0)));
    struct ibv_srq_init_attr_ex srq_attr = {.attr = {.max_wr = SLOTS, .max_sge = 1},
                                            .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                         IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                            .srq_type = IBV_SRQT_TM,
                                            .pd = pd,
                                            .cq = ibv_cq_ex_to_cq(cq),
                                            .tm_cap = {.max_num_tags = POSTED, .max_ops = 64}};
    need((srq = ibv_create_srq_ex(context, &srq_attr)));
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        post_slot(slot);
    for (int peer = 0; peer < ranks; peer++)
        if (peer != me)
            make_queue_pairs(peer);
    need(!ibv_query_gid(context, 1, 0, &board->gids[me]));
}

static void join(struct ibv_qp *qp, uint32_t peer, union ibv_gid gid)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_4096,
                                .dest_qp_num = peer,
                                .max_dest_rd_atomic = 4,
                                .min_rnr_timer = 1,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC));
}

static void clean_up(void)
{
    while (offered >= 0)
        take_completion();
    for (int slot = 0; slot < POSTED; slot++)
        need(posted[slot].state == FREE || posted[slot].state == WAITING);
    need(!unwanted_count && arrived_first == arrived_last);
    for (int peer = 0; peer < ranks; peer++)
        if (peer != me)
            need(!ibv_destroy_qp(out[peer]) && !ibv_destroy_qp(in[peer]));
    need(!ibv_destroy_srq(srq) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_destroy_cq(out_cq));
    need(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
}

static void be_rank(void)
{
    srandom((unsigned)me + 1);
    total = (uint64_t)messages * ((uint32_t)ranks - 1);
    make_rank();
    pthread_barrier_wait(&board->barrier);
    for (int peer = 0; peer < ranks; peer++)
        if (peer != me) {
            join(out[peer], board->in[peer][me], board->gids[peer]);
            join(in[peer], board->out[peer][me], board->gids[peer]);
        }
    pthread_barrier_wait(&board->barrier);
    while (done < total || ended < total) {
        post_receives();
        for (int peer = 0; peer < ranks; peer++)
            if (peer != me)
                send_next(peer);
        for (int i = 0; i < 64; i++) {
            bool some = take_completion();
            if (!take_sent() && !some)
                break;
        }
    }
    pthread_barrier_wait(&board->barrier);
    board->by_device[me] = by_device;
    board->by_software[me] = by_software;
    clean_up();
}

static bool wait_for_all(void)
{
    bool well = true;
    int status;
    for (int i = 0; i < ranks; i++)
        if (wait(&status) < 0 || status) {
            well = false;
            kill(0, SIGTERM); /* the others would wait for ever */
        }
    return well;
}

int main(int count, char **arguments)
{
    uint64_t device = 0, software = 0;
    pthread_barrierattr_t shared;
    ranks = count > 1 ? atoi(arguments[1]) : 24;
    messages = count > 2 ? (uint32_t)atoi(arguments[2]) : 24;
    if (ranks < 2 || ranks > RANKS_MOST || (getpgrp() != getpid() && setpgid(0, 0)))
        return 2;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&board->barrier, &shared, (unsigned)ranks);
    for (me = 0; me < ranks; me++)
        if (!fork()) {
            be_rank();
            _exit(0);
        }
    signal(SIGTERM, SIG_IGN);
    if (!wait_for_all())
        return 1;
    for (int i = 0; i < ranks; i++) {
        device += board->by_device[i];
        software += board->by_software[i];
    }
    printf("%d ranks, %u messages each to each: %llu matched by the device, %llu by software\n", ranks, messages,
           (unsigned long long)device, (unsigned long long)software);
    return device && software && device + software == (uint64_t)ranks * ((uint64_t)ranks - 1) * messages ? 0 : 1;
}
