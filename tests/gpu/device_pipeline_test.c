/* Long messages from memory of a GPU to memory of a GPU (fake_cuda.h): few long copies on each side, and no copy
 * without the program's knowledge. Two processes. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pair.h"

enum { LENGTH = 2 << 20, ROUNDS = 20, MOST_COPIES = 40, THERE = 4 << 20 };

static const struct message {
    const char *name;
    enum ibv_wr_opcode opcode;
    enum ibv_wc_status lost; /* where a copy has failed */
} messages[] = {
    {"SEND", IBV_WR_SEND, IBV_WC_REM_OP_ERR},
    {"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR},
    {"READ", IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR},
};

/* Out of the first half of one side's memory into the second half of the other's; the first process posts. */
static enum ibv_wc_status move(struct pair *pair, const struct message *message)
{
    bool reads = message->opcode == IBV_WR_RDMA_READ;
    struct ibv_sge from = pair_sge(pair, GPU, 0, LENGTH), to = pair_sge(pair, GPU, THERE, LENGTH);
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    if (!pair->first && message->opcode == IBV_WR_SEND)
        pair_receive(pair, &to, 1);
    pair_meet(pair);
    if (pair->first) {
        pair_post(pair, message->opcode, reads ? &to : &from, 1, GPU, reads ? 0 : THERE);
        status = pair_wait(pair).status;
    } else if (message->opcode == IBV_WR_SEND) {
        status = pair_wait(pair).status;
    }
    pair_meet(pair);
    return status;
}

static bool lands_here(const struct pair *pair, const struct message *message)
{
    return pair->first == (message->opcode == IBV_WR_RDMA_READ);
}

/* The least of several: a machine without a free processor brings packets one by one. */
static void copies_are_few(struct pair *pair, const struct message *message)
{
    unsigned least = UINT32_MAX;
    bool good = true;
    pair_fill(pair, GPU, 0, LENGTH, 3);
    pair_fill(pair, GPU, THERE, LENGTH, 4);
    for (int i = 0; i < ROUNDS; i++) {
        fake_cuda_take_copies();
        good = move(pair, message) == IBV_WC_SUCCESS && good;
        unsigned count = fake_cuda_take_copies().count;
        least = count < least ? count : least;
    }
    good = pair_holds(pair, GPU, THERE, LENGTH, lands_here(pair, message) ? 3 : 4) && good;
    if (least > MOST_COPIES)
        printf("# %u copies\n", least);
    pair_report(pair, good && least && least <= MOST_COPIES, "a %s of 2 MiB is copied in at most %d pieces",
                message->name, MOST_COPIES);
}

/* Where frames are lost the NAK may be, too: after it the responder is in the error state, and answers no repeat. */
static bool has_failed(enum ibv_wc_status status, const struct message *message)
{
    return status == message->lost ||
           (status == IBV_WC_RETRY_EXC_ERR && getenv("SOFTVERBS_FAULT") && message->lost != IBV_WC_LOC_PROT_ERR);
}

/* Also if packets of the message had been accepted before their copy failed. */
static void a_failed_copy_fails_its_message(struct pair *pair, const struct message *message)
{
    bool good = true;
    for (unsigned number = 1; number <= 3; number++) {
        if (lands_here(pair, message))
            fake_cuda_fail_copy(number);
        enum ibv_wc_status status = move(pair, message);
        if (pair->first && !has_failed(status, message))
            printf("# copy %u: %s\n", number, ibv_wc_status_str(status));
        good = (!pair->first || has_failed(status, message)) && good;
        fake_cuda_fail_copy(0);
        pair_connect(pair);
    }
    good = move(pair, message) == IBV_WC_SUCCESS && good;
    pair_report(pair, good, "a %s fails if one of its copies does", message->name);
}

/* Bytes that the driver refused are never sent as if they had arrived. */
static void a_refused_copy_leaves_nothing_behind(struct pair *pair)
{
    bool good = true;
    for (unsigned count = 1; count <= 4; count++) {
        pair_fill(pair, GPU, 0, LENGTH, count);
        if (pair->first)
            fake_cuda_refuse_copies(count);
        move(pair, &messages[1]);
        fake_cuda_refuse_copies(0);
        pair_connect(pair);
        pair_fill(pair, GPU, 0, LENGTH, 50 + count);
        good = move(pair, &messages[1]) == IBV_WC_SUCCESS && good;
        good = (pair->first || pair_holds(pair, GPU, THERE, LENGTH, 50 + count)) && good;
    }
    pair_report(pair, good, "a WRITE behind copies that were refused brings its own bytes");
}

/* Checks, on the driver of the machine, only that all of it arrives. */
static void messages_arrive(struct pair *pair, const struct message *message)
{
    bool good = true;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        pair_fill(pair, GPU, 0, LENGTH, i);
        good = move(pair, message) == IBV_WC_SUCCESS && good;
        good = (!lands_here(pair, message) || pair_holds(pair, GPU, THERE, LENGTH, i)) && good;
    }
    pair_report(pair, good, "%d %ss of 2 MiB arrive", ROUNDS, message->name);
}

