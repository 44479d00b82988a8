#include "end_objects.h"
#include "mmap_hint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *end_object(struct end_objects *objects, enum kind kind, int number)
{
    if (number == NOBODY)
        return NULL;
    if (number < 0 || number >= OBJECTS || !objects->objects[kind][number]) {
        fprintf(stderr, "the test names object %d of kind %d, which does not exist\n", number, kind);
        abort();
    }
    return objects->objects[kind][number];
}

int end_enter(struct end_objects *objects, enum kind kind, void *object)
{
    if (!object)
        return NOBODY;
    for (int i = 0; i < OBJECTS; i++)
        if (!objects->objects[kind][i]) {
            objects->objects[kind][i] = object;
            return i;
        }
    fprintf(stderr, "the test makes more than %d objects of kind %d\n", OBJECTS, kind);
    abort();
}

static void made(struct end_objects *objects, struct call *call, enum kind kind, void *object)
{
    call->error = object ? 0 : errno;
    call->result = end_enter(objects, kind, object);
}

static void returned(struct call *call, int result)
{
    call->result = call->error = result;
}

static void open_device(struct end_objects *objects, struct call *call, void *payload)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!objects->context && list && count)
        objects->context = ibv_open_device(list[0]);
    call->error = objects->context ? 0 : errno;
    call->result = objects->context ? 0 : -1;
    if (list)
        ibv_free_device_list(list);
    if (objects->context)
        ibv_query_gid(objects->context, 1, (int)call->number[0], &call->about.gid);
}

