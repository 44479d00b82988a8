/* Memory of a GPU that the fake driver has (fake_cuda.h) on each path of data besides the paths in
 * device_memory_test.c, and where CUDA forbids calls, waits or is gone. Both ends in one process. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "fake_cuda.h"
#include "room.h"

enum {
    SIZE = 2 << 20,
    ACCESS_FLUSH = 1 << 8,
    BUILDS_FLUSH = 1 << 11,
    GRH = 40,
    QKEY = 0x11111111,
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
             IBV_ACCESS_MW_BIND | ACCESS_FLUSH,
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static union ibv_gid gid;
static cuda_address gpu;
static char *host;
static struct ibv_mr *gpu_mr, *host_mr;
static void *stream;
static char log_path[64];
static bool satisfied;
static unsigned reported;

#define NEED(condition) need(condition, #condition, __LINE__)
static void need(bool good, const char *what, int line)
{
    if (!good)
        printf("# line %d: not so: %s (errno %d)\n", line, what, errno);
    satisfied = satisfied && good;
}

static void run(const char *name, void (*body)(void))
{
    satisfied = true;
    body();
    printf("%s %u - %s\n", satisfied ? "ok" : "not ok", ++reported, name);
    fflush(stdout);
}
#define CASE(body) run(#body, body)

static void put(size_t offset, const void *bytes, size_t length)
{
    NEED(!cuMemcpyHtoDAsync_v2(gpu + offset, bytes, length, stream) && !cuStreamSynchronize(stream));
}

static void get(size_t offset, void *bytes, size_t length)
{
    NEED(!cuMemcpyDtoHAsync_v2(bytes, gpu + offset, length, stream) && !cuStreamSynchronize(stream));
}

static uint64_t word_at(size_t offset)
{
    uint64_t word = 0;
    get(offset, &word, sizeof word);
    return word;
}

static void put_word(size_t offset, uint64_t word)
{
    put(offset, &word, sizeof word);
}

static bool holds(size_t offset, const char *text)
{
    char bytes[64];
    get(offset, bytes, strlen(text) + 1);
    return !strcmp(bytes, text);
}

static struct ibv_sge on_gpu(size_t offset, uint32_t length)
{
    return (struct ibv_sge){gpu + offset, length, gpu_mr->lkey};
}

static struct ibv_sge on_host(size_t offset, uint32_t length)
{
    return (struct ibv_sge){(uintptr_t)host + offset, length, host_mr->lkey};
}

static struct ibv_wc next_of(struct ibv_cq *queue)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    time_t until = time(NULL) + (time_t)PATIENCE_SECONDS;
    int got;
    while (!(got = ibv_poll_cq(queue, 1, &wc)) && time(NULL) < until)
        ;
    NEED(got == 1);
    return wc;
}

static bool succeeds(void)
{
    struct ibv_wc wc = next_of(cq);
    if (wc.status)
        printf("# %s, vendor_err %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
    return wc.status == IBV_WC_SUCCESS;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_srq *srq, uint64_t builders)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = cq,
                                       .recv_cq = cq,
                                       .srq = srq,
                                       .qp_type = type,
                                       .cap = {32, 32, 4, 4, 64},
                                       .pd = pd,
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | (builders ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
                                       .send_ops_flags = builders};
    struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
    NEED(qp);
    return qp;
}

static void join(struct ibv_qp *qp, uint32_t peer)
{
    bool reliable = qp->qp_type != IBV_QPT_UC;
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS & ~IBV_ACCESS_MW_BIND};
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR,
                                  .path_mtu = IBV_MTU_1024,
                                  .dest_qp_num = peer,
                                  .max_dest_rd_atomic = 4,
                                  .min_rnr_timer = 1,
                                  .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    NEED(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    NEED(!ibv_modify_qp(qp, &receive,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    NEED(!ibv_modify_qp(
        qp, &send,
        IBV_QP_STATE | IBV_QP_SQ_PSN |
            (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

/* Leads to itself. */
static struct ibv_qp *make_loop(enum ibv_qp_type type, struct ibv_srq *srq, uint64_t builders)
{
    struct ibv_qp *qp = make_qp(type, srq, builders);
    join(qp, qp->qp_num);
    return qp;
}

