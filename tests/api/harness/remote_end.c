#include "remote_end.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end_objects.h"

static _Thread_local char payload[PAYLOAD_MAX]; /* a test may tell two puppets something at once */

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

int puppet_serve(int fd)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct call call;
    while (stage && read_call(fd, &call) && call.verb != VERB_END) {
        stage_execute(stage, &call, payload);
        if (!write_call(fd, &call))
            break;
    }
    call.verb = VERB_CLEAR;
    stage_execute(stage, &call, payload);
    free(stage);
    return call.error != 0;
}

/* Makes the call that stands in puppet->call. A child that does not answer has died, which no test expects. */
static int make(struct puppet *puppet, enum verb verb)
{
    puppet->call.verb = verb;
    if (puppet->stage) {
        stage_execute(puppet->stage, &puppet->call, payload);
    } else if (!write_call(puppet->fd, &puppet->call) || !read_call(puppet->fd, &puppet->call)) {
        printf("Bail out! The other process has died in call %d.\n", verb);
        fflush(stdout);
        _exit(1);
    }
    puppet->error = puppet->call.error;
    return puppet->call.result;
}

void puppet_begin_here(struct puppet *puppet)
{
    *puppet = (struct puppet){.stage = calloc(1, sizeof *puppet->stage), .fd = -1};
}

void puppet_begin_child(struct puppet *puppet, const char *name, const char *value)
{
    int ends[2];
    char number[16];
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        abort();
    *puppet = (struct puppet){.fd = ends[0], .pid = fork()};
    if (puppet->pid) {
        close(ends[1]);
        return;
    }
    int fd = dup(ends[1]); /* without close-on-exec */
    snprintf(number, sizeof number, "%d", fd);
    if (name)
        setenv(name, value, 1);
    execl("/proc/self/exe", "puppet", "--puppet", number, (char *)NULL);
    _exit(127);
}

static int wait_for(struct puppet *puppet)
{
    int status = 0;
    close(puppet->fd);
    waitpid(puppet->pid, &status, 0);
    puppet->pid = 0;
    return status;
}

void puppet_end(struct puppet *puppet)
{
    if (puppet->stage) {
        free(puppet->stage);
        return;
    }
    puppet->call = (struct call){.verb = VERB_END};
    write_call(puppet->fd, &puppet->call);
    puppet->error = wait_for(puppet);
}

void puppet_kill(struct puppet *puppet)
{
    kill(puppet->pid, SIGKILL);
    wait_for(puppet);
}

void puppet_stop(struct puppet *puppet, bool stop)
{
    int status;
    kill(puppet->pid, stop ? SIGSTOP : SIGCONT);
    if (stop) /* the signal takes effect some time after kill has returned */
        waitpid(puppet->pid, &status, WUNTRACED);
}

int puppet_open(struct puppet *puppet, int gid_index)
{
    puppet->call = (struct call){.number = {gid_index}};
    return make(puppet, VERB_OPEN);
}

int puppet_clear(struct puppet *puppet)
{
    puppet->call = (struct call){0};
    return make(puppet, VERB_CLEAR);
}

uint64_t puppet_memory(struct puppet *puppet, size_t length)
{
    puppet->call = (struct call){.number = {(int64_t)length}};
    make(puppet, VERB_MEMORY);
    return (uint64_t)puppet->call.number[0];
}

void puppet_lose(struct puppet *puppet, uint64_t address, size_t length, enum loss loss)
{
    puppet->call = (struct call){.number = {(int64_t)address, (int64_t)length, loss}};
    make(puppet, VERB_LOSE);
}

int puppet_alloc_pd(struct puppet *puppet)
{
    puppet->call = (struct call){0};
    return make(puppet, VERB_ALLOC_PD);
}

int puppet_reg_mr(struct puppet *puppet, int pd, uint64_t address, uint64_t length, int access)
{
    puppet->call = (struct call){.id = {pd, 0}, .number = {(int64_t)address, (int64_t)length, access}};
    return make(puppet, VERB_REG_MR);
}

