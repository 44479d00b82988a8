/* A program with one mistake, for softverbs sweep: swept crash|hang|lose, and its mended twins: swept mended,
 * and swept status, which ends with 255. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mistake;

/* Ends the program where the call has failed, unless that is the mistake. */
static void need(bool good, const char *unless)
{
    if (good || !strcmp(mistake, unless))
        return;
    fprintf(stderr, "no %s\n", unless);
    exit(strcmp(mistake, "status") ? 1 : 255);
}

static void wait_for_completion(struct ibv_cq *cq)
{
    if (!cq)
        for (;;)
            pause();
}

int main(int argc, char **argv)
{
    static char memory[64];
    mistake = argc > 1 ? argv[1] : "";
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    need(context, "device");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    need(pd, "crash");
    memory[0] = pd->context == context;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    need(mr, "lose");
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    need(cq, "hang");
    wait_for_completion(cq);
    need(!ibv_destroy_cq(cq), "cq");
    need(!mr || !ibv_dereg_mr(mr), "mr");
    need(!ibv_dealloc_pd(pd), "pd");
    return ibv_close_device(context) ? 1 : 0;
}
