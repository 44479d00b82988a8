/* The exports of libibverbs on devices and objects: the verbs of calls/verbs.def, each in a wrapper that keeps errno in
 * step (base/result.h) and calls the layers, if there are any (calls/calls.h). verbs/ does the work; the functions here
 * fit a verb to it where the two differ. */
#include <errno.h>
#include <stdlib.h>

#include "abi/around.h"
#include "abi/assembly.h"
#include "abi/bottom.h"
#include "abi/export.h"
#include "abi/operations.h"
#include "abi/ucma/attach.h"
#include "verbs/context/buffer.h"
#include "verbs/context/context_open.h"
#include "verbs/context/device.h"
#include "verbs/context/import.h"
#include "verbs/create/mr_register.h"
#include "verbs/create/mr_special.h"
#include "verbs/life/qp_create.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/object/domain.h"
#include "verbs/qp/comp_cntr.h"
#include "verbs/send/ah.h"

/* The header makes macros of these. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* -- devices and contexts */

struct ibv_device **export_get_device_list(int *count)
{
    attach();
    return context_device_list(count);
}

void export_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *export_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int export_get_device_index(struct ibv_device *device)
{
    return -1; /* the kernel has no number for this device */
}

static struct ibv_context *fill(struct context *context)
{
    if (!context)
        return NULL;
    operations_fill(context);
    /* Old programs reach these two exports through the table. */
    context->ibv.context.ops._compat_query_device = ibv_query_device;
    context->ibv.context.ops._compat_query_port = ibv_query_port;
    return &context->ibv.context;
}

struct ibv_context *export_open_device(struct ibv_device *device)
{
    return fill(context_open(device, &assembly_parts));
}

struct ibv_context *export_import_device(int cmd_fd)
{
    return fill(context_import(cmd_fd, &assembly_parts));
}

int export_close_device(struct ibv_context *context)
{
    context_close(context_of(context));
    return 0;
}

int export_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    device_query(context_of(context), attr);
    return 0;
}

/* Programs built before port_cap_flags2 existed pass a struct that ends before it. */
static int query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return operations_query_port(context, port, (struct ibv_port_attr *)attr,
                                 offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int refuse_flags(uint32_t flags)
{
    return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "flags are 0x%x", flags);
}

int export_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                        uint32_t flags, size_t size)
{
    return flags ? refuse_flags(flags) : device_query_gid_entry(context, port, index, entry, size);
}

ssize_t export_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most, uint32_t flags,
                               size_t size)
{
    return flags ? -refuse_flags(flags) : device_query_gid_table(context, entries, most, size);
}

/* -- domains and memory */

void export_unimport_pd(struct ibv_pd *pd)
{
    import_undo(&((struct pd *)pd)->object);
}

void export_unimport_mr(struct ibv_mr *mr)
{
    import_undo(&((struct mr *)mr)->object);
}

void export_unimport_dm(struct ibv_dm *dm)
{
    import_undo(&((struct dm *)dm)->object);
}

struct ibv_mr *export_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    return mr_register(pd, address, length, (uintptr_t)address, (unsigned)access);
}

struct ibv_mr *export_reg_mr_iova(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, int access)
{
    return mr_register(pd, address, length, iova, (unsigned)access);
}

/* ibv_reg_mr and ibv_reg_mr_iova are macros that may call this function, so a refusal has one of their names. */
struct ibv_mr *export_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    refusal_now.call = iova == (uintptr_t)address ? "ibv_reg_mr" : "ibv_reg_mr_iova";
    return mr_register(pd, address, length, iova, access);
}

struct ibv_mr *export_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                    int access)
{
    return mr_special_register_fd(pd, offset, length, iova, fd, (unsigned)access, NULL);
}

