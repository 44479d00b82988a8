/* Many connected queue pairs in one process, and the memory that each takes while it is idle, and once it has had a
 * message, which makes its story (src/events/story.h).
 * Usage: many_qps [COUNT [BYTES]]. Exit status 1 when an idle queue pair takes more than BYTES (4096), or the other
 * STORY more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

enum { COUNT = 10000, BYTES = 4096, STORY = 2560 };

/* Bytes that are resident for this process, each page shared with others counted in part. */
static long memory(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        die("no /proc/self/smaps_rollup");
    char line[256];
    long kilobytes = -1;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld kB", &kilobytes) == 1)
            break;
    fclose(file);
    return kilobytes * 1024;
}

static void check_work(struct endpoint *endpoint, struct ibv_qp *from, struct ibv_qp *to)
{
    struct ibv_recv_wr receive = {.wr_id = 1}, *bad_receive;
    struct ibv_send_wr send = {.wr_id = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
    if (ibv_post_recv(to, &receive, &bad_receive) || ibv_post_send(from, &send, &bad_send))
        die("a queue pair takes no work");
    for (int done = 0; done < 2; done++) {
        struct ibv_wc wc;
        if (!endpoint_wait(endpoint, &wc, 1, 10) || wc.status != IBV_WC_SUCCESS)
            die("queue pair %u does not reach %u", from->qp_num, to->qp_num);
    }
}

static void create_pairs(struct endpoint *endpoint, struct ibv_qp **qps, int count)
{
    for (int i = 0; i < count; i++)
        qps[i] = endpoint_create_qp(endpoint, IBV_QPT_RC, 1, 1);
    for (int i = 0; i < count; i++) {
        struct address peer = endpoint_address(endpoint, qps[i ^ 1], NULL);
        endpoint_connect(qps[i], &peer, 14);
    }
}

int main(int argc, char **argv)
{
    int count = (argc > 1 ? atoi(argv[1]) : COUNT) & ~1, bytes = argc > 2 ? atoi(argv[2]) : BYTES;
    struct endpoint endpoint;
    endpoint_open(&endpoint, 64);
    struct ibv_qp **qps = calloc((size_t)count, sizeof *qps);
    if (!qps || count < 2)
        die("no queue pairs");
    memset(qps, 1, (size_t)count * sizeof *qps); /* resident before the measurement */
    long before = memory();
    create_pairs(&endpoint, qps, count);
    long each = (memory() - before) / count;
    for (int i = 0; i < count; i += 2)
        check_work(&endpoint, qps[i], qps[i + 1]);
    long used = (memory() - before) / count;
    for (int i = 0; i < count; i++)
        if (ibv_destroy_qp(qps[i]))
            die("a queue pair is still in use");
    endpoint_close(&endpoint);
    free(qps);
    printf("%d connected queue pairs: %ld bytes each, with rings for one send and one receive; %ld after a message\n",
           count, each, used);
    return each > bytes || used > bytes + STORY;
}
