/* The structs of libefa. The first 16 bytes are the same in all releases; what comes later is shown only where the
 * program's struct has it. */
#include <stddef.h>

#include "trace/members.h"
#include "trace/value.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void type(struct trace_line *line, bool *first, uint32_t value)
{
    text_add_member(line, first, "driver_qp_type");
    value_driver_qp_type(line, value);
}

void value_driver_qp_type(struct trace_line *line, uint32_t type)
{
    if (type == EFADV_QP_DRIVER_TYPE_SRD)
        text_add(line, "EFADV_QP_DRIVER_TYPE_SRD");
    else
        text_add_number(line, type);
}

void value_efadv_qp_init_attr(struct trace_line *line, const char *name, uint64_t value)
{
    static const char *const flags[] = {"UNSOLICITED_WRITE_RECV", "INLINE_WRITE"};
    const struct efadv_qp_init_attr *attr = (const struct efadv_qp_init_attr *)(uintptr_t)value;
    bool first = true;
    if (!member_begin(line, value))
        return;
    type(line, &first, attr->driver_qp_type);
    member_flags(line, &first, "flags", "EFADV_QP_FLAGS_", flags, COUNT(flags), attr->flags);
    member_number(line, &first, "sl", attr->sl);
    text_add_character(line, '}');
}

void value_efadv_cq_init_attr(struct trace_line *line, const char *name, uint64_t value)
{
    static const char *const flags[] = {"SGID", "IS_UNSOLICITED"};
    const struct efadv_cq_init_attr *attr = (const struct efadv_cq_init_attr *)(uintptr_t)value;
    bool first = true;
    if (!member_begin(line, value))
        return;
    member_flags(line, &first, "wc_flags", "EFADV_WC_EX_WITH_", flags, COUNT(flags), attr->wc_flags);
    text_add_character(line, '}');
}

void value_efadv_ah_attr(struct trace_line *line, const char *name, uint64_t value)
{
    bool first = true;
    if (!member_begin(line, value))
        return;
    member_number(line, &first, "ahn", ((const struct efadv_ah_attr *)(uintptr_t)value)->ahn);
    text_add_character(line, '}');
}

void value_efadv_sq_depth_attr(struct trace_line *line, const char *name, uint64_t value)
{
    static const char *const flags[] = {"INLINE_WRITE"};
    const struct efadv_sq_depth_attr *attr = (const struct efadv_sq_depth_attr *)(uintptr_t)value;
    bool first = true;
    if (!member_begin(line, value))
        return;
    member_flags(line, &first, "flags", "EFADV_SQ_DEPTH_ATTR_", flags, COUNT(flags), attr->flags);
    member_number(line, &first, "max_send_sge", attr->max_send_sge);
    member_number(line, &first, "max_rdma_sge", attr->max_rdma_sge);
    member_number(line, &first, "max_inline_data", attr->max_inline_data);
    text_add_character(line, '}');
}

void value_efadv_rq_depth_attr(struct trace_line *line, const char *name, uint64_t value)
{
    bool first = true;
    if (!member_begin(line, value))
        return;
    member_number(line, &first, "max_recv_sge", ((const struct efadv_rq_depth_attr *)(uintptr_t)value)->max_recv_sge);
    text_add_character(line, '}');
}

void value_efa_device(struct trace_line *line, const struct efadv_device_attr *attr, uint32_t inlen)
{
    static const char *const caps[] = {
        "RDMA_READ", "RNR_RETRY", "CQ_WITH_SGID", "RDMA_WRITE", "UNSOLICITED_WRITE_RECV", "CQ_WITH_EXT_MEM_DMABUF",
        "COMP_CNTR"};
    bool first = true;
    if (!member_begin(line, (uintptr_t)attr))
        return;
    member_number(line, &first, "max_sq_wr", attr->max_sq_wr);
    member_number(line, &first, "max_rq_wr", attr->max_rq_wr);
    member_number(line, &first, "max_sq_sge", attr->max_sq_sge);
    member_number(line, &first, "max_rq_sge", attr->max_rq_sge);
    member_number(line, &first, "inline_buf_size", attr->inline_buf_size);
    if (inlen >= sizeof *attr) {
        member_flags(line, &first, "device_caps", "EFADV_DEVICE_ATTR_CAPS_", caps, COUNT(caps), attr->device_caps);
        member_number(line, &first, "max_rdma_size", attr->max_rdma_size);
    }
    text_add_character(line, '}');
}
