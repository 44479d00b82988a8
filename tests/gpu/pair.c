#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/patience.h"

static unsigned reported;

static void need(bool there, const char *what)
{
    if (there)
        return;
    fprintf(stderr, "# %s: %s\n", what, strerror(errno));
    _exit(9);
}

void pair_swap(struct pair *pair, const void *mine, void *theirs, size_t size)
{
    need(write(pair->fd, mine, size) == (ssize_t)size && recv(pair->fd, theirs, size, MSG_WAITALL) == (ssize_t)size,
         "the other side is gone");
}

void pair_meet(struct pair *pair)
{
    char mine = 'x', theirs;
    pair_swap(pair, &mine, &theirs, 1);
}

static void open_gpu(struct pair *pair)
{
    void *context;
    cuda_address at;
    need(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context), "cuInit");
    need(!cuStreamCreate(&pair->stream, 1) && !cuMemAlloc_v2(&at, MEMORY), "cuMemAlloc");
    pair->memory[GPU] = at;
}

static void open_device(struct pair *pair)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && list[0] && (pair->context = ibv_open_device(list[0])), "ibv_open_device");
    ibv_free_device_list(list);
    pair->pd = ibv_alloc_pd(pair->context);
    pair->cq = ibv_create_cq(pair->context, 256, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = pair->cq, .recv_cq = pair->cq, .qp_type = IBV_QPT_RC, .cap = {64, 64, 4, 4, 64}};
    need(pair->pd && pair->cq && (pair->qp = ibv_create_qp(pair->pd, &init)), "ibv_create_qp");
    for (int kind = HOST; kind <= GPU; kind++) {
        pair->mr[kind] = ibv_reg_mr(pair->pd, (void *)(uintptr_t)pair->memory[kind], MEMORY, PAIR_ACCESS);
        need(pair->mr[kind], kind ? "ibv_reg_mr of a GPU's memory" : "ibv_reg_mr");
    }
}