static void count_and_fail_copies(struct pair *pair)
{
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
        copies_are_few(pair, &messages[i]);
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
        a_failed_copy_fails_its_message(pair, &messages[i]);
    a_refused_copy_leaves_nothing_behind(pair);
}

struct place {
    uint64_t at;
    uint32_t rkey;
};

/* Only the driver knows when its copies have ended, and the memory is another's afterwards. */
static void no_copy_outlives_its_region(struct pair *pair)
{
    bool good = true;
    for (int i = 0; i < ROUNDS; i++) {
        cuda_address at = 0;
        good = !cuMemAlloc_v2(&at, LENGTH) && good;
        struct ibv_mr *mr = ibv_reg_mr(pair->pd, (void *)(uintptr_t)at, LENGTH, PAIR_ACCESS);
        struct place mine = {at, mr ? mr->rkey : 0}, theirs;
        pair_swap(pair, &mine, &theirs, sizeof mine);
        struct ibv_sge sge = pair_sge(pair, GPU, 0, LENGTH);
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {theirs.at, theirs.rkey}},
                           *bad;
        good = mr && (!pair->first || !ibv_post_send(pair->qp, &wr, &bad)) && good;
        usleep((unsigned)i * 50);
        good = pair->first || (!ibv_dereg_mr(mr) && !cuMemFree_v2(at) && good);
        if (pair->first)
            pair_wait(pair);
        pair_meet(pair);
        good = !pair->first || (!ibv_dereg_mr(mr) && !cuMemFree_v2(at) && good);
        pair_connect(pair);
    }
    bool gone = fake_cuda_take_copies && fake_cuda_take_copies().gone;
    pair_report(pair, good && !gone, "no copy goes on when its region is deregistered");
}

/* A queue pair in the error state has given its receives back. */
static void no_copy_outlives_its_queue_pair(struct pair *pair)
{
    bool good = true;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_sge sge = pair_sge(pair, GPU, pair->first ? 0 : THERE, LENGTH);
        struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
        if (!pair->first)
            pair_receive(pair, &sge, 1);
        pair_meet(pair);
        if (pair->first)
            pair_post(pair, IBV_WR_SEND, &sge, 1, GPU, 0);
        usleep((unsigned)i * 50);
        if (!pair->first) {
            good = !ibv_modify_qp(pair->qp, &error, IBV_QP_STATE) && good;
            pair_fill(pair, GPU, THERE, LENGTH, 9);
            usleep(1000);
            good = pair_holds(pair, GPU, THERE, LENGTH, 9) && good;
        }
        pair_meet(pair);
        pair_connect(pair);
    }
    pair_report(pair, good, "no copy goes on when its queue pair is in the error state");
}

int main(void)
{
    struct pair pair;
    pair_open(&pair);
    if (fake_cuda_take_copies)
        count_and_fail_copies(&pair);
    for (unsigned i = 0; i < sizeof messages / sizeof *messages; i++)
        messages_arrive(&pair, &messages[i]);
    no_copy_outlives_its_region(&pair);
    no_copy_outlives_its_queue_pair(&pair);
    pair_plan(&pair);
    return !pair_close(&pair, true);
}
