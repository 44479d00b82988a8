#include "trace/value.h"

#include <arpa/inet.h>
#include <string.h>

#include "calls/qp_types.h"
#include "events/words.h"
#include "trace/members.h"

enum { MOST_ELEMENTS = 4, MOST_REQUESTS = 4 };

/* Writes a mask by the names of its bits. False: the argument is no mask whose bits have names. */
static bool add_mask(struct trace_line *line, const char *name, unsigned value)
{
    char words[WORDS_SIZE];
    if (!strcmp(name, "access"))
        text_add(line, words_access(value, words));
    else if (!strcmp(name, "mask") || !strcmp(name, "attr_mask"))
        text_add(line, value ? words_attributes(value, words) : "0");
    else if (!strcmp(name, "srq_mask") && value && value <= (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        text_add(line,
                 (const char *[]){"", "IBV_SRQ_MAX_WR", "IBV_SRQ_LIMIT", "IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT"}[value]);
    else
        return false;
    return true;
}

void value_signed(struct trace_line *line, const char *name, uint64_t value)
{
    if (!add_mask(line, name, (unsigned)value))
        text_add_signed(line, (int64_t)value);
}

void value_unsigned(struct trace_line *line, const char *name, uint64_t value)
{
    static const char *const in_hex[] = {"access", "address", "iova",       "rkey",
                                         "lkey",   "flags",   "remote_qpn", "remote_qkey"};
    if (add_mask(line, name, (unsigned)value))
        return;
    if (!strcmp(name, "driver_qp_type")) {
        value_driver_qp_type(line, (uint32_t)value);
        return;
    }
    for (size_t i = 0; i < sizeof in_hex / sizeof *in_hex; i++)
        if (!strcmp(name, in_hex[i])) {
            text_add_hex(line, value);
            return;
        }
    text_add_number(line, value);
}

void value_pointer(struct trace_line *line, const char *name, uint64_t value)
{
    if (value)
        text_add_hex(line, value);
    else
        text_add(line, "NULL");
}

void value_add(struct trace_line *line, const char *name, struct calls_subject subject, value_writer *write,
               uint64_t value)
{
    if (!subject.kind || !value) {
        write(line, name, value);
        return;
    }
    text_add(line, subject.kind);
    text_add_character(line, ' ');
    if (*subject.kind == 'q' && !strcmp(subject.kind, "qp"))
        text_add_hex(line, subject.number);
    else if (*subject.kind == 'd' && !strcmp(subject.kind, "device"))
        text_add(line, ((const struct ibv_device *)(uintptr_t)value)->name);
    else
        text_add_number(line, subject.number);
}

void value_argument(struct trace_line *line, const char *name, struct calls_subject subject, value_writer *write,
                    uint64_t value)
{
    text_add_name(line, name);
    value_add(line, name, subject, write, value);
}

/* --- structs */

static void queue(struct trace_line *line, bool *first, const char *name, const struct ibv_cq *cq)
{
    text_add_member(line, first, name);
    value_add(line, name, CALLS_SUBJECT_IF((struct ibv_cq *)cq), value_pointer, (uintptr_t)cq);
}

static void elements(struct trace_line *line, bool *first, const struct ibv_sge *list, int count)
{
    text_add_member(line, first, "sg_list");
    text_add_character(line, '[');
    for (int i = 0; list && i < count; i++) {
        bool inner = true;
        text_add(line, i ? ", {" : "{");
        if (i == MOST_ELEMENTS) {
            text_add(line, "...}");
            break;
        }
        member_hex(line, &inner, "addr", list[i].addr);
        member_number(line, &inner, "length", list[i].length);
        member_hex(line, &inner, "lkey", list[i].lkey);
        text_add_character(line, '}');
    }
    text_add_character(line, ']');
}

static void send_flags(struct trace_line *line, bool *first, unsigned flags)
{
    static const char *const names[] = {"FENCE", "SIGNALED", "SOLICITED", "INLINE", "IP_CSUM"};
    member_flags(line, first, "send_flags", "IBV_SEND_", names, sizeof names / sizeof *names, flags);
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_remote(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_RDMA_READ;
}

/* Adds the receiver of a datagram; other operations have the address of the peer's memory in its place. */
static void receiver(struct trace_line *line, bool *first, const struct ibv_send_wr *wr)
{
    text_add_member(line, first, "ah");
    value_add(line, "ah", CALLS_SUBJECT_IF(wr->wr.ud.ah), value_pointer, (uintptr_t)wr->wr.ud.ah);
    member_hex(line, first, "remote_qpn", wr->wr.ud.remote_qpn);
    member_hex(line, first, "remote_qkey", wr->wr.ud.remote_qkey);
}

static bool has_immediate(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void remote(struct trace_line *line, bool *first, const struct ibv_send_wr *wr)
{
    if (has_immediate(wr->opcode))
        member_hex(line, first, "imm_data", ntohl(wr->imm_data));
    if (wr->opcode == IBV_WR_SEND_WITH_INV)
        member_hex(line, first, "invalidate_rkey", wr->invalidate_rkey);
    if (is_remote(wr->opcode)) {
        member_hex(line, first, "remote_addr", wr->wr.rdma.remote_addr);
        member_hex(line, first, "rkey", wr->wr.rdma.rkey);
    } else if (is_atomic(wr->opcode)) {
        member_hex(line, first, "remote_addr", wr->wr.atomic.remote_addr);
        member_hex(line, first, "rkey", wr->wr.atomic.rkey);
        member_number(line, first, "compare_add", wr->wr.atomic.compare_add);
        if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
            member_number(line, first, "swap", wr->wr.atomic.swap);
    }
}

void value_send_requests(struct trace_line *line, const struct ibv_send_wr *wr, bool datagrams)
{
    bool none = !wr;
    for (unsigned i = 0; wr && i < MOST_REQUESTS; i++, wr = wr->next) {
        bool first = true;
        text_add(line, i ? ", {" : "{");
        member_number(line, &first, "wr_id", wr->wr_id);
        member_word(line, &first, "opcode", words_opcode(wr->opcode));
        elements(line, &first, wr->sg_list, wr->num_sge);
        send_flags(line, &first, wr->send_flags);
        remote(line, &first, wr);
        if (datagrams && !is_remote(wr->opcode) && !is_atomic(wr->opcode))
            receiver(line, &first, wr);
        text_add_character(line, '}');
    }
    text_add(line, wr ? ", ..." : none ? "NULL" : "");
}

void value_ibv_recv_wr(struct trace_line *line, const char *name, uint64_t value)
{
    const struct ibv_recv_wr *wr = (const struct ibv_recv_wr *)(uintptr_t)value;
    for (unsigned i = 0; wr && i < MOST_REQUESTS; i++, wr = wr->next) {
        bool first = true;
        text_add(line, i ? ", {" : "{");
        member_number(line, &first, "wr_id", wr->wr_id);
        elements(line, &first, wr->sg_list, wr->num_sge);
        text_add_character(line, '}');
    }
    text_add(line, wr ? ", ..." : value ? "" : "NULL");
}

static void capacities(struct trace_line *line, bool *first, const struct ibv_qp_cap *cap)
{
    member_number(line, first, "max_send_wr", cap->max_send_wr);
    member_number(line, first, "max_recv_wr", cap->max_recv_wr);
    member_number(line, first, "max_send_sge", cap->max_send_sge);
    member_number(line, first, "max_recv_sge", cap->max_recv_sge);
    member_number(line, first, "max_inline_data", cap->max_inline_data);
}

/* Writes members that struct ibv_qp_init_attr has, too. */
static void queue_pair(struct trace_line *line, const struct ibv_qp_init_attr_ex *attr)
{
    bool first = true;
    member_word(line, &first, "qp_type", qp_type_word(attr->qp_type));
    queue(line, &first, "send_cq", attr->send_cq);
    queue(line, &first, "recv_cq", attr->recv_cq);
    if (attr->srq) {
        text_add_member(line, &first, "srq");
        value_add(line, "srq", CALLS_SUBJECT_IF(attr->srq), value_pointer, (uintptr_t)attr->srq);
    }
    capacities(line, &first, &attr->cap);
    member_number(line, &first, "sq_sig_all", (unsigned)attr->sq_sig_all);
    text_add_character(line, '}');
}

void value_ibv_qp_init_attr_ex(struct trace_line *line, const char *name, uint64_t value)
{
    if (member_begin(line, value))
        queue_pair(line, (const struct ibv_qp_init_attr_ex *)(uintptr_t)value);
}

void value_ibv_qp_init_attr(struct trace_line *line, const char *name, uint64_t value)
{
    const struct ibv_qp_init_attr *attr = (const struct ibv_qp_init_attr *)(uintptr_t)value;
    if (!member_begin(line, value))
        return;
    struct ibv_qp_init_attr_ex whole = {.send_cq = attr->send_cq,
                                        .recv_cq = attr->recv_cq,
                                        .srq = attr->srq,
                                        .cap = attr->cap,
                                        .qp_type = attr->qp_type,
                                        .sq_sig_all = attr->sq_sig_all};
    queue_pair(line, &whole);
}

static void shared_receives(struct trace_line *line, const struct ibv_srq_attr *attr)
{
    bool first = true;
    member_number(line, &first, "max_wr", attr->max_wr);
    member_number(line, &first, "max_sge", attr->max_sge);
    member_number(line, &first, "srq_limit", attr->srq_limit);
    text_add_character(line, '}');
}

void value_ibv_srq_attr(struct trace_line *line, const char *name, uint64_t value)
{
    if (member_begin(line, value))
        shared_receives(line, (const struct ibv_srq_attr *)(uintptr_t)value);
}

void value_ibv_srq_init_attr(struct trace_line *line, const char *name, uint64_t value)
{
    if (member_begin(line, value))
        shared_receives(line, &((const struct ibv_srq_init_attr *)(uintptr_t)value)->attr);
}

void value_ibv_srq_init_attr_ex(struct trace_line *line, const char *name, uint64_t value)
{
    if (member_begin(line, value))
        shared_receives(line, &((const struct ibv_srq_init_attr_ex *)(uintptr_t)value)->attr);
}

void value_ibv_cq_init_attr_ex(struct trace_line *line, const char *name, uint64_t value)
{
    const struct ibv_cq_init_attr_ex *attr = (const struct ibv_cq_init_attr_ex *)(uintptr_t)value;
    bool first = true;
    if (!member_begin(line, value))
        return;
    member_number(line, &first, "cqe", attr->cqe);
    member_hex(line, &first, "wc_flags", attr->wc_flags);
    text_add_character(line, '}');
}

void value_gid(struct trace_line *line, const char *name, uint64_t value)
{
    char words[WORDS_GID];
    if (value && line->shallow)
        text_add_hex(line, value);
    else
        text_add(line, value ? words_gid((const union ibv_gid *)(uintptr_t)value, words) : "NULL");
}

static void address(struct trace_line *line, const struct ibv_ah_attr *attr)
{
    bool first = true;
    char words[WORDS_GID];
    text_add_character(line, '{');
    if (attr->is_global) {
        member_word(line, &first, "dgid", words_gid(&attr->grh.dgid, words));
        member_number(line, &first, "sgid_index", attr->grh.sgid_index);
    } else {
        member_number(line, &first, "dlid", attr->dlid);
    }
    member_number(line, &first, "port_num", attr->port_num);
    text_add_character(line, '}');
}

void value_ibv_ah_attr(struct trace_line *line, const char *name, uint64_t value)
{
    if (value)
        address(line, (const struct ibv_ah_attr *)(uintptr_t)value);
    else
        text_add(line, "NULL");
}

/* --- what needs another argument of its call */

/* The attributes, in the order of the mask's bits. */
#define ATTRIBUTES(NUMBER, HEX)                                                                                        \
    NUMBER(IBV_QP_PKEY_INDEX, pkey_index)                                                                              \
    NUMBER(IBV_QP_PORT, port_num)                                                                                      \
    HEX(IBV_QP_QKEY, qkey)                                                                                             \
    NUMBER(IBV_QP_TIMEOUT, timeout)                                                                                    \
    NUMBER(IBV_QP_RETRY_CNT, retry_cnt)                                                                                \
    NUMBER(IBV_QP_RNR_RETRY, rnr_retry)                                                                                \
    NUMBER(IBV_QP_RQ_PSN, rq_psn)                                                                                      \
    NUMBER(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic)                                                                     \
    NUMBER(IBV_QP_MIN_RNR_TIMER, min_rnr_timer)                                                                        \
    NUMBER(IBV_QP_SQ_PSN, sq_psn)                                                                                      \
    NUMBER(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)                                                              \
    HEX(IBV_QP_DEST_QPN, dest_qp_num)                                                                                  \
    NUMBER(IBV_QP_RATE_LIMIT, rate_limit)

void value_qp_attributes(struct trace_line *line, const struct ibv_qp_attr *attr, unsigned mask)
{
    bool first = true;
    char words[WORDS_SIZE];
    if (!member_begin(line, (uintptr_t)attr))
        return;
    if (mask & IBV_QP_STATE)
        member_word(line, &first, "qp_state", words_state(attr->qp_state));
    if (mask & IBV_QP_ACCESS_FLAGS)
        member_word(line, &first, "qp_access_flags", words_access(attr->qp_access_flags, words));
    if (mask & IBV_QP_AV) {
        text_add_member(line, &first, "ah_attr");
        address(line, &attr->ah_attr);
    }
    if (mask & IBV_QP_PATH_MTU)
        member_number(line, &first, "path_mtu", attr->path_mtu ? 128u << attr->path_mtu : 0);
#define NUMBER(bit, member)                                                                                            \
    if (mask & (bit))                                                                                                  \
        member_number(line, &first, #member, attr->member);
#define HEX(bit, member)                                                                                               \
    if (mask & (bit))                                                                                                  \
        member_hex(line, &first, #member, attr->member);
    ATTRIBUTES(NUMBER, HEX)
#undef NUMBER
#undef HEX
    text_add_character(line, '}');
}

static const char *completion_word(enum ibv_wc_opcode opcode)
{
    static const struct {
        enum ibv_wc_opcode opcode;
        const char *word;
    } words[] = {{IBV_WC_SEND, "SEND"},
                 {IBV_WC_RDMA_WRITE, "RDMA_WRITE"},
                 {IBV_WC_RDMA_READ, "RDMA_READ"},
                 {IBV_WC_COMP_SWAP, "COMP_SWAP"},
                 {IBV_WC_FETCH_ADD, "FETCH_ADD"},
                 {IBV_WC_BIND_MW, "BIND_MW"},
                 {IBV_WC_LOCAL_INV, "LOCAL_INV"},
                 {IBV_WC_RECV, "RECV"},
                 {IBV_WC_RECV_RDMA_WITH_IMM, "RECV_RDMA_WITH_IMM"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].opcode == opcode)
            return words[i].word;
    return "?";
}

static void completion(struct trace_line *line, const struct ibv_wc *wc)
{
    bool first = true;
    text_add_character(line, '{');
    member_number(line, &first, "wr_id", wc->wr_id);
    member_word(line, &first, "status", words_status(wc->status));
    if (wc->status == IBV_WC_SUCCESS) { /* else they mean nothing */
        text_add(line, ", opcode=IBV_WC_");
        text_add(line, completion_word(wc->opcode));
        member_number(line, &first, "byte_len", wc->byte_len);
        if (wc->wc_flags & IBV_WC_WITH_IMM)
            member_hex(line, &first, "imm_data", ntohl(wc->imm_data));
        if (wc->wc_flags & IBV_WC_GRH)
            text_add(line, ", wc_flags=IBV_WC_GRH");
    } else {
        member_number(line, &first, "vendor_err", wc->vendor_err);
    }
    member_hex(line, &first, "qp_num", wc->qp_num);
    text_add_character(line, '}');
}

void value_completions(struct trace_line *line, const struct ibv_wc *list, int count)
{
    text_add(line, " [");
    for (int i = 0; i < count && i < MOST_REQUESTS; i++) {
        text_add(line, i ? ", " : "");
        completion(line, &list[i]);
    }
    text_add(line, count > MOST_REQUESTS ? ", ...]" : "]");
}