int puppet_reg_mr_iova(struct puppet *puppet, int pd, uint64_t address, uint64_t length, uint64_t iova, int access)
{
    puppet->call = (struct call){.id = {pd, 1}, .number = {(int64_t)address, (int64_t)length, access, (int64_t)iova}};
    return make(puppet, VERB_REG_MR);
}

int puppet_rereg_mr(struct puppet *puppet, int mr, int flags, int pd, uint64_t address, uint64_t length, int access)
{
    puppet->call = (struct call){.id = {mr, pd}, .number = {(int64_t)address, (int64_t)length, access, flags}};
    return make(puppet, VERB_REREG_MR);
}

int puppet_create_channel(struct puppet *puppet)
{
    puppet->call = (struct call){0};
    return make(puppet, VERB_CREATE_CHANNEL);
}

int puppet_create_cq(struct puppet *puppet, int entries, int channel, int64_t context)
{
    puppet->call = (struct call){.id = {channel}, .number = {entries, 0, context}};
    return make(puppet, VERB_CREATE_CQ);
}

int puppet_create_cq_ex(struct puppet *puppet, const struct ibv_cq_init_attr_ex *attr, int channel)
{
    puppet->call = (struct call){.id = {channel}, .cq = *attr};
    return make(puppet, VERB_CREATE_CQ_EX);
}

int puppet_resize_cq(struct puppet *puppet, int cq, int entries)
{
    puppet->call = (struct call){.id = {cq}, .number = {entries}};
    return make(puppet, VERB_RESIZE_CQ);
}

int puppet_create_srq(struct puppet *puppet, int pd, struct ibv_srq_attr *attr)
{
    puppet->call = (struct call){.id = {pd}, .srq.attr = *attr};
    int number = make(puppet, VERB_CREATE_SRQ);
    *attr = puppet->call.srq.attr;
    return number;
}

int puppet_modify_srq(struct puppet *puppet, int srq, const struct ibv_srq_attr *attr, int mask)
{
    puppet->call = (struct call){.id = {srq}, .number = {mask}, .srq.attr = *attr};
    return make(puppet, VERB_MODIFY_SRQ);
}

int puppet_query_srq(struct puppet *puppet, int srq, struct ibv_srq_attr *attr)
{
    puppet->call = (struct call){.id = {srq}};
    int error = make(puppet, VERB_QUERY_SRQ);
    *attr = puppet->call.srq.attr;
    return error;
}

int puppet_create_qp(struct puppet *puppet, int pd, int send_cq, int receive_cq, int srq, struct ibv_qp_init_attr *attr)
{
    puppet->call = (struct call){.id = {pd, send_cq, receive_cq, srq}, .qp_init = *attr};
    int number = make(puppet, VERB_CREATE_QP);
    attr->cap = puppet->call.qp_init.cap;
    return number;
}

int puppet_modify_qp(struct puppet *puppet, int qp, const struct ibv_qp_attr *attr, int mask)
{
    puppet->call = (struct call){.id = {qp}, .qp = {.attr = *attr, .mask = mask}};
    return make(puppet, VERB_MODIFY_QP);
}

int puppet_query_qp(struct puppet *puppet, int qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
    puppet->call = (struct call){.id = {qp}, .qp.mask = ~0};
    int error = make(puppet, VERB_QUERY_QP);
    *attr = puppet->call.qp.attr;
    *init = puppet->call.qp.init;
    return error;
}