/* GPU_PAIR_HOSTS: each process on a host of these names for ip-netns(8), with a network. */
static void go_to_host(bool first)
{
    const char *names = getenv("GPU_PAIR_HOSTS"), *second = names ? strchr(names, ' ') : NULL;
    char path[64];
    if (!second)
        return;
    snprintf(path, sizeof path, "/run/netns/%.*s", first ? (int)(second - names) : 32, first ? names : second + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    need(fd >= 0 && !setns(fd, CLONE_NEWNET), path);
    close(fd);
    setenv("SOFTVERBS_DIR", first ? "/dev/shm/gpu-first" : "/dev/shm/gpu-second", 1);
}

/* The GID of IPv4 on a network, which follows the link-local one. */
static uint8_t gid_index(void)
{
    return getenv("GPU_PAIR_HOSTS") ? 1 : 0;
}

void pair_connect(struct pair *pair)
{
    struct address mine = {.qp_num = pair->qp->qp_num,
                           .rkey = {pair->mr[HOST]->rkey, pair->mr[GPU]->rkey},
                           .memory = {pair->memory[HOST], pair->memory[GPU]}};
    need(!ibv_query_gid(pair->context, 1, gid_index(), &mine.gid), "ibv_query_gid");
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = PAIR_ACCESS};
    struct ibv_wc ignored;
    ibv_modify_qp(pair->qp, &reset, IBV_QP_STATE);
    while (ibv_poll_cq(pair->cq, 1, &ignored) > 0)
        ;
    pair_swap(pair, &mine, &pair->peer, sizeof mine);
    struct ibv_qp_attr receive = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = pair->peer.qp_num,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = pair->peer.gid, .sgid_index = gid_index(), .hop_limit = 64}}};
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    need(!ibv_modify_qp(pair->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    need(!ibv_modify_qp(pair->qp, &receive,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    need(!ibv_modify_qp(pair->qp, &send,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
    pair_meet(pair);
}

void pair_open(struct pair *pair)
{
    int ends[2];
    *pair = (struct pair){0};
    need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    fflush(stdout);
    pair->child = fork();
    pair->first = pair->child != 0;
    pair->fd = ends[pair->first];
    close(ends[!pair->first]);
    go_to_host(pair->first);
    void *host = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(host != MAP_FAILED, "mmap");
    pair->memory[HOST] = (uintptr_t)host;
    open_gpu(pair);
    open_device(pair);
    pair_connect(pair);
}

bool pair_close(struct pair *pair, bool good)
{
    int status = 0;
    ibv_destroy_qp(pair->qp);
    for (int kind = HOST; kind <= GPU; kind++)
        ibv_dereg_mr(pair->mr[kind]);
    ibv_destroy_cq(pair->cq);
    ibv_dealloc_pd(pair->pd);
    need(!ibv_close_device(pair->context), "ibv_close_device");
    if (!pair->first)
        _exit(!good);
    return waitpid(pair->child, &status, 0) == pair->child && !status && good;
}

static unsigned char byte_of(size_t at, unsigned seed)
{
    return (unsigned char)(at * 7 + (at >> 8) * 13 + (at >> 16) * 29 + seed);
}

void pair_fill(struct pair *pair, int kind, size_t offset, size_t length, unsigned seed)
{
    unsigned char *bytes = kind ? malloc(length + 1) : (unsigned char *)(uintptr_t)pair->memory[HOST] + offset;
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_of(i, seed);
    if (!kind)
        return;
    need(!cuMemcpyHtoDAsync_v2(pair->memory[GPU] + offset, bytes, length, pair->stream), "cuMemcpyHtoDAsync");
    need(!cuStreamSynchronize(pair->stream), "cuStreamSynchronize");
    free(bytes);
}

static void read_back(struct pair *pair, int kind, size_t offset, void *to, size_t length)
{
    if (!kind) {
        memcpy(to, (void *)(uintptr_t)(pair->memory[HOST] + offset), length);
        return;
    }
    need(!cuMemcpyDtoHAsync_v2(to, pair->memory[GPU] + offset, length, pair->stream), "cuMemcpyDtoHAsync");
    need(!cuStreamSynchronize(pair->stream), "cuStreamSynchronize");
}

bool pair_holds(struct pair *pair, int kind, size_t offset, size_t length, unsigned seed)
{
    unsigned char *bytes = malloc(length + 1);
    size_t good = 0;
    read_back(pair, kind, offset, bytes, length);
    while (good < length && bytes[good] == byte_of(good, seed))
        good++;
    if (good < length)
        printf("# %s: byte %zu of %zu is 0x%02x and not 0x%02x\n", kind ? "GPU" : "host", good, length, bytes[good],
               byte_of(good, seed));
    free(bytes);
    return good == length;
}

uint64_t pair_word(struct pair *pair, int kind, size_t offset)
{
    uint64_t word;
    read_back(pair, kind, offset, &word, sizeof word);
    return word;
}

struct ibv_sge pair_sge(const struct pair *pair, int kind, size_t offset, uint32_t length)
{
    return (struct ibv_sge){pair->memory[kind] + offset, length, pair->mr[kind]->lkey};
}

void pair_post(struct pair *pair, enum ibv_wr_opcode opcode, struct ibv_sge *sge, int count, int there, size_t offset)
{
    struct ibv_send_wr wr = {.sg_list = sge,
                             .num_sge = count,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = 0x11223344,
                             .wr.rdma = {pair->peer.memory[there] + offset, pair->peer.rkey[there]}},
                       *bad;
    need(!ibv_post_send(pair->qp, &wr, &bad), "ibv_post_send");
}

void pair_receive(struct pair *pair, struct ibv_sge *sge, int count)
{
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = count}, *bad;
    need(!ibv_post_recv(pair->qp, &wr, &bad), "ibv_post_recv");
}

struct ibv_wc pair_wait(struct pair *pair)
{
    struct ibv_wc wc = {0};
    time_t until = time(NULL) + (time_t)PATIENCE_SECONDS;
    int got;
    while (!(got = ibv_poll_cq(pair->cq, 1, &wc)) && time(NULL) < until)
        ;
    errno = ETIMEDOUT;
    need(got == 1, "ibv_poll_cq");
    return wc;
}

bool pair_report(struct pair *pair, bool good, const char *format, ...)
{
    bool theirs;
    char name[160];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    pair_swap(pair, &good, &theirs, sizeof good);
    if (!good)
        printf("# the %s side is not satisfied\n", pair->first ? "first" : "second");
    if (pair->first)
        printf("%s %u - %s\n", good && theirs ? "ok" : "not ok", ++reported, name);
    fflush(stdout);
    return good && theirs;
}

void pair_plan(const struct pair *pair)
{
    if (pair->first)
        printf("1..%u\n", reported);
}
