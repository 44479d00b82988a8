/* A correct program under the adverse adapter: random SENDs, WRITEs, READs and atomics between two ends of a process,
 * and a look at all that the rules promise of them. judge [SEED [ROUNDS]]; ends with 0 when every promise was kept. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/testing/patience.h"
#include "loopback.h"

enum { ROUND = 6, PLACE = 256, TARGET = 1 << 14, RESULT = 1 << 15, RECEIVED = 3 << 14, SUM = (1 << 14) - 64 };

static const struct loopback_options options = {.entries = 256};
static struct loopback ends;
static uint64_t state, sum;   /* what the atomics have added */
static unsigned added[ROUND]; /* in this round, beyond that: without a fence in any order */

static uint64_t draw(uint64_t most)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % (most + 1);
}

static void fail(const char *what, unsigned round)
{
    printf("round %u: %s\n", round, what);
    exit(1);
}

struct step {
    enum ibv_wr_opcode opcode;
    unsigned length;
    uint8_t byte; /* that all of it has */
};

static void fill(unsigned place, uint8_t byte, unsigned length)
{
    memset(ends.memory + place, byte, length);
}

static bool holds(unsigned place, uint8_t byte, unsigned length)
{
    for (unsigned i = 0; i < length; i++)
        if ((uint8_t)ends.memory[place + i] != byte)
            return false;
    return true;
}

static struct step draw_step(void)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                                 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct step step = {
        .opcode = opcodes[draw(5)], .length = 1 + (unsigned)draw(PLACE - 1), .byte = (uint8_t)draw(255)};
    return step;
}