enum ibv_qp_state puppet_qp_state(struct puppet *puppet, int qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return puppet_query_qp(puppet, qp, &attr, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

int puppet_create_ah(struct puppet *puppet, int pd, const struct ibv_ah_attr *attr)
{
    puppet->call = (struct call){.id = {pd}, .ah = *attr};
    return make(puppet, VERB_CREATE_AH);
}

int puppet_attach(struct puppet *puppet, int qp, const union ibv_gid *gid)
{
    puppet->call = (struct call){.id = {qp}, .about.gid = *gid};
    return make(puppet, VERB_ATTACH);
}

int puppet_detach(struct puppet *puppet, int qp, const union ibv_gid *gid)
{
    puppet->call = (struct call){.id = {qp}, .about.gid = *gid};
    return make(puppet, VERB_DETACH);
}

int puppet_destroy(struct puppet *puppet, enum kind kind, int number)
{
    puppet->call = (struct call){.id = {number}, .number = {kind}};
    return make(puppet, VERB_DESTROY);
}

static int post(struct puppet *puppet, enum verb verb, int object, const void *list, size_t size, int *bad)
{
    puppet->call = (struct call){.id = {object}, .payload = (uint32_t)size};
    memcpy(payload, list, size);
    int error = make(puppet, verb);
    if (bad)
        *bad = (int)puppet->call.number[0];
    return error;
}

int puppet_post_send(struct puppet *puppet, int qp, const struct send *sends, int count, int *bad)
{
    return post(puppet, VERB_POST_SEND, qp, sends, (size_t)count * sizeof *sends, bad);
}

int puppet_post_receive(struct puppet *puppet, int qp, const struct receive *receives, int count, int *bad)
{
    return post(puppet, VERB_POST_RECEIVE, qp, receives, (size_t)count * sizeof *receives, bad);
}

int puppet_post_srq(struct puppet *puppet, int srq, const struct receive *receives, int count, int *bad)
{
    return post(puppet, VERB_POST_SRQ, srq, receives, (size_t)count * sizeof *receives, bad);
}

int puppet_poll(struct puppet *puppet, int cq, int most, struct ibv_wc *wc, int64_t milliseconds)
{
    puppet->call = (struct call){.id = {cq}, .number = {most, milliseconds}};
    int taken = make(puppet, VERB_POLL);
    memcpy(wc, payload, puppet->call.payload);
    return taken;
}

int puppet_poll_ex(struct puppet *puppet, int cq, int most, struct extended *entries, int64_t milliseconds)
{
    puppet->call = (struct call){.id = {cq}, .number = {most, milliseconds}};
    int taken = make(puppet, VERB_POLL_EX);
    memcpy(entries, payload, puppet->call.payload);
    return taken;
}

int puppet_arm(struct puppet *puppet, int cq, int solicited_only)
{
    puppet->call = (struct call){.id = {cq}, .number = {solicited_only}};
    return make(puppet, VERB_ARM);
}

int puppet_get_cq_event(struct puppet *puppet, int channel, int64_t milliseconds)
{
    puppet->call = (struct call){.id = {channel}, .number = {milliseconds}};
    make(puppet, VERB_GET_CQ_EVENT);
    return puppet->call.id[0];
}

void puppet_ack_cq_events(struct puppet *puppet, int cq, unsigned count)
{
    puppet->call = (struct call){.id = {cq}, .number = {count}};
    make(puppet, VERB_ACK_CQ_EVENTS);
}

int puppet_get_async_event(struct puppet *puppet, int64_t milliseconds)
{
    puppet->call = (struct call){.number = {milliseconds}};
    return make(puppet, VERB_GET_ASYNC_EVENT) ? -1 : (int)puppet->call.number[0];
}

void puppet_fill(struct puppet *puppet, uint64_t address, uint64_t length, uint64_t seed)
{
    puppet->call = (struct call){.number = {(int64_t)address, (int64_t)length, (int64_t)seed}};
    make(puppet, VERB_FILL);
}

int64_t puppet_compare(struct puppet *puppet, uint64_t address, uint64_t length, uint64_t seed, uint64_t offset)
{
    puppet->call = (struct call){.number = {(int64_t)address, (int64_t)length, (int64_t)seed, (int64_t)offset}};
    make(puppet, VERB_COMPARE);
    return puppet->call.number[0];
}

void puppet_set(struct puppet *puppet, uint64_t address, uint64_t length, uint8_t value)
{
    puppet->call = (struct call){.number = {(int64_t)address, (int64_t)length, value}};
    make(puppet, VERB_SET);
}

uint64_t puppet_peek(struct puppet *puppet, uint64_t address)
{
    puppet->call = (struct call){.number = {(int64_t)address}};
    make(puppet, VERB_PEEK);
    return (uint64_t)puppet->call.number[0];
}

void puppet_poke(struct puppet *puppet, uint64_t address, uint64_t value)
{
    puppet->call = (struct call){.number = {(int64_t)address, (int64_t)value}};
    make(puppet, VERB_POKE);
}
