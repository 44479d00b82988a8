/* Frees the buffers of receives that wait, so that the next allocation gets their memory: libz allocates when the
 * checker looks for the line of the library's post. Memory that libz frees then is not a finding, and nothing waits. */
#include <errno.h>
#include <stdlib.h>

#include "frees_library.h"
#include "loopback.h"

/* Sizes that libz 1.2 and 1.3 allocate, and sizes that fit other versions. */
static const unsigned sizes[] = {7160, 7160, 9528, 9544, 12000, 16000, 24000, 33000, 40000, 48000, 64000, 100000};
enum { BUFFERS = sizeof sizes / sizeof *sizes };

static char *post_buffer(struct loopback *loopback, unsigned size, struct ibv_mr **mr)
{
    char *buffer = calloc(1, size);
    *mr = ibv_reg_mr(loopback->pd, buffer, size, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge piece = {(uintptr_t)buffer, size, *mr ? (*mr)->lkey : 0};
    struct ibv_recv_wr *bad, receive = {.wr_id = 5, .sg_list = &piece, .num_sge = 1};
    MUST(buffer && *mr && !ibv_post_recv(loopback->qp[0], &receive, &bad));
    return buffer;
}

int main(void)
{
    struct loopback loopback;
    char *buffers[BUFFERS], *between[BUFFERS]; /* so that freed ones stay apart */
    struct ibv_mr *regions[BUFFERS];
    MUST(!errno); /* a program that looks at it without having set it finds it as without the checker */
    loopback_open(&loopback, &(struct loopback_options){0});
    for (int at = 0; at < BUFFERS; at++) {
        buffers[at] = post_buffer(&loopback, sizes[at], &regions[at]);
        between[at] = malloc(32);
    }
    for (int at = 0; at < BUFFERS; at++)
        free(buffers[at]);
    struct ibv_sge piece = loopback_piece(&loopback, 0, 64);
    MUST(!library_post(loopback.qp[1], &piece));
    for (int end = 0; end < LOOPBACK_ENDS; end++) {
        MUST(!ibv_destroy_qp(loopback.qp[end]));
        loopback.qp[end] = NULL;
    }
    for (int at = 0; at < BUFFERS; at++) {
        MUST(!ibv_dereg_mr(regions[at]));
        free(between[at]);
    }
    loopback_close(&loopback);
    return 0;
}
