/* Mistakes in work requests that a program writes into memory, which need a profile of mlx5: mistakes_forms CASE
 * VARIANT, as mistakes.c. No call posts such work, so a finding names the line that made the queue. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "mistakes.h"

enum { HALF = LOOPBACK_MEMORY / 2 };

/* A queue pair that is connected with itself, and its completion queue. */
struct queue {
    struct loopback loopback;
    struct driver driver;
    struct entries entries;
};

#define OPEN(queue)                                                                                                    \
    (loopback_open(&(queue)->loopback, &(struct loopback_options){0}),                                                 \
     begin_queue(queue, loopback_make_qp(&(queue)->loopback, &(struct loopback_options){0})))

static void begin_queue(struct queue *queue, struct ibv_qp *qp)
{
    MUST(qp);
    loopback_connect(&queue->loopback, qp, qp->qp_num, &(struct loopback_options){0});
    entries_open(&queue->entries, queue->loopback.cq);
    driver_open(&queue->driver, qp);
}

/* The work must have ended, however it did, before the queue ends. */
static void close_queue(struct queue *queue, unsigned entries)
{
    for (unsigned i = 0; i < entries; i++)
        entries_next(&queue->entries);
    wait_longer_than_the_checker(); /* it learns of mistakes from the helper */
    ibv_destroy_qp(queue->driver.qp);
    loopback_close(&queue->loopback);
}

static void begin_write(struct queue *queue, uint8_t flags)
{
    const struct loopback *loopback = &queue->loopback;
    driver_begin(&queue->driver, WRITE, SIGNALLED | flags, 0);
    driver_remote(&queue->driver, (uint64_t)(uintptr_t)loopback->memory + HALF, loopback->mr->rkey);
}

static void point_to(struct queue *queue, uint32_t at, uint32_t length)
{
    driver_pointer(&queue->driver, queue->loopback.memory + at, length, queue->loopback.mr->lkey);
}

static void ring(struct queue *queue)
{
    driver_end(&queue->driver);
    driver_ring(&queue->driver);
}

/* The number of units leaves out the data of a WRITE; or there is none. */
static void miscount_units(enum loopback_variant variant)
{
    struct queue queue;
    /* wqe-units faulty */
    /* wqe-units neighbour */
    OPEN(&queue);
    begin_write(&queue, 0);
    point_to(&queue, 0, 8);
    driver_end_as(&queue.driver, (uint8_t)(variant == FAULTY ? 1 : variant == TWIN ? 3 : 0));
    driver_ring(&queue.driver);
    close_queue(&queue, 1);
}

/* The first work waits for a receive, while the program goes around, once or twice. */
static void write_over_work(enum loopback_variant variant)
{
    struct queue queue;
    /* wqe-overrun faulty */
    /* wqe-overrun neighbour */
    OPEN(&queue);
    uint32_t blocks = queue.driver.queues.sq.wqe_cnt;
    for (uint32_t i = 0; i < (variant == FAULTY ? blocks + 1 : variant == TWIN ? blocks / 2 : 2 * blocks); i++) {
        driver_begin(&queue.driver, i % blocks ? NOP : SEND, 0, 0);
        driver_end(&queue.driver);
    }
    driver_ring(&queue.driver);
    close_queue(&queue, 0);
}

static void name_another_queue_pair(enum loopback_variant variant)
{
    struct queue queue;
    /* wqe-number faulty */
    /* wqe-number neighbour */
    OPEN(&queue);
    const uint32_t numbers[] = {[FAULTY] = queue.driver.qp->qp_num + 1, [TWIN] = queue.driver.qp->qp_num};
    begin_write(&queue, 0);
    point_to(&queue, 0, 8);
    driver_number(&queue.driver, numbers[variant]);
    ring(&queue);
    close_queue(&queue, 1);
}

/* 0x3f is no operation; 0x28 is for the queue pairs of an SRQ with tags. */
static void use_no_operation(enum loopback_variant variant)
{
    struct queue queue;
    /* wqe-operation faulty */
    /* wqe-operation neighbour */
    OPEN(&queue);
    driver_begin(&queue.driver, variant == FAULTY ? 0x3f : variant == TWIN ? NOP : TAGS, SIGNALLED, 0);
    ring(&queue);
    close_queue(&queue, 1);
}

/* The index counts work requests; or it begins anew with each round through the queue. */
static void count_work_requests(enum loopback_variant variant)
{
    static const char text[96];
    struct queue queue;
    /* wqe-index faulty */
    /* wqe-index neighbour */
    OPEN(&queue);
    unsigned blocks = queue.driver.queues.sq.wqe_cnt, works = variant == FAULTY ? 2 : blocks;
    for (unsigned i = 0; i < works; i++) {
        begin_write(&queue, 0);
        driver_inline(&queue.driver, text, sizeof text);
        if (variant != TWIN)
            driver_index(&queue.driver, (uint16_t)(variant == FAULTY ? i : queue.driver.index % blocks));
        ring(&queue);
        entries_next(&queue.entries);
    }
    close_queue(&queue, 0);
}

/* Sends what a READ, or an atomic, is to bring. */
static void send_without_a_fence(enum loopback_variant variant)
{
    struct queue queue;
    /* wqe-fence faulty */
    /* wqe-fence neighbour */
    OPEN(&queue);
    driver_begin(&queue.driver, variant == NEIGHBOUR ? ADD : READ, SIGNALLED, 0);
    driver_remote(&queue.driver, (uint64_t)(uintptr_t)queue.loopback.memory + HALF, queue.loopback.mr->rkey);
    if (variant == NEIGHBOUR)
        driver_operands(&queue.driver, 1, 0);
    point_to(&queue, 0, variant == NEIGHBOUR ? 8 : 64);
    driver_end(&queue.driver);
    begin_write(&queue, variant == TWIN ? FENCED : 0);
    point_to(&queue, 4, 32);
    ring(&queue);
    close_queue(&queue, 2);
}

/* One more than there is; or the number of the queue's entries, from the beginning. */
static void count_too_many_entries(enum loopback_variant variant)
{
    struct queue queue;
    /* cq-index-ahead faulty */
    /* cq-index-ahead neighbour */
    OPEN(&queue);
    driver_begin(&queue.driver, NOP, SIGNALLED, 0);
    ring(&queue);
    entries_next(&queue.entries);
    queue.entries.queue.dbrec[0] = htonl(variant == FAULTY ? 2 : variant == TWIN ? 1 : queue.entries.queue.cqe_cnt);
    driver_begin(&queue.driver, NOP, 0, 0);
    ring(&queue);
    close_queue(&queue, 0);
}

static const struct {
    const char *name;
    void (*run)(enum loopback_variant);
} cases[] = {
    {"wqe-units", miscount_units},
    {"wqe-overrun", write_over_work},
    {"wqe-number", name_another_queue_pair},
    {"wqe-operation", use_no_operation},
    {"wqe-index", count_work_requests},
    {"wqe-fence", send_without_a_fence},
    {"cq-index-ahead", count_too_many_entries},
};

int main(int argc, char **argv)
{
    static const char *const variants[] = {[FAULTY] = "faulty", [TWIN] = "twin", [NEIGHBOUR] = "neighbour"};
    for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
        for (enum loopback_variant variant = FAULTY; variant <= NEIGHBOUR; variant++)
            if (!strcmp(cases[i].name, argv[1]) && !strcmp(variants[variant], argv[2])) {
                cases[i].run(variant);
                return 0;
            }
    fprintf(stderr, "mistakes_forms CASE faulty|twin|neighbour\n");
    return 2;
}