/* Two that lead to each other: an error at the one is answered to the other. */
static struct ibv_qp *make_couple(struct ibv_qp **peer)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC, NULL, 0);
    *peer = make_qp(IBV_QPT_RC, NULL, 0);
    join(qp, (*peer)->qp_num);
    join(*peer, qp->qp_num);
    return qp;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr wr, struct ibv_sge sge)
{
    struct ibv_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(qp, &wr, &bad);
}

static int post_to(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, size_t offset)
{
    return post(qp, (struct ibv_send_wr){.opcode = opcode, .wr.rdma = {gpu + offset, gpu_mr->rkey}}, sge);
}

static void receive(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_sge sge)
{
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    NEED(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

static void atomics_change_words_of_the_gpu(void)
{
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    struct ibv_send_wr add = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic = {gpu + 64, 5, 0, gpu_mr->rkey}};
    struct ibv_send_wr swap = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .wr.atomic = {gpu + 64, 15, 77, gpu_mr->rkey}};
    put_word(64, 10);
    NEED(!post(qp, add, on_gpu(128, 8)) && succeeds());
    NEED(word_at(64) == 15 && word_at(128) == 10);
    NEED(!post(qp, swap, on_host(0, 8)) && succeeds());
    NEED(word_at(64) == 77 && *(uint64_t *)host == 15);
    NEED(!post(qp, swap, on_gpu(128, 8)) && succeeds());
    NEED(word_at(64) == 77 && word_at(128) == 77);
    swap.wr.atomic.remote_addr = (uintptr_t)host;
    swap.wr.atomic.rkey = host_mr->rkey;
    NEED(!post(qp, swap, on_gpu(128, 8)) && succeeds());
    NEED(word_at(128) == 15 && *(uint64_t *)host == 77);
    ibv_destroy_qp(qp);
}

static void an_atomic_write_and_a_flush_end_behind_the_write(void)
{
    struct ibv_qp *qp =
        make_loop(IBV_QPT_RC, NULL, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | BUILDS_FLUSH);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    uint64_t word = 0x1122334455667788;
    void (*wr_flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
    memcpy(&wr_flush, (char *)ex + offsetof(struct ibv_qp_ex, wr_abort) + 2 * sizeof(void (*)(void)), sizeof wr_flush);
    put(0, "what is written", 16);
    ibv_wr_start(ex);
    ex->wr_flags = 0;
    ibv_wr_rdma_write(ex, gpu_mr->rkey, gpu + 256);
    ibv_wr_set_sge(ex, gpu_mr->lkey, gpu, 16);
    ex->wr_flags = IBV_SEND_SIGNALED;
    wr_flush(ex, gpu_mr->rkey, gpu + 256, 16, 1, 0);
    ibv_wr_atomic_write(ex, gpu_mr->rkey, gpu + 512, &word);
    NEED(!ibv_wr_complete(ex));
    NEED(succeeds() && holds(256, "what is written"));
    NEED(succeeds() && word_at(512) == word);
    ibv_destroy_qp(qp);
}

static void a_window_opens_memory_of_the_gpu(void)
{
    struct ibv_qp *to, *qp = make_couple(&to);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW,
                               .send_flags = IBV_SEND_SIGNALED,
                               .bind_mw = {mw,
                                           ibv_inc_rkey(mw->rkey),
                                           {gpu_mr, gpu + 4096, 4096,
                                            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}}},
                       *bad;
    NEED(!ibv_post_send(to, &bind, &bad) && succeeds());
    strcpy(host, "by a window");
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {gpu + 5000, bind.bind_mw.rkey}};
    NEED(!post(qp, write, on_host(0, 12)) && succeeds() && holds(5000, "by a window"));
    write.wr.rdma.remote_addr = gpu + 8190;
    NEED(!post(qp, write, on_host(0, 12)) && next_of(cq).status == IBV_WC_REM_ACCESS_ERR);
    ibv_destroy_qp(qp);
    ibv_destroy_qp(to);
    NEED(!ibv_dealloc_mw(mw));
}

