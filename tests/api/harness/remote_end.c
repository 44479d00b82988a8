#include "remote_end.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_objects.h"

static _Thread_local char payload[PAYLOAD_MAX]; /* a test may give commands to two remote ends at once */

static bool read_all(int fd, void *to, size_t size)
{
    for (char *at = to; size;) {
        ssize_t got = read(fd, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t size)
{
    for (const char *at = from; size;) {
        ssize_t put = send(fd, at, size, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

static bool read_call(int fd, struct call *call)
{
    return read_all(fd, call, sizeof *call) && call->payload <= PAYLOAD_MAX && read_all(fd, payload, call->payload);
}

static bool write_call(int fd, const struct call *call)
{
    return write_all(fd, call, sizeof *call) && write_all(fd, payload, call->payload);
}

int remote_serve(int fd)
{
    struct end_objects *objects = calloc(1, sizeof *objects);
    struct call call;
    while (objects && read_call(fd, &call) && call.verb != VERB_END) {
        end_execute(objects, &call, payload);
        if (!write_call(fd, &call))
            break;
    }
    call.verb = VERB_CLEAR;
    end_execute(objects, &call, payload);
    free(objects);
    return call.error != 0;
}

/* Makes the call in remote->call. A child that does not answer has died, which no test expects. */
static int make(struct remote_end *remote, enum verb verb)
{
    remote->call.verb = verb;
    if (remote->objects) {
        end_execute(remote->objects, &remote->call, payload);
    } else if (!write_call(remote->fd, &remote->call) || !read_call(remote->fd, &remote->call)) {
        printf("Bail out! The other process has died in call %d.\n", verb);
        fflush(stdout);
        _exit(1);
    }
    remote->error = remote->call.error;
    return remote->call.result;
}

void remote_begin_here(struct remote_end *remote)
{
    *remote = (struct remote_end){.objects = calloc(1, sizeof *remote->objects), .fd = -1};
}

void remote_begin_child(struct remote_end *remote, const char *name, const char *value)
{
    int ends[2];
    char number[16];
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        abort();
    *remote = (struct remote_end){.fd = ends[0], .pid = fork()};
    if (remote->pid) {
        close(ends[1]);
        return;
    }
    int fd = dup(ends[1]); /* without close-on-exec */
    snprintf(number, sizeof number, "%d", fd);
    if (name)
        setenv(name, value, 1);
    execl("/proc/self/exe", "remote", "--remote", number, (char *)NULL);
    _exit(127);
}

static int wait_for(struct remote_end *remote)
{
    int status = 0;
    close(remote->fd);
    waitpid(remote->pid, &status, 0);
    remote->pid = 0;
    return status;
}

void remote_finish(struct remote_end *remote)
{
    if (remote->objects) {
        free(remote->objects);
        return;
    }
    remote->call = (struct call){.verb = VERB_END};
    write_call(remote->fd, &remote->call);
    remote->error = wait_for(remote);
}

void remote_kill(struct remote_end *remote)
{
    kill(remote->pid, SIGKILL);
    wait_for(remote);
}

void remote_stop(struct remote_end *remote, bool stop)
{
    int status;
    kill(remote->pid, stop ? SIGSTOP : SIGCONT);
    if (stop) /* the signal takes effect some time after kill has returned */
        waitpid(remote->pid, &status, WUNTRACED);
}

int remote_open(struct remote_end *remote, int gid_index)
{
    remote->call = (struct call){.number = {gid_index}};
    return make(remote, VERB_OPEN);
}

int remote_clear(struct remote_end *remote)
{
    remote->call = (struct call){0};
    return make(remote, VERB_CLEAR);
}

uint64_t remote_memory(struct remote_end *remote, size_t length)
{
    remote->call = (struct call){.number = {(int64_t)length}};
    make(remote, VERB_MEMORY);
    return (uint64_t)remote->call.number[0];
}

void remote_lose(struct remote_end *remote, uint64_t address, size_t length, enum loss loss)
{
    remote->call = (struct call){.number = {(int64_t)address, (int64_t)length, loss}};
    make(remote, VERB_LOSE);
}

int remote_alloc_pd(struct remote_end *remote)
{
    remote->call = (struct call){0};
    return make(remote, VERB_ALLOC_PD);
}

int remote_reg_mr(struct remote_end *remote, int pd, uint64_t address, uint64_t length, int access)
{
    remote->call = (struct call){.id = {pd, 0}, .number = {(int64_t)address, (int64_t)length, access}};
    return make(remote, VERB_REG_MR);
}

int remote_reg_mr_iova(struct remote_end *remote, int pd, uint64_t address, uint64_t length, uint64_t iova, int access)
{
    remote->call = (struct call){.id = {pd, 1}, .number = {(int64_t)address, (int64_t)length, access, (int64_t)iova}};
    return make(remote, VERB_REG_MR);
}

int remote_rereg_mr(struct remote_end *remote, int mr, int flags, int pd, uint64_t address, uint64_t length, int access)
{
    remote->call = (struct call){.id = {mr, pd}, .number = {(int64_t)address, (int64_t)length, access, flags}};
    return make(remote, VERB_REREG_MR);
}

int remote_create_channel(struct remote_end *remote)
{
    remote->call = (struct call){0};
    return make(remote, VERB_CREATE_CHANNEL);
}

int remote_create_cq(struct remote_end *remote, int entries, int channel, int64_t context)
{
    remote->call = (struct call){.id = {channel}, .number = {entries, 0, context}};
    return make(remote, VERB_CREATE_CQ);
}

int remote_create_cq_ex(struct remote_end *remote, const struct ibv_cq_init_attr_ex *attr, int channel)
{
    remote->call = (struct call){.id = {channel}, .cq = *attr};
    return make(remote, VERB_CREATE_CQ_EX);
}

int remote_resize_cq(struct remote_end *remote, int cq, int entries)
{
    remote->call = (struct call){.id = {cq}, .number = {entries}};
    return make(remote, VERB_RESIZE_CQ);
}

int remote_create_srq(struct remote_end *remote, int pd, struct ibv_srq_attr *attr)
{
    remote->call = (struct call){.id = {pd}, .srq.attr = *attr};
    int number = make(remote, VERB_CREATE_SRQ);
    *attr = remote->call.srq.attr;
    return number;
}

int remote_modify_srq(struct remote_end *remote, int srq, const struct ibv_srq_attr *attr, int mask)
{
    remote->call = (struct call){.id = {srq}, .number = {mask}, .srq.attr = *attr};
    return make(remote, VERB_MODIFY_SRQ);
}

int remote_query_srq(struct remote_end *remote, int srq, struct ibv_srq_attr *attr)
{
    remote->call = (struct call){.id = {srq}};
    int error = make(remote, VERB_QUERY_SRQ);
    *attr = remote->call.srq.attr;
    return error;
}

int remote_create_qp(struct remote_end *remote, int pd, int send_cq, int receive_cq, int srq,
                     struct ibv_qp_init_attr *attr)
{
    remote->call = (struct call){.id = {pd, send_cq, receive_cq, srq}, .qp_init = *attr};
    int number = make(remote, VERB_CREATE_QP);
    attr->cap = remote->call.qp_init.cap;
    return number;
}

int remote_modify_qp(struct remote_end *remote, int qp, const struct ibv_qp_attr *attr, int mask)
{
    remote->call = (struct call){.id = {qp}, .qp = {.attr = *attr, .mask = mask}};
    return make(remote, VERB_MODIFY_QP);
}

int remote_query_qp(struct remote_end *remote, int qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
    remote->call = (struct call){.id = {qp}, .qp.mask = ~0};
    int error = make(remote, VERB_QUERY_QP);
    *attr = remote->call.qp.attr;
    *init = remote->call.qp.init;
    return error;
}

enum ibv_qp_state remote_qp_state(struct remote_end *remote, int qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return remote_query_qp(remote, qp, &attr, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

int remote_create_ah(struct remote_end *remote, int pd, const struct ibv_ah_attr *attr)
{
    remote->call = (struct call){.id = {pd}, .ah = *attr};
    return make(remote, VERB_CREATE_AH);
}

int remote_attach(struct remote_end *remote, int qp, const union ibv_gid *gid)
{
    remote->call = (struct call){.id = {qp}, .about.gid = *gid};
    return make(remote, VERB_ATTACH);
}

int remote_detach(struct remote_end *remote, int qp, const union ibv_gid *gid)
{
    remote->call = (struct call){.id = {qp}, .about.gid = *gid};
    return make(remote, VERB_DETACH);
}

int remote_destroy(struct remote_end *remote, enum kind kind, int number)
{
    remote->call = (struct call){.id = {number}, .number = {kind}};
    return make(remote, VERB_DESTROY);
}

static int post(struct remote_end *remote, enum verb verb, int object, const void *list, size_t size, int *bad)
{
    remote->call = (struct call){.id = {object}, .payload = (uint32_t)size};
    memcpy(payload, list, size);
    int error = make(remote, verb);
    if (bad)
        *bad = (int)remote->call.number[0];
    return error;
}

int remote_post_send(struct remote_end *remote, int qp, const struct send *sends, int count, int *bad)
{
    return post(remote, VERB_POST_SEND, qp, sends, (size_t)count * sizeof *sends, bad);
}

int remote_post_receive(struct remote_end *remote, int qp, const struct receive *receives, int count, int *bad)
{
    return post(remote, VERB_POST_RECEIVE, qp, receives, (size_t)count * sizeof *receives, bad);
}

int remote_post_srq(struct remote_end *remote, int srq, const struct receive *receives, int count, int *bad)
{
    return post(remote, VERB_POST_SRQ, srq, receives, (size_t)count * sizeof *receives, bad);
}

int remote_poll(struct remote_end *remote, int cq, int most, struct ibv_wc *wc, int64_t milliseconds)
{
    remote->call = (struct call){.id = {cq}, .number = {most, milliseconds}};
    int taken = make(remote, VERB_POLL);
    memcpy(wc, payload, remote->call.payload);
    return taken;
}

int remote_poll_ex(struct remote_end *remote, int cq, int most, struct extended *entries, int64_t milliseconds)
{
    remote->call = (struct call){.id = {cq}, .number = {most, milliseconds}};
    int taken = make(remote, VERB_POLL_EX);
    memcpy(entries, payload, remote->call.payload);
    return taken;
}

int remote_arm(struct remote_end *remote, int cq, int solicited_only)
{
    remote->call = (struct call){.id = {cq}, .number = {solicited_only}};
    return make(remote, VERB_ARM);
}

int remote_get_cq_event(struct remote_end *remote, int channel, int64_t milliseconds)
{
    remote->call = (struct call){.id = {channel}, .number = {milliseconds}};
    make(remote, VERB_GET_CQ_EVENT);
    return remote->call.id[0];
}

void remote_ack_cq_events(struct remote_end *remote, int cq, unsigned count)
{
    remote->call = (struct call){.id = {cq}, .number = {count}};
    make(remote, VERB_ACK_CQ_EVENTS);
}

int remote_get_async_event(struct remote_end *remote, int64_t milliseconds)
{
    remote->call = (struct call){.number = {milliseconds}};
    return make(remote, VERB_GET_ASYNC_EVENT) ? -1 : (int)remote->call.number[0];
}

void remote_fill(struct remote_end *remote, uint64_t address, uint64_t length, uint64_t seed)
{
    remote->call = (struct call){.number = {(int64_t)address, (int64_t)length, (int64_t)seed}};
    make(remote, VERB_FILL);
}

int64_t remote_compare(struct remote_end *remote, uint64_t address, uint64_t length, uint64_t seed, uint64_t offset)
{
    remote->call = (struct call){.number = {(int64_t)address, (int64_t)length, (int64_t)seed, (int64_t)offset}};
    make(remote, VERB_COMPARE);
    return remote->call.number[0];
}

void remote_set(struct remote_end *remote, uint64_t address, uint64_t length, uint8_t value)
{
    remote->call = (struct call){.number = {(int64_t)address, (int64_t)length, value}};
    make(remote, VERB_SET);
}

uint64_t remote_peek(struct remote_end *remote, uint64_t address)
{
    remote->call = (struct call){.number = {(int64_t)address}};
    make(remote, VERB_PEEK);
    return (uint64_t)remote->call.number[0];
}

void remote_poke(struct remote_end *remote, uint64_t address, uint64_t value)
{
    remote->call = (struct call){.number = {(int64_t)address, (int64_t)value}};
    make(remote, VERB_POKE);
}
