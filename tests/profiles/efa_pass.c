/* Datagrams of an EFA from one process to another, perhaps on another host: efa_pass DIRECTORY 0 sends one of each
 * length, and efa_pass DIRECTORY 1 compares what arrives. They meet by files in the directory. Ends with 0 if all is
 * right. */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GRH = 40, LONGEST = 8928, QKEY = 0x11111111, COUNT = 6, SECONDS = 20 };

static const uint32_t lengths[COUNT] = {64, 1024, 1400, 4000, 4096, LONGEST};

struct name {
    union ibv_gid gid;
    uint32_t qpn;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint8_t memory[COUNT][GRH + LONGEST];

static uint8_t pattern(uint32_t which, uint32_t at)
{
    return (uint8_t)(at * 7 + at / 251 + which);
}

static bool enter(enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1, .qkey = QKEY};
    return !ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static bool begin(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    ibv_free_device_list(list);
    pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, COUNT, NULL, NULL, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
    qp = mr ? ibv_create_qp(pd, &(struct ibv_qp_init_attr){.send_cq = cq,
                                                           .recv_cq = cq,
                                                           .qp_type = IBV_QPT_UD,
                                                           .sq_sig_all = 1,
                                                           .cap = {COUNT, COUNT, 1, 1, 0}})
            : NULL;
    return qp && enter(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) && enter(IBV_QPS_RTR, 0) &&
           enter(IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static bool post_receives(void)
{
    bool posted = true;
    for (uint32_t i = 0; i < COUNT; i++) {
        struct ibv_sge sge = {(uintptr_t)memory[i], sizeof memory[i], mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        posted = posted && !ibv_post_recv(qp, &wr, &bad);
    }
    return posted;
}

/* Writes the name of this end, and waits until the other end has written its name. */
static bool meet(const char *directory, unsigned self, struct name *other)
{
    char path[2][512], fresh[520];
    struct name name = {.qpn = qp->qp_num};
    for (unsigned i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/end%u", directory, i);
    snprintf(fresh, sizeof fresh, "%s.new", path[self]);
    FILE *file = fopen(fresh, "w");
    if (ibv_query_gid(context, 1, 0, &name.gid) || !file || fwrite(&name, sizeof name, 1, file) != 1 || fclose(file) ||
        rename(fresh, path[self]))
        return false;
    for (time_t end = time(NULL) + SECONDS; time(NULL) < end; usleep(10000))
        if ((file = fopen(path[!self], "r"))) {
            bool read = fread(other, sizeof *other, 1, file) == 1;
            fclose(file);
            return read;
        }
    return false;
}

static bool poll_one(struct ibv_wc *wc)
{
    time_t end = time(NULL) + SECONDS;
    while (!ibv_poll_cq(cq, 1, wc))
        if (time(NULL) > end)
            return false;
    return wc->status == IBV_WC_SUCCESS;
}

static bool send_all(const struct name *other)
{
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = other->gid}};
    struct ibv_ah *ah = ibv_create_ah(pd, &to);
    struct ibv_wc wc;
    bool sent = ah;
    for (uint32_t i = 0; i < COUNT && sent; i++) {
        struct ibv_sge sge = {(uintptr_t)memory[i], lengths[i], mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .wr.ud = {.ah = ah, .remote_qpn = other->qpn, .remote_qkey = QKEY}},
                           *bad;
        for (uint32_t at = 0; at < lengths[i]; at++)
            memory[i][at] = pattern(i, at);
        sent = !ibv_post_send(qp, &wr, &bad);
    }
    for (uint32_t i = 0; i < COUNT && sent; i++)
        sent = poll_one(&wc);
    return sent;
}

static bool receive_all(void)
{
    struct ibv_wc wc;
    for (uint32_t i = 0; i < COUNT; i++) {
        if (!poll_one(&wc) || wc.wr_id != i || wc.byte_len != GRH + lengths[i]) {
            fprintf(stderr, "datagram %u of %u bytes: status %u, %u bytes\n", i, lengths[i], wc.status, wc.byte_len);
            return false;
        }
        for (uint32_t at = 0; at < lengths[i]; at++)
            if (memory[i][GRH + at] != pattern(i, at))
                return false;
    }
    return true;
}

int main(int count, char **arguments)
{
    struct name other;
    bool sends = count == 3 && !strcmp(arguments[2], "0");
    if (count != 3 || !begin() || !post_receives() || !meet(arguments[1], !sends, &other))
        return 2;
    bool passed = sends ? send_all(&other) : receive_all();
    printf("%s\n", passed ? "passed" : "failed");
    return !passed;
}