static void shared_receives_are_of_the_gpu(void)
{
    struct ibv_srq *srq = ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 8, .max_sge = 1}});
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, srq, 0);
    put(0, "for the SRQ", 12);
    receive(qp, srq, on_gpu(1024, 100));
    NEED(!post_to(qp, IBV_WR_SEND, on_gpu(0, 12), 0) && succeeds() && succeeds() && holds(1024, "for the SRQ"));
    ibv_destroy_qp(qp);
    ibv_destroy_srq(srq);
}

static void xrc_reaches_the_gpu(void)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &domain);
    struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 8, .max_sge = 1},
                                          .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
                                                       IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = pd,
                                          .xrcd = xrcd,
                                          .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(context, &shared);
    struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *to = ibv_create_qp_ex(context, &target), *from = make_qp(IBV_QPT_XRC_SEND, NULL, 0);
    uint32_t number = 0;
    NEED(srq && to && from && !ibv_get_srq_num(srq, &number));
    join(to, from->qp_num);
    join(from, to->qp_num);
    put(0, "over XRC", 9);
    receive(NULL, srq, on_gpu(2048, 100));
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = number};
    NEED(!post(from, wr, on_gpu(0, 9)) && succeeds() && succeeds() && holds(2048, "over XRC"));
    wr = (struct ibv_send_wr){
        .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {gpu + 3072, gpu_mr->rkey}, .qp_type.xrc.remote_srqn = number};
    NEED(!post(from, wr, on_gpu(0, 9)) && succeeds() && holds(3072, "over XRC"));
    ibv_destroy_qp(from);
    ibv_destroy_qp(to);
    ibv_destroy_srq(srq);
    ibv_close_xrcd(xrcd);
}

static void datagrams_and_unreliable_connections_reach_the_gpu(void)
{
    struct ibv_qp *ud = make_qp(IBV_QPT_UD, NULL, 0), *uc = make_loop(IBV_QPT_UC, NULL, 0);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    NEED(!ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_modify_qp(ud, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    struct ibv_ah_attr way = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(pd, &way);
    put(0, "a datagram", 11);
    receive(ud, NULL, on_gpu(6000, 100));
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .wr.ud = {ah, ud->qp_num, QKEY}};
    NEED(ah && !post(ud, wr, on_gpu(0, 11)) && succeeds() && succeeds() && holds(6000 + GRH, "a datagram"));
    put(0, "over UC", 8);
    receive(uc, NULL, on_gpu(7000, 100));
    NEED(!post_to(uc, IBV_WR_SEND, on_gpu(0, 8), 0) && succeeds() && succeeds() && holds(7000, "over UC"));
    NEED(!post_to(uc, IBV_WR_RDMA_WRITE, on_gpu(0, 8), 7500) && succeeds());
    for (int i = 0; i < 1000 && !holds(7500, "over UC"); i++)
        usleep(1000);
    NEED(holds(7500, "over UC"));
    ibv_destroy_ah(ah);
    ibv_destroy_qp(ud);
    ibv_destroy_qp(uc);
}

/* Packets of UC, too, wait for each other: 1 MiB in 16 KiB each. The least of several: a machine without a free
 * processor brings them one by one. */
static void unreliable_messages_land_together(void)
{
    enum { LONG = 1 << 20, MESSAGES = 20, MOST_COPIES = 8 };
    static uint8_t bytes[LONG];
    struct ibv_qp *qp = make_loop(IBV_QPT_UC, NULL, 0);
    unsigned least = UINT32_MAX;
    for (int i = 0; i < MESSAGES; i++) {
        for (size_t at = 0; at < LONG; at++)
            bytes[at] = (uint8_t)(at * 7 + (at >> 8) * 3 + (size_t)i);
        put(0, bytes, LONG);
        receive(qp, NULL, on_gpu(LONG, LONG));
        fake_cuda_take_copies();
        NEED(!post_to(qp, IBV_WR_SEND, on_gpu(0, LONG), 0) && succeeds() && succeeds());
        unsigned copies = fake_cuda_take_copies().into;
        least = copies < least ? copies : least;
        uint8_t *landed = calloc(1, LONG);
        get(LONG, landed, LONG);
        NEED(!memcmp(landed, bytes, LONG));
        free(landed);
    }
    if (least > MOST_COPIES)
        printf("# %u copies\n", least);
    NEED(least <= MOST_COPIES);
    ibv_destroy_qp(qp);
}

/* The processor would have to read it when it is posted. */
static void inline_data_of_the_gpu_is_refused(void)
{
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .wr.rdma = {gpu, gpu_mr->rkey}};
    NEED(post(qp, wr, on_gpu(0, 8)) == EFAULT);
    strcpy(host, "inline");
    NEED(!post(qp, wr, on_host(0, 7)) && succeeds() && holds(0, "inline"));
    ibv_destroy_qp(qp);
}

