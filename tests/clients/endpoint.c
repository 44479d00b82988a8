#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
    int reason = errno;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (reason)
        fprintf(stderr, " (%s)", strerror(reason));
    fputc('\n', stderr);
    exit(1);
}

double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void endpoint_meet(atomic_uint stages[2], int self, unsigned stage, double seconds)
{
    double deadline = now_seconds() + seconds;
    stages[self] = stage;
    while (stages[!self] < stage) {
        if (now_seconds() > deadline)
            die("the other side does not come to stage %u", stage);
        usleep(100);
    }
}

void endpoint_go_to(const char *host)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", host);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        die("no way to host %s", host);
    close(fd);
    const char *directory = getenv("SOFTVERBS_DIR"); /* ours: in /tmp anybody could have the host's name first */
    if (!directory)
        die("SOFTVERBS_DIR must name a directory");
    snprintf(path, sizeof path, "%s/%s", directory, host);
    mkdir(path, 0700);
    setenv("SOFTVERBS_DIR", path, 1);
}

static uint8_t gid_index(void)
{
    const char *index = getenv("ENDPOINT_GID");
    return index ? (uint8_t)atoi(index) : 0;
}

void endpoint_refuse(long call)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
        die("seccomp");
}

void endpoint_open(struct endpoint *endpoint, int completions)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    if (!devices || !devices[0])
        die("there is no device");
    endpoint->context = ibv_open_device(devices[0]);
    if (!endpoint->context)
        die("the device does not open");
    ibv_free_device_list(devices);
    endpoint->pd = ibv_alloc_pd(endpoint->context);
    endpoint->channel = ibv_create_comp_channel(endpoint->context);
    if (!endpoint->pd || !endpoint->channel)
        die("no protection domain or completion channel");
    endpoint->cq = ibv_create_cq(endpoint->context, completions, NULL, endpoint->channel, 0);
    if (!endpoint->cq)
        die("no completion queue of %d entries", completions);
    if (ibv_query_gid(endpoint->context, 1, gid_index(), &endpoint->gid))
        die("the port has no GID");
}

void endpoint_close(struct endpoint *endpoint)
{
    if (ibv_destroy_cq(endpoint->cq) || ibv_destroy_comp_channel(endpoint->channel) || ibv_dealloc_pd(endpoint->pd) ||
        ibv_close_device(endpoint->context))
        die("something is still in use at the end");
}

struct ibv_mr *endpoint_register(struct endpoint *endpoint, void *memory, size_t size)
{
    struct ibv_mr *mr = ibv_reg_mr(endpoint->pd, memory, size, ENDPOINT_ACCESS);
    if (!mr)
        die("no memory region of %zu bytes", size);
    return mr;
}

static void initialize(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = ENDPOINT_QKEY};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (qp->qp_type == IBV_QPT_RC)
        attr.qp_access_flags = ENDPOINT_ACCESS;
    else if (qp->qp_type == IBV_QPT_UC)
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    errno = ibv_modify_qp(qp, &attr, mask);
    if (errno)
        die("a queue pair does not go to INIT");
}

struct ibv_qp *endpoint_create_qp(struct endpoint *endpoint, enum ibv_qp_type type, unsigned sends, unsigned receives)
{
    struct ibv_qp_init_attr attr = {.send_cq = endpoint->cq, .recv_cq = endpoint->cq, .qp_type = type};
    attr.cap = (struct ibv_qp_cap){.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1};
    attr.cap.max_inline_data = ENDPOINT_INLINE;
    struct ibv_qp *qp = ibv_create_qp(endpoint->pd, &attr);
    if (!qp)
        die("no queue pair");
    initialize(qp);
    return qp;
}

struct address endpoint_address(const struct endpoint *endpoint, const struct ibv_qp *qp, const struct ibv_mr *mr)
{
    struct address address = {.gid = endpoint->gid, .qp_num = qp->qp_num};
    if (mr) {
        address.rkey = mr->rkey;
        address.memory = (uintptr_t)mr->addr;
    }
    return address;
}

static struct ibv_ah_attr route(const struct address *peer)
{
    return (struct ibv_ah_attr){
        .is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = gid_index(), .hop_limit = 64}};
}

static enum ibv_mtu active_mtu(struct ibv_context *context)
{
    struct ibv_port_attr port;
    errno = ibv_query_port(context, 1, &port);
    if (errno)
        die("there is no port");
    return port.active_mtu;
}

uint32_t endpoint_mtu(const struct endpoint *endpoint)
{
    return 128u << active_mtu(endpoint->context);
}

static void make_ready_to_receive(struct ibv_qp *qp, const struct address *peer)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .min_rnr_timer = 1};
    int mask = IBV_QP_STATE;
    if (qp->qp_type != IBV_QPT_UD) {
        attr.dest_qp_num = peer->qp_num;
        attr.path_mtu = active_mtu(qp->context);
        attr.ah_attr = route(peer);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qp->qp_type == IBV_QPT_RC) {
        attr.max_dest_rd_atomic = 4;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    errno = ibv_modify_qp(qp, &attr, mask);
    if (errno)
        die("a queue pair does not go to RTR");
}

void endpoint_connect(struct ibv_qp *qp, const struct address *peer, uint8_t timeout)
{
    make_ready_to_receive(qp, peer);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type == IBV_QPT_RC) {
        attr.timeout = timeout;
        attr.retry_cnt = 3;
        attr.rnr_retry = 7;
        attr.max_rd_atomic = 4;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    errno = ibv_modify_qp(qp, &attr, mask);
    if (errno)
        die("a queue pair does not go to RTS");
}

struct ibv_ah *endpoint_reach(struct endpoint *endpoint, const struct address *peer)
{
    struct ibv_ah_attr attr = route(peer);
    struct ibv_ah *ah = ibv_create_ah(endpoint->pd, &attr);
    if (!ah)
        die("no address handle");
    return ah;
}

static int poll_once(struct endpoint *endpoint, struct ibv_wc *wc, int count)
{
    int found = ibv_poll_cq(endpoint->cq, count, wc);
    if (found < 0)
        die("ibv_poll_cq fails");
    return found;
}

static void sleep_on_channel(struct endpoint *endpoint, double seconds)
{
    struct pollfd descriptor = {.fd = endpoint->channel->fd, .events = POLLIN};
    if (poll(&descriptor, 1, (int)(seconds * 1000) + 1) <= 0)
        return;
    struct ibv_cq *cq;
    void *context;
    if (ibv_get_cq_event(endpoint->channel, &cq, &context))
        die("ibv_get_cq_event fails");
    ibv_ack_cq_events(cq, 1);
}

int endpoint_wait(struct endpoint *endpoint, struct ibv_wc *wc, int count, double seconds)
{
    double deadline = now_seconds() + seconds;
    for (;;) {
        int found = poll_once(endpoint, wc, count);
        if (found)
            return found;
        if (ibv_req_notify_cq(endpoint->cq, 0))
            die("ibv_req_notify_cq fails");
        found = poll_once(endpoint, wc, count); /* what arrived before the arming raises no event */
        double left = deadline - now_seconds();
        if (found || left <= 0)
            return found;
        sleep_on_channel(endpoint, left);
    }
}
