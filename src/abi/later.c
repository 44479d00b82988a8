#include "abi/later.h"

#include <errno.h>

#include "abi/export.h"
#include "base/result.h"
#include "verbs/memory/dmah.h"
#include "verbs/object/buffer.h"
#include "verbs/object/device.h"
#include "verbs/queue/comp_cntr.h"

EXPORT struct ibv_mr *later_reg_mr_ex(struct ibv_pd *pd, struct newer_mr_init_attr *attr)
{
    return RESULT_pointer(buffer_register(pd, attr));
}

EXPORT struct newer_dmah *later_alloc_dmah(struct ibv_context *context, struct newer_dmah_init_attr *attr)
{
    return RESULT_pointer(dmah_allocate(context, attr));
}

EXPORT int later_dealloc_dmah(struct newer_dmah *dmah)
{
    return RESULT_code(dmah_deallocate(dmah));
}

EXPORT int later_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    return RESULT_code(device_query_port_speed(context, port, speed));
}

EXPORT void *later_alloc_buf(struct ibv_pd *pd, size_t size, struct newer_buf **buffer)
{
    return RESULT_pointer(buffer_allocate(pd, size, buffer));
}

EXPORT void later_free_buf(struct newer_buf *buffer)
{
    RESULT_nothing(buffer_free(buffer));
}

EXPORT struct ibv_mr *later_reg_buf_mr(struct ibv_pd *pd, struct newer_buf *buffer, void *address, size_t length,
                                       int access)
{
    const struct newer_mr_init_attr attr = {
        .length = length, .access = access, .comp_mask = NEWER_MR_BUF | NEWER_MR_ADDR, .addr = address, .buf = buffer};
    return RESULT_pointer(buffer_register(pd, &attr));
}

EXPORT int later_export_buf_dmabuf_fd(struct newer_buf *buffer)
{
    return errno = ENODATA, -1;
}

EXPORT int later_query_comp_cntr_caps(struct ibv_context *context, struct newer_comp_cntr_caps *caps, size_t size)
{
    return RESULT_code(comp_cntr_query_caps(context, caps, size));
}

EXPORT struct newer_comp_cntr *later_create_comp_cntr(struct ibv_context *context,
                                                      struct newer_comp_cntr_init_attr *attr)
{
    return RESULT_pointer(comp_cntr_create(context, attr));
}

EXPORT int later_destroy_comp_cntr(struct newer_comp_cntr *counter)
{
    return RESULT_code(comp_cntr_destroy(counter));
}

EXPORT int later_set_comp_cntr(struct newer_comp_cntr *counter, uint64_t value)
{
    return RESULT_code(comp_cntr_set(counter, COMP_CNTR_DONE, value));
}

EXPORT int later_set_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t value)
{
    return RESULT_code(comp_cntr_set(counter, COMP_CNTR_FAILED, value));
}

EXPORT int later_inc_comp_cntr(struct newer_comp_cntr *counter, uint64_t amount)
{
    return RESULT_code(comp_cntr_add(counter, COMP_CNTR_DONE, amount));
}

EXPORT int later_inc_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t amount)
{
    return RESULT_code(comp_cntr_add(counter, COMP_CNTR_FAILED, amount));
}

EXPORT int later_read_comp_cntr(struct newer_comp_cntr *counter, uint64_t *value)
{
    return RESULT_code(comp_cntr_read(counter, COMP_CNTR_DONE, value));
}

EXPORT int later_read_err_comp_cntr(struct newer_comp_cntr *counter, uint64_t *value)
{
    return RESULT_code(comp_cntr_read(counter, COMP_CNTR_FAILED, value));
}

EXPORT int later_qp_attach_comp_cntr(struct ibv_qp *qp, struct newer_comp_cntr *counter,
                                     struct newer_qp_attach_comp_cntr_attr *attr)
{
    return RESULT_code(comp_cntr_attach(qp, counter, attr));
}