static void a_region_of_the_gpu_changes_but_its_place(void)
{
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)gpu, 4096, IBV_ACCESS_LOCAL_WRITE);
    NEED(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, host, 64, 0) == IBV_REREG_MR_ERR_INPUT &&
         errno == EINVAL);
    NEED(
        !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    strcpy(host, "changed");
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {gpu + 100, mr->rkey}};
    NEED(!post(qp, wr, on_host(0, 8)) && succeeds() && holds(100, "changed"));
    NEED(!ibv_dereg_mr(mr));
    ibv_destroy_qp(qp);
}

/* Tag matching: the list has a buffer of the GPU, which a message finds by its tag, or which is read from the sender.
 */
static void tagged_messages_land_in_the_gpu(void)
{
    struct room room;
    struct room_event event;
    struct ibv_wc wc;
    enum { TAGGED = 200000, DATA = 1 << 20 };
    NEED(room_open(&room, 64, 32) && room_connect(&room, 0));
    struct ibv_mr *mr = ibv_reg_mr(room.pd, (void *)(uintptr_t)gpu, SIZE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {gpu, TAGGED, mr->lkey};
    struct ibv_ops_wr wr = {.wr_id = 1,
                            .opcode = IBV_WR_TAG_ADD,
                            .flags = IBV_OPS_SIGNALED,
                            .tm = {.add =
                                       {.recv_wr_id = 2, .sg_list = &sge, .num_sge = 1, .tag = 7, .mask = UINT64_MAX}}},
                      *bad;
    NEED(!ibv_post_srq_ops(room.srq, &wr, &bad) && room_wait(&room, &event) && !event.status);
    room_head(room_upper(&room, 0), IBV_TMH_EAGER, 0, 7);
    strcpy((char *)room_upper(&room, TMH), "eager");
    NEED(!room_send(&room, 0, 3, 0, TMH + 6) && room_wait(&room, &event) && !event.status && event.id == 2);
    NEED(room_sender_wait(&room, &wc) && !wc.status && holds(0, "eager"));
    wr.tm.add.tag = 8;
    NEED(!ibv_post_srq_ops(room.srq, &wr, &bad) && room_wait(&room, &event) && !event.status);
    for (uint32_t i = 0; i < TAGGED; i++)
        *room_upper(&room, DATA + i) = (uint8_t)(i * 3);
    NEED(!room_post_finish(&room, 0, 4, 4096));
    room_rendezvous_head(&room, room_upper(&room, 0), 0, 8, DATA, TAGGED);
    NEED(!room_send(&room, 0, 5, 0, HEAD));
    do /* the match has a completion, too, which precedes the bytes */
        NEED(room_wait(&room, &event) && !event.status && event.id == 2);
    while (!(event.flags & IBV_WC_TM_DATA_VALID));
    uint8_t *bytes = malloc(TAGGED);
    get(0, bytes, TAGGED);
    NEED(!memcmp(bytes, room_upper(&room, DATA), TAGGED));
    free(bytes);
    for (int i = 0; i < 2; i++)
        NEED(room_sender_wait(&room, &wc) && !wc.status);
    ibv_dereg_mr(mr);
    room_disconnect(&room, 0);
    room_close(&room);
}

static struct ibv_qp *callback_qp;

static void post_in_callback(void *result)
{
    *(int *)result = post_to(callback_qp, IBV_WR_RDMA_WRITE, on_gpu(0, 65536), 1 << 19);
}

static void a_host_callback_may_post(void)
{
    int result = -1;
    callback_qp = make_loop(IBV_QPT_RC, NULL, 0);
    put(0, "from a callback", 16);
    for (int i = 0; i < 20; i++) {
        NEED(!cuLaunchHostFunc(stream, post_in_callback, &result));
        NEED(!cuStreamSynchronize(stream) && !result && succeeds() && holds(1 << 19, "from a callback"));
    }
    ibv_destroy_qp(callback_qp);
}

/* A kernel on the legacy stream waits for the end of a WRITE, and each copy on a blocking stream would wait for
 * the kernel. */
static void a_kernel_on_the_legacy_stream_blocks_nothing(void)
{
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    unsigned copies = fake_cuda_legacy_copies();
    put_word(65528 + 8192, 0);
    NEED(!fake_cuda_launch_wait(NULL, gpu + 65528 + 8192, 4711));
    NEED(cuStreamQuery(NULL) == CUDA_NOT_READY);
    memset(host, 0, 65536);
    *(uint64_t *)(host + 65528) = 4711;
    NEED(!post_to(qp, IBV_WR_RDMA_READ, on_host(0, 64), 0) && succeeds());
    *(uint64_t *)(host + 65528) = 4711;
    NEED(!post_to(qp, IBV_WR_RDMA_WRITE, on_host(0, 65536), 8192) && succeeds());
    NEED(!cuStreamSynchronize(NULL) && fake_cuda_legacy_copies() == copies);
    ibv_destroy_qp(qp);
}

/* The number of lines that hold the text. */
static unsigned log_count(const char *text)
{
    char line[1024];
    unsigned found = 0;
    FILE *log = fopen(log_path, "r");
    while (log && fgets(line, sizeof line, log))
        found += strstr(line, text) != NULL;
    if (log)
        fclose(log);
    return found;
}

/* The helper waits within the driver and answers nothing, so a poller reports it. */
static void copies_that_do_not_end_are_logged(void)
{
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    struct ibv_wc wc;
    for (enum fake_cuda_hold hold = FAKE_CUDA_HOLD_COPIES; hold <= FAKE_CUDA_HOLD_CALLS; hold++) {
        time_t until = time(NULL) + (time_t)PATIENCE_SECONDS;
        int got = 0;
        NEED(log_count("(reason 417)") == hold - FAKE_CUDA_HOLD_COPIES);
        fake_cuda_hold_copies(hold);
        NEED(!post_to(qp, IBV_WR_RDMA_WRITE, on_host(0, 64), 0));
        while (!(got = ibv_poll_cq(cq, 1, &wc)) && log_count("EAGER. (reason 417)") < hold && time(NULL) < until)
            ;
        fake_cuda_hold_copies(FAKE_CUDA_HOLD_NONE);
        NEED(!got && log_count("EAGER. (reason 417)") == hold && succeeds());
    }
    ibv_destroy_qp(qp);
}

/* The memory is freed while its region lives, as memory of the host that was unmapped. */
static void memory_that_was_freed_ends_in_errors(void)
{
    cuda_address freed;
    unsigned pinned = fake_cuda_pinned();
    NEED(!cuMemAlloc_v2(&freed, 65536));
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)freed, 65536, ACCESS);
    NEED(mr && !cuMemFree_v2(freed));
    struct ibv_qp *loop = make_loop(IBV_QPT_RC, NULL, 0), *to, *from = make_couple(&to);
    NEED(!post_to(loop, IBV_WR_RDMA_WRITE, (struct ibv_sge){freed, 64, mr->lkey}, 0));
    NEED(next_of(cq).status == IBV_WC_LOC_PROT_ERR);
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {freed, mr->rkey}};
    NEED(!post(from, write, on_host(0, 64)) && next_of(cq).status == IBV_WC_REM_ACCESS_ERR);
    ibv_destroy_qp(loop);
    ibv_destroy_qp(from);
    ibv_destroy_qp(to);
    NEED(!ibv_dereg_mr(mr));
    mr = ibv_reg_mr(pd, (void *)(uintptr_t)gpu, 4096, ACCESS);
    NEED(mr && !ibv_dereg_mr(mr) && fake_cuda_pinned() == pinned); /* the context's stream serves on */
}

