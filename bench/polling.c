/* The cost of polling, an extended CQ beside a classic one, in this process alone. Completions of unreliable writes
 * wait in a CQ before the clock starts, so only the polling is measured; then polls that find nothing. Each round
 * prints a line for each kind of polling: its name, nanoseconds of the classic and nanoseconds of the extended way.
 * Usage: polling [ROUNDS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "endpoint.h"
#include "measure.h"

enum { BATCH = 16, WAITING = 256, REPEATS = 40, EMPTY_POLLS = 256, ROUNDS = 51 };

/* A CQ and a queue pair whose writes complete there. */
struct source {
    struct ibv_cq *cq;
    struct ibv_cq_ex *extended; /* the same CQ; NULL: it is a classic one */
    struct ibv_qp *qp;
    struct address target;
};

/* Completions taken with one call of ibv_poll_cq, or from start_poll to end_poll; and whether opcode and byte_len are
 * read too, which are a call each for an extended CQ and fields for a classic one. */
struct way {
    const char *name;
    int batch;
    bool more;
};

static const struct way ways[] = {
    {"batch", BATCH}, {"batch_more", BATCH, true}, {"single", 1}, {"single_more", 1, true}};

static volatile uint64_t seen; /* keeps the compiler from reading nothing */

static void connect_source(struct source *source, struct endpoint *endpoint, const struct address *target)
{
    struct endpoint mine = *endpoint; /* but for where its queue pairs complete */
    mine.cq = source->cq;
    source->target = *target;
    source->qp = endpoint_create_qp(&mine, IBV_QPT_UC, WAITING, 1);
    endpoint_connect(source->qp, &source->target, 0);
}

static struct source make_source(struct endpoint *endpoint, const struct address *target, bool extended)
{
    struct source source = {0};
    struct ibv_cq_init_attr_ex attr = {.cqe = WAITING, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
    if (extended)
        source.extended = ibv_create_cq_ex(endpoint->context, &attr);
    source.cq = extended ? ibv_cq_ex_to_cq(source.extended) : ibv_create_cq(endpoint->context, WAITING, NULL, NULL, 0);
    if (!source.cq)
        die("no completion queue");
    connect_source(&source, endpoint, target);
    return source;
}

/* Unreliable work has ended when it has left, which the idle CQ's polls bring about where the link was full. */
static void fill(struct source *source, struct ibv_cq *idle)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_wc wc;
    wr.wr.rdma.remote_addr = source->target.memory;
    wr.wr.rdma.rkey = source->target.rkey;
    for (wr.wr_id = 0; wr.wr_id < WAITING; wr.wr_id++)
        if (ibv_post_send(source->qp, &wr, &bad))
            die("a write is refused");
    for (int i = 0; i < WAITING; i++)
        ibv_poll_cq(idle, 1, &wc);
}

static inline uint64_t read_classic(const struct ibv_wc *wc, bool more)
{
    uint64_t sum = wc->wr_id + wc->status;
    return more ? sum + wc->opcode + wc->byte_len : sum;
}

/* False: some completions are still under way. */
static bool poll_classic(struct source *source, const struct way *way)
{
    struct ibv_wc wc[BATCH];
    uint64_t sum = 0;
    for (int taken = 0; taken < WAITING; taken += way->batch) {
        if (ibv_poll_cq(source->cq, way->batch, wc) != way->batch)
            return false;
        for (int i = 0; i < way->batch; i++)
            sum += read_classic(&wc[i], way->more);
    }
    seen = sum;
    return true;
}

static inline uint64_t read_extended(struct ibv_cq_ex *cq, bool more)
{
    uint64_t sum = cq->wr_id + cq->status;
    return more ? sum + ibv_wc_read_opcode(cq) + ibv_wc_read_byte_len(cq) : sum;
}

static bool poll_extended_batch(struct ibv_cq_ex *cq, const struct way *way, uint64_t *sum)
{
    struct ibv_poll_cq_attr attr = {0};
    if (ibv_start_poll(cq, &attr))
        return false;
    *sum += read_extended(cq, way->more);
    int left = way->batch - 1;
    for (; left && !ibv_next_poll(cq); left--)
        *sum += read_extended(cq, way->more);
    ibv_end_poll(cq);
    return !left;
}

static bool poll_extended(struct source *source, const struct way *way)
{
    uint64_t sum = 0;
    for (int taken = 0; taken < WAITING; taken += way->batch)
        if (!poll_extended_batch(source->extended, way, &sum))
            return false;
    seen = sum;
    return true;
}

/* Nanoseconds for all that wait; negative when not all did, since the link was full while another thread held it. */
static double poll_all(struct source *source, const struct way *way)
{
    double start = measure_seconds();
    bool polled = source->extended ? poll_extended(source, way) : poll_classic(source, way);
    return polled ? (measure_seconds() - start) * 1e9 : -1;
}

static void drain(struct source *source)
{
    struct ibv_wc wc;
    for (double end = measure_seconds() + 0.05; measure_seconds() < end;)
        ibv_poll_cq(source->cq, 1, &wc);
}

/* The least of many: whatever else the processor does only adds. */
static double entries(struct source *source, const struct way *way, struct ibv_cq *idle)
{
    double least = HUGE_VAL;
    for (int i = 0; i < REPEATS; i++) {
        fill(source, idle);
        double spent = poll_all(source, way);
        if (spent < 0)
            drain(source);
        else if (spent < least)
            least = spent;
    }
    return least / WAITING;
}

static double poll_empty(struct source *source)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_wc wc[BATCH];
    double start = measure_seconds();
    for (int i = 0; i < EMPTY_POLLS; i++)
        if (source->extended ? !ibv_start_poll(source->extended, &attr) : ibv_poll_cq(source->cq, BATCH, wc))
            die("an empty queue has a completion");
    return (measure_seconds() - start) * 1e9 / EMPTY_POLLS;
}

static double empty(struct source *source)
{
    double least = HUGE_VAL, spent;
    for (int i = 0; i < REPEATS; i++)
        if ((spent = poll_empty(source)) < least)
            least = spent;
    return least;
}

/* Measures a round; the order of the two sources changes. */
static void measure(struct source sources[2], struct ibv_cq *idle, int first)
{
    double spent[2];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        spent[first] = entries(&sources[first], &ways[i], idle);
        spent[!first] = entries(&sources[!first], &ways[i], idle);
        printf("%s %.3f %.3f\n", ways[i].name, spent[0], spent[1]);
    }
    spent[first] = empty(&sources[first]);
    spent[!first] = empty(&sources[!first]);
    printf("empty %.3f %.3f\n", spent[0], spent[1]);
}

int main(int count, char **arguments)
{
    static char memory[64];
    int rounds = count > 1 ? atoi(arguments[1]) : ROUNDS;
    struct endpoint endpoint;
    endpoint_open(&endpoint, BATCH);
    struct ibv_mr *mr = endpoint_register(&endpoint, memory, sizeof memory);
    struct ibv_qp *sink = endpoint_create_qp(&endpoint, IBV_QPT_UC, 1, 1);
    struct address address = endpoint_address(&endpoint, sink, mr);
    struct source sources[] = {make_source(&endpoint, &address, false), make_source(&endpoint, &address, true)};
    struct address peer = endpoint_address(&endpoint, sources[0].qp, NULL);
    endpoint_connect(sink, &peer, 0);
    for (int round = 0; round < rounds; round++)
        measure(sources, endpoint.cq, round % 2);
    return 0;
}
