#include "loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void need(bool right, const char *what)
{
    if (right)
        return;
    printf("not ok - %s\n", what);
    fflush(stdout);
    _exit(1);
}

struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
    need(context, "no device");
    ibv_free_device_list(list);
    return context;
}

void become_preloaded(char **argv, const char *const *settings)
{
    char options[1024];
    const char *own = getenv("ASAN_OPTIONS");
    if (getenv("LD_PRELOAD"))
        return;
    need(argv[1], "the path of the library is missing");
    setenv("LD_PRELOAD", argv[1], 1);
    snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", own ? own : "", own ? ":" : "");
    setenv("ASAN_OPTIONS", options, 1); /* the program has the sanitizer, so that is there before all of them */
    for (; *settings; settings += 2)
        setenv(settings[0], settings[1], 1);
    execv("/proc/self/exe", argv);
    need(false, "the program can't be executed");
}

struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, unsigned depth)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &init);
    need(qp, "no queue pair");
    return qp;
}

void connect_with_itself(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .ah_attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1}};
    need(!ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid), "no GID");
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6};
    need(!ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
}