struct ibv_mr *export_reg_buf_mr(struct ibv_pd *pd, struct newer_buf *buffer, void *address, size_t length, int access)
{
    const struct newer_mr_init_attr attr = {
        .length = length, .access = access, .comp_mask = NEWER_MR_BUF | NEWER_MR_ADDR, .addr = address, .buf = buffer};
    return buffer_register(pd, &attr);
}

/* The memory of these buffers is the program's own, no dma-buf. */
int export_buf_dmabuf_fd(struct newer_buf *buffer)
{
    return refused_minus(refuse(ENODATA, REASON_BUFFER_NO_DMABUF, "the buffer at %p", buffer_memory(buffer)));
}

/* -- queues */

struct ibv_cq *export_create_cq(struct ibv_context *context, int entries, void *cq_context,
                                struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = (uint32_t)entries, /* a negative number is too large */
        .cq_context = cq_context,
        .channel = channel,
        .comp_vector = (uint32_t)comp_vector,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
    };
    return (struct ibv_cq *)cq_create(context, &attr);
}

struct ibv_qp *export_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex extended = {
        .qp_context = attr->qp_context,
        .send_cq = attr->send_cq,
        .recv_cq = attr->recv_cq,
        .srq = attr->srq,
        .cap = attr->cap,
        .qp_type = attr->qp_type,
        .sq_sig_all = attr->sq_sig_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pd,
    };
    struct ibv_qp *qp = qp_create(pd->context, &extended);
    if (qp)
        attr->cap = extended.cap;
    return qp;
}

struct ibv_ah *export_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    return ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL : ah_create(pd, &attr);
}

/* -- completion counters: a call for the work that succeeded, and its twin for the work that failed */

int export_set_comp_cntr(struct newer_comp_cntr *counter, uint64_t value)
{
    return comp_cntr_set(counter, COMP_CNTR_DONE, value);
}

int export_set_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t value)
{
    return comp_cntr_set(counter, COMP_CNTR_FAILED, value);
}

int export_inc_comp_cntr(struct newer_comp_cntr *counter, uint64_t amount)
{
    return comp_cntr_add(counter, COMP_CNTR_DONE, amount);
}

int export_inc_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t amount)
{
    return comp_cntr_add(counter, COMP_CNTR_FAILED, amount);
}

int export_read_comp_cntr(struct newer_comp_cntr *counter, uint64_t *value)
{
    return comp_cntr_read(counter, COMP_CNTR_DONE, value);
}

int export_read_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t *value)
{
    return comp_cntr_read(counter, COMP_CNTR_FAILED, value);
}

/* -- the functions below all layers, which do the work */

#define VERB(outcome, type, name, work, parameters, arguments)                                                         \
    static type bottom_##name parameters                                                                               \
    {                                                                                                                  \
        return work arguments;                                                                                         \
    }
#define NEWER_VERB VERB
#include "calls/verbs.def"

void bottom_of_exports(struct calls *calls)
{
#define VERB(outcome, type, name, work, parameters, arguments) calls->name = bottom_##name;
#define NEWER_VERB VERB
#include "calls/verbs.def"
}

/* -- the exports. The C name of a newer verb is ours and its exported name is in __asm__, so that the definition does
 * not clash with the declaration in an installed header that has the verb. */

#define VERB(outcome, type, name, work, parameters, arguments)                                                         \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : bottom_##name arguments);          \
    }
#define NEWER_VERB(outcome, type, name, work, parameters, arguments)                                                   \
    type newer_##name parameters __asm__(#name);                                                                       \
    EXPORT type newer_##name parameters                                                                                \
    {                                                                                                                  \
        const struct calls *around = calls_around();                                                                   \
        return AROUND_##outcome(#name, around ? calls_get(around, name) arguments : bottom_##name arguments);          \
    }
#define OLD_VERB(outcome, type, name, work, parameters, arguments)                                                     \
    EXPORT type name parameters                                                                                        \
    {                                                                                                                  \
        return work arguments;                                                                                         \
    }
#include "calls/verbs.def"