static bool takes_receive(const struct step *step)
{
    return step->opcode != IBV_WR_RDMA_WRITE && step->opcode != IBV_WR_RDMA_READ &&
           step->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool brings(const struct step *step)
{
    return step->opcode == IBV_WR_RDMA_READ || step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* The places of a step: source and result are its own, and so is the target, so no two of a round have bytes in common.
 */
static void post(const struct step *step, unsigned at)
{
    bool atomic = step->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    unsigned place = at * PLACE, target = atomic ? SUM : place;
    struct ibv_sge to = loopback_piece(&ends, RECEIVED + place, PLACE);
    struct ibv_sge piece = loopback_piece(&ends, brings(step) ? RESULT + place : place, atomic ? 8 : step->length);
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = at, .sg_list = &to, .num_sge = 1};
    struct ibv_send_wr *bad,
        work = {.wr_id = at, .sg_list = &piece, .num_sge = 1, .opcode = step->opcode, .imm_data = at};
    work.send_flags = (draw(1) || at + 1 == ROUND ? IBV_SEND_SIGNALED : 0) | (draw(3) ? 0 : IBV_SEND_FENCE);
    work.wr.rdma.remote_addr = (uintptr_t)ends.memory + TARGET + target;
    work.wr.rdma.rkey = ends.mr->rkey;
    if (atomic) {
        work.wr.atomic.remote_addr = (uintptr_t)ends.memory + TARGET + target;
        work.wr.atomic.rkey = ends.mr->rkey;
        work.wr.atomic.compare_add = 1;
    }
    fill(RECEIVED + place, 0, PLACE);
    fill(RESULT + place, 0, PLACE);
    fill(place, step->byte, PLACE);
    if (step->opcode == IBV_WR_RDMA_READ)
        fill(TARGET + place, step->byte, step->length);
    if (takes_receive(step))
        MUST(!ibv_post_recv(ends.qp[1], &receive, &bad_receive));
    MUST(!ibv_post_send(ends.qp[0], &work, &bad));
}

/* A receive: all its bytes are there, and all bytes of each WRITE that was posted before it. */
static void judge_receive(const struct step *steps, const struct ibv_wc *entry, unsigned round)
{
    unsigned at = (unsigned)entry->wr_id;
    const struct step *step = &steps[at];
    bool sends = step->opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
    if (entry->byte_len != step->length)
        fail("byte_len of a receive", round);
    if (!holds(sends ? RECEIVED + at * PLACE : TARGET + at * PLACE, step->byte, step->length))
        fail("a receive without its bytes", round);
    if (entry->wc_flags & IBV_WC_WITH_IMM && entry->imm_data != at)
        fail("immediate", round);
    for (unsigned i = 0; i < at; i++)
        if (steps[i].opcode == IBV_WR_RDMA_WRITE && !holds(TARGET + i * PLACE, steps[i].byte, steps[i].length))
            fail("a receive before a WRITE that was ahead of it", round);
}

/* A send: so has ended all before it, READs and atomics with their bytes. */
static void judge_send(const struct step *steps, unsigned from, unsigned at, unsigned round)
{
    for (unsigned i = from; i <= at; i++) {
        uint64_t found;
        memcpy(&found, ends.memory + RESULT + i * PLACE, sizeof found);
        if (steps[i].opcode == IBV_WR_RDMA_READ && !holds(RESULT + i * PLACE, steps[i].byte, steps[i].length))
            fail("a READ without its bytes", round);
        if (steps[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && (found - sum >= ROUND || added[found - sum]++))
            fail("an atomic that was done twice, or not at all", round);
        fill(i * PLACE, 0, PLACE); /* the program's again */
    }
}

static void read_back(const struct step *steps, unsigned round)
{
    struct ibv_wc entry;
    for (unsigned i = 0; i < ROUND; i++) {
        if (steps[i].opcode != IBV_WR_RDMA_WRITE)
            continue;
        struct ibv_sge piece = loopback_piece(&ends, RESULT, steps[i].length);
        struct ibv_send_wr *bad,
            work = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
        work.wr.rdma.remote_addr = (uintptr_t)ends.memory + TARGET + i * PLACE;
        work.wr.rdma.rkey = ends.mr->rkey;
        fill(RESULT, 0, PLACE);
        MUST(!ibv_post_send(ends.qp[0], &work, &bad));
        while (!ibv_poll_cq(ends.cq, 1, &entry)) {
        }
        if (entry.status != IBV_WC_SUCCESS || !holds(RESULT, steps[i].byte, steps[i].length))
            fail("a READ that misses a WRITE before it", round);
    }
}

static void play(unsigned round)
{
    struct step steps[ROUND];
    unsigned receives = 0, received = 0, sent = 0, next_receive = 0;
    time_t begun = time(NULL);
    for (unsigned i = 0; i < ROUND; i++) {
        steps[i] = draw_step();
        receives += takes_receive(&steps[i]);
        post(&steps[i], i);
    }
    while (sent < ROUND || received < receives) {
        struct ibv_wc entry;
        if ((double)(time(NULL) - begun) > PATIENCE_SECONDS)
            fail("a completion never comes", round);
        if (ibv_poll_cq(ends.cq, 1, &entry) != 1)
            continue;
        if (entry.status != IBV_WC_SUCCESS)
            fail(ibv_wc_status_str(entry.status), round);
        if (entry.qp_num == ends.qp[1]->qp_num) {
            if (entry.wr_id < next_receive)
                fail("receives out of order", round);
            next_receive = (unsigned)entry.wr_id + 1;
            judge_receive(steps, &entry, round);
            received++;
        } else {
            if (entry.wr_id < sent)
                fail("sends out of order", round);
            judge_send(steps, sent, (unsigned)entry.wr_id, round);
            sent = (unsigned)entry.wr_id + 1;
        }
    }
    while (added[0]) { /* each exactly once */
        memmove(added, added + 1, sizeof added - sizeof *added);
        added[ROUND - 1] = 0;
        sum++;
    }
    for (unsigned i = 0; i < ROUND; i++)
        if (added[i])
            fail("an atomic that was lost", round);
    read_back(steps, round);
}

int main(int count, char **arguments)
{
    unsigned rounds = count > 2 ? (unsigned)atoi(arguments[2]) : 50;
    state = count > 1 ? (uint64_t)atoll(arguments[1]) : 1;
    loopback_open(&ends, &options);
    memset(ends.memory, 0, LOOPBACK_MEMORY);
    for (unsigned round = 0; round < rounds; round++)
        play(round);
    loopback_close(&ends);
    return 0;
}