/* Each direction, with other queue pairs. */
static void a_context_that_dies_ends_in_errors(void)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        bool here, there;
        enum ibv_wc_status status;
    } rows[] = {
        {IBV_WR_RDMA_WRITE, true, false, IBV_WC_LOC_PROT_ERR}, {IBV_WR_RDMA_WRITE, false, true, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_RDMA_READ, true, false, IBV_WC_LOC_PROT_ERR},  {IBV_WR_RDMA_READ, false, true, IBV_WC_REM_ACCESS_ERR},
        {IBV_WR_SEND, true, false, IBV_WC_LOC_PROT_ERR},       {IBV_WR_SEND, false, true, IBV_WC_REM_OP_ERR},
    };
    fake_cuda_kill();
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ibv_qp *to, *qp = make_couple(&to);
        struct ibv_send_wr wr = {
            .wr_id = 9,
            .opcode = rows[i].opcode,
            .wr.rdma = {rows[i].there ? gpu : (uintptr_t)host, rows[i].there ? gpu_mr->rkey : host_mr->rkey}};
        if (rows[i].opcode == IBV_WR_SEND)
            receive(to, NULL, rows[i].there ? on_gpu(0, 64) : on_host(0, 64));
        NEED(!post(qp, wr, rows[i].here ? on_gpu(0, 64) : on_host(0, 64)));
        struct ibv_wc wc = next_of(cq);
        if (wc.wr_id != 9) /* the receive's */
            wc = next_of(cq);
        if (wc.status != rows[i].status)
            printf("# row %u: %s\n", i, ibv_wc_status_str(wc.status));
        NEED(wc.wr_id == 9 && wc.status == rows[i].status);
        ibv_destroy_qp(qp);
        ibv_destroy_qp(to);
        while (ibv_poll_cq(cq, 1, &wc) > 0)
            ;
    }
}