static void memory(struct end_objects *objects, struct call *call, void *payload)
{
    size_t length = (size_t)call->number[0];
    void *address = mmap(mmap_hint(), length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    call->error = address == MAP_FAILED ? errno : 0;
    call->number[0] = (intptr_t)address;
    for (int i = 0; i < OBJECTS; i++)
        if (!objects->memory[i].address) {
            objects->memory[i].address = address;
            objects->memory[i].length = length;
            return;
        }
    abort();
}

/* A file of no length under it: an access there is past its end. By the system call itself, since ThreadSanitizer takes
 * mmap and munmap for writes, which race with what peers do there: that is what is tested. */
static void truncate_under(void *address, size_t length)
{
    int file = memfd_create("lost", MFD_CLOEXEC);
    if (file < 0 || syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == -1)
        abort();
    close(file);
}

static void lose(struct end_objects *objects, struct call *call, void *payload)
{
    void *address = (void *)(intptr_t)call->number[0];
    size_t length = (size_t)call->number[1];
    if (call->number[2] == LOSS_TRUNCATED) {
        truncate_under(address, length);
    } else if (call->number[2] == LOSS_UNMAPPED) {
        syscall(SYS_munmap, address, length);
        objects->lost.address = address;
        objects->lost.length = length;
    } else {
        mprotect(address, length, call->number[2] == LOSS_PROTECTED ? PROT_NONE : PROT_READ);
    }
}

static void alloc_pd(struct end_objects *objects, struct call *call, void *payload)
{
    made(objects, call, KIND_PD, ibv_alloc_pd(objects->context));
}

static void tell_keys(struct call *call, const struct ibv_mr *mr)
{
    if (!mr)
        return;
    call->about.lkey = mr->lkey;
    call->about.rkey = mr->rkey;
}

static void reg_mr(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_pd *pd = end_object(objects, KIND_PD, call->id[0]);
    void *address = (void *)(intptr_t)call->number[0];
    size_t length = (size_t)call->number[1];
    int access = (int)call->number[2];
    struct ibv_mr *mr = call->id[1] ? ibv_reg_mr_iova(pd, address, length, (uint64_t)call->number[3], access)
                                    : ibv_reg_mr(pd, address, length, access);
    made(objects, call, KIND_MR, mr);
    tell_keys(call, mr);
}

static void rereg_mr(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_mr *mr = end_object(objects, KIND_MR, call->id[0]);
    errno = 0;
    call->result = ibv_rereg_mr(mr, (int)call->number[3], end_object(objects, KIND_PD, call->id[1]),
                                (void *)(intptr_t)call->number[0], (size_t)call->number[1], (int)call->number[2]);
    call->error = call->result ? errno : 0;
    tell_keys(call, mr);
}

static void create_channel(struct end_objects *objects, struct call *call, void *payload)
{
    made(objects, call, KIND_CHANNEL, ibv_create_comp_channel(objects->context));
}

static void create_cq(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_cq *cq = ibv_create_cq(objects->context, (int)call->number[0], (void *)(intptr_t)call->number[2],
                                      end_object(objects, KIND_CHANNEL, call->id[0]), (int)call->number[1]);
    made(objects, call, KIND_CQ, cq);
    call->number[0] = cq ? cq->cqe : 0;
}

static void create_cq_ex(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_cq_init_attr_ex attr = call->cq;
    attr.channel = end_object(objects, KIND_CHANNEL, call->id[0]);
    struct ibv_cq_ex *cq = ibv_create_cq_ex(objects->context, &attr);
    made(objects, call, KIND_CQ, cq);
    call->number[0] = cq ? cq->cqe : 0;
    if (cq)
        objects->cq_flags[call->result] = attr.wc_flags;
}

static void resize_cq(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_cq *cq = end_object(objects, KIND_CQ, call->id[0]);
    returned(call, ibv_resize_cq(cq, (int)call->number[0]));
    call->number[0] = cq->cqe;
}

static void create_srq(struct end_objects *objects, struct call *call, void *payload)
{
    made(objects, call, KIND_SRQ, ibv_create_srq(end_object(objects, KIND_PD, call->id[0]), &call->srq));
}

static void modify_srq(struct end_objects *objects, struct call *call, void *payload)
{
    returned(call, ibv_modify_srq(end_object(objects, KIND_SRQ, call->id[0]), &call->srq.attr, (int)call->number[0]));
}

static void query_srq(struct end_objects *objects, struct call *call, void *payload)
{
    returned(call, ibv_query_srq(end_object(objects, KIND_SRQ, call->id[0]), &call->srq.attr));
}

static void create_qp(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_qp_init_attr *attr = &call->qp_init;
    attr->send_cq = end_object(objects, KIND_CQ, call->id[1]);
    attr->recv_cq = end_object(objects, KIND_CQ, call->id[2]);
    attr->srq = end_object(objects, KIND_SRQ, call->id[3]);
    struct ibv_qp *qp = ibv_create_qp(end_object(objects, KIND_PD, call->id[0]), attr);
    made(objects, call, KIND_QP, qp);
    call->number[0] = qp ? qp->qp_num : 0;
}

static void modify_qp(struct end_objects *objects, struct call *call, void *payload)
{
    returned(call, ibv_modify_qp(end_object(objects, KIND_QP, call->id[0]), &call->qp.attr, call->qp.mask));
}

static void query_qp(struct end_objects *objects, struct call *call, void *payload)
{
    returned(call,
             ibv_query_qp(end_object(objects, KIND_QP, call->id[0]), &call->qp.attr, call->qp.mask, &call->qp.init));
}

static void create_ah(struct end_objects *objects, struct call *call, void *payload)
{
    made(objects, call, KIND_AH, ibv_create_ah(end_object(objects, KIND_PD, call->id[0]), &call->ah));
}

static void attach(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_qp *qp = end_object(objects, KIND_QP, call->id[0]);
    returned(call, call->verb == VERB_ATTACH ? ibv_attach_mcast(qp, &call->about.gid, 0)
                                             : ibv_detach_mcast(qp, &call->about.gid, 0));
}

static int destroy_object(enum kind kind, void *object)
{
    switch (kind) {
    case KIND_PD:
        return ibv_dealloc_pd(object);
    case KIND_MR:
        return ibv_dereg_mr(object);
    case KIND_CHANNEL:
        return ibv_destroy_comp_channel(object);
    case KIND_CQ:
        return ibv_destroy_cq(object);
    case KIND_SRQ:
        return ibv_destroy_srq(object);
    case KIND_QP:
        return ibv_destroy_qp(object);
    default:
        return ibv_destroy_ah(object);
    }
}

static void destroy(struct end_objects *objects, struct call *call, void *payload)
{
    enum kind kind = (enum kind)call->number[0];
    returned(call, destroy_object(kind, end_object(objects, kind, call->id[0])));
    if (!call->result)
        objects->objects[kind][call->id[0]] = NULL;
}

static void clear_kind(struct end_objects *objects, struct call *call, enum kind kind)
{
    for (int i = 0; i < OBJECTS; i++) {
        if (!objects->objects[kind][i])
            continue;
        if (kind == KIND_CQ) {
            ibv_ack_cq_events(objects->objects[kind][i], objects->unacknowledged[i]);
            objects->unacknowledged[i] = 0;
        }
        int error = destroy_object(kind, objects->objects[kind][i]);
        if (error && !call->error)
            call->error = error;
        objects->objects[kind][i] = NULL;
    }
}

/* The part that was lost may belong to another mapping by now, so it stays. */
static void unmap_around(char *address, size_t length, const char *lost, size_t lost_length)
{
    size_t before = (uintptr_t)lost - (uintptr_t)address;
    if (!lost || before >= length) {
        munmap(address, length);
        return;
    }
    if (before)
        munmap(address, before);
    if (length - before > lost_length)
        munmap(address + before + lost_length, length - before - lost_length);
}

static void clear_memory(struct end_objects *objects)
{
    for (int i = 0; i < OBJECTS; i++)
        if (objects->memory[i].address) {
            unmap_around(objects->memory[i].address, objects->memory[i].length, objects->lost.address,
                         objects->lost.length);
            objects->memory[i].address = NULL;
        }
    objects->lost.address = NULL;
}

static void clear(struct end_objects *objects, struct call *call, void *payload)
{
    static const enum kind order[] = {KIND_QP, KIND_AH, KIND_SRQ, KIND_CQ, KIND_CHANNEL, KIND_MR, KIND_PD};
    call->error = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        clear_kind(objects, call, order[i]);
    clear_memory(objects);
    if (objects->context && ibv_close_device(objects->context) && !call->error)
        call->error = errno;
    objects->context = NULL;
    call->result = call->error;
}

end_verb *const end_object_verbs[VERBS] = {
    [VERB_OPEN] = open_device,      [VERB_CLEAR] = clear,
    [VERB_MEMORY] = memory,         [VERB_LOSE] = lose,
    [VERB_ALLOC_PD] = alloc_pd,     [VERB_REG_MR] = reg_mr,
    [VERB_REREG_MR] = rereg_mr,     [VERB_CREATE_CHANNEL] = create_channel,
    [VERB_CREATE_CQ] = create_cq,   [VERB_CREATE_CQ_EX] = create_cq_ex,
    [VERB_RESIZE_CQ] = resize_cq,   [VERB_CREATE_SRQ] = create_srq,
    [VERB_MODIFY_SRQ] = modify_srq, [VERB_QUERY_SRQ] = query_srq,
    [VERB_CREATE_QP] = create_qp,   [VERB_MODIFY_QP] = modify_qp,
    [VERB_QUERY_QP] = query_qp,     [VERB_CREATE_AH] = create_ah,
    [VERB_ATTACH] = attach,         [VERB_DETACH] = attach,
    [VERB_DESTROY] = destroy,
};

void end_execute(struct end_objects *objects, struct call *call, void *payload)
{
    end_verb *verb = end_object_verbs[call->verb];
    if (!verb)
        verb = end_data_verbs[call->verb];
    verb(objects, call, payload);
}