static void memory_of_the_host_moves_without_the_gpu(void)
{
    NEED(!ibv_dereg_mr(gpu_mr));
    struct ibv_qp *qp = make_loop(IBV_QPT_RC, NULL, 0);
    strcpy(host, "as before");
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {(uintptr_t)host + 4096, host_mr->rkey}};
    NEED(!post(qp, wr, on_host(0, 10)) && succeeds() && !strcmp(host + 4096, "as before"));
    ibv_destroy_qp(qp);
}

static bool set_up(void)
{
    void *primary;
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool device = list && list[0] && (context = ibv_open_device(list[0]));
    ibv_free_device_list(list);
    return device && !cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) && !cuCtxSetCurrent(primary) &&
           !cuStreamCreate(&stream, 1) && !cuMemAlloc_v2(&gpu, SIZE) && (host = aligned_alloc(4096, SIZE)) &&
           (pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 256, NULL, NULL, 0)) &&
           !ibv_query_gid(context, 1, 0, &gid) && (host_mr = ibv_reg_mr(pd, host, SIZE, ACCESS)) &&
           (gpu_mr = ibv_reg_mr(pd, (void *)(uintptr_t)gpu, SIZE, ACCESS));
}

int main(void)
{
    snprintf(log_path, sizeof log_path, "/tmp/gpu-paths-%d.log", (int)getpid());
    setenv("SOFTVERBS_LOG", "warn", 1);
    setenv("SOFTVERBS_LOG_FILE", log_path, 1);
    if (!set_up()) {
        printf("Bail out! nothing was set up: errno %d\n", errno);
        return 1;
    }
    CASE(atomics_change_words_of_the_gpu);
    CASE(an_atomic_write_and_a_flush_end_behind_the_write);
    CASE(a_window_opens_memory_of_the_gpu);
    CASE(shared_receives_are_of_the_gpu);
    CASE(xrc_reaches_the_gpu);
    CASE(datagrams_and_unreliable_connections_reach_the_gpu);
    CASE(unreliable_messages_land_together);
    CASE(inline_data_of_the_gpu_is_refused);
    CASE(a_region_of_the_gpu_changes_but_its_place);
    CASE(tagged_messages_land_in_the_gpu);
    CASE(a_host_callback_may_post);
    CASE(a_kernel_on_the_legacy_stream_blocks_nothing);
    CASE(copies_that_do_not_end_are_logged);
    CASE(memory_that_was_freed_ends_in_errors);
    CASE(a_context_that_dies_ends_in_errors);
    CASE(memory_of_the_host_moves_without_the_gpu);
    printf("1..%u\n", reported);
    unlink(log_path);
    return 0;
}
