#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "end_objects.h"

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Links a list that arrived as an array; number[0] returns the index of the bad one, or -1 without a bad one. */
static void post_send(struct end_objects *objects, struct call *call, void *payload)
{
    struct send *sends = payload;
    size_t count = call->payload / sizeof *sends;
    struct ibv_qp *qp = end_object(objects, KIND_QP, call->id[0]);
    struct ibv_send_wr *bad = NULL;
    for (size_t i = 0; i < count; i++) {
        sends[i].wr.next = i + 1 < count ? &sends[i + 1].wr : NULL;
        sends[i].wr.sg_list = sends[i].wr.num_sge > 0 ? sends[i].sge : NULL;
        if (qp->qp_type == IBV_QPT_UD)
            sends[i].wr.wr.ud.ah = end_object(objects, KIND_AH, sends[i].ah);
    }
    call->result = call->error = ibv_post_send(qp, &sends[0].wr, &bad);
    call->number[0] = bad ? (struct send *)bad - sends : -1;
    call->payload = 0;
}

static void post_receive(struct end_objects *objects, struct call *call, void *payload)
{
    struct receive *receives = payload;
    size_t count = call->payload / sizeof *receives;
    struct ibv_recv_wr *bad = NULL;
    for (size_t i = 0; i < count; i++) {
        receives[i].wr.next = i + 1 < count ? &receives[i + 1].wr : NULL;
        receives[i].wr.sg_list = receives[i].wr.num_sge > 0 ? receives[i].sge : NULL;
    }
    call->result = call->verb == VERB_POST_SRQ
                       ? ibv_post_srq_recv(end_object(objects, KIND_SRQ, call->id[0]), &receives[0].wr, &bad)
                       : ibv_post_recv(end_object(objects, KIND_QP, call->id[0]), &receives[0].wr, &bad);
    call->error = call->result;
    call->number[0] = bad ? (struct receive *)bad - receives : -1;
    call->payload = 0;
}

/* Polls until `most` entries arrived or the time is over; `take` takes at most its `most` of them. */
static void poll_with(struct end_objects *objects, struct call *call, void *payload, size_t size,
                      int (*take)(struct end_objects *, int cq, int most, void *))
{
    int most = (int)call->number[0], taken = 0, more;
    int64_t until = milliseconds() + call->number[1];
    if ((size_t)most > PAYLOAD_MAX / size)
        most = PAYLOAD_MAX / (int)size;
    for (unsigned round = 0;; round++) {
        more = take(objects, call->id[0], most - taken, (char *)payload + (size_t)taken * size);
        if (more < 0 || (taken += more) == most)
            break;
        if (!more && (round & 63) == 63) {
            if (milliseconds() >= until)
                break;
            sched_yield();
        }
    }
    call->result = more < 0 ? more : taken;
    call->error = 0;
    call->payload = (uint32_t)((size_t)taken * size);
}

static int take_classic(struct end_objects *objects, int cq, int most, void *to)
{
    return ibv_poll_cq(end_object(objects, KIND_CQ, cq), most, to);
}

static void show(struct ibv_cq_ex *cq, uint64_t flags, struct extended *to)
{
    memset(to, 0, sizeof *to);
    to->wc.wr_id = cq->wr_id;
    to->wc.status = cq->status;
    to->wc.opcode = ibv_wc_read_opcode(cq);
    to->wc.vendor_err = ibv_wc_read_vendor_err(cq);
    to->wc.wc_flags = ibv_wc_read_wc_flags(cq);
    if (flags & IBV_WC_EX_WITH_BYTE_LEN)
        to->wc.byte_len = ibv_wc_read_byte_len(cq);
    if (flags & IBV_WC_EX_WITH_IMM)
        to->wc.imm_data = ibv_wc_read_imm_data(cq);
    if (flags & IBV_WC_EX_WITH_QP_NUM)
        to->wc.qp_num = ibv_wc_read_qp_num(cq);
    if (flags & IBV_WC_EX_WITH_SRC_QP)
        to->wc.src_qp = ibv_wc_read_src_qp(cq);
    if (flags & IBV_WC_EX_WITH_SLID)
        to->wc.slid = (uint16_t)ibv_wc_read_slid(cq);
    if (flags & IBV_WC_EX_WITH_SL)
        to->wc.sl = ibv_wc_read_sl(cq);
    if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        to->wc.dlid_path_bits = ibv_wc_read_dlid_path_bits(cq);
    if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        to->timestamp = ibv_wc_read_completion_ts(cq);
    if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        to->wallclock = ibv_wc_read_completion_wallclock_ns(cq);
}

static int take_extended(struct end_objects *objects, int number, int most, void *to)
{
    struct ibv_cq_ex *cq = end_object(objects, KIND_CQ, number);
    struct extended *entries = to;
    struct ibv_poll_cq_attr attr = {0};
    int taken = 0, error = ibv_start_poll(cq, &attr);
    if (error)
        return error == ENOENT ? 0 : -error;
    while (!error && taken < most) {
        show(cq, objects->cq_flags[number], &entries[taken++]);
        error = taken < most ? ibv_next_poll(cq) : 0;
    }
    ibv_end_poll(cq);
    return error && error != ENOENT ? -error : taken;
}

static void poll_classic(struct end_objects *objects, struct call *call, void *payload)
{
    poll_with(objects, call, payload, sizeof(struct ibv_wc), take_classic);
}

static void poll_extended(struct end_objects *objects, struct call *call, void *payload)
{
    poll_with(objects, call, payload, sizeof(struct extended), take_extended);
}

static void arm(struct end_objects *objects, struct call *call, void *payload)
{
    call->result = call->error = ibv_req_notify_cq(end_object(objects, KIND_CQ, call->id[0]), (int)call->number[0]);
}

static bool is_readable(int fd, int64_t time)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;
    do
        ready = poll(&wait, 1, (int)time);
    while (ready < 0 && errno == EINTR);
    return ready == 1;
}

static int number_of(struct end_objects *objects, enum kind kind, const void *object)
{
    for (int i = 0; i < OBJECTS; i++)
        if (objects->objects[kind][i] == object)
            return i;
    return NOBODY;
}

static void get_cq_event(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_comp_channel *channel = end_object(objects, KIND_CHANNEL, call->id[0]);
    struct ibv_cq *cq;
    void *context;
    call->error = EAGAIN;
    call->result = -1;
    call->id[0] = NOBODY;
    if (!is_readable(channel->fd, call->number[0]))
        return;
    call->result = ibv_get_cq_event(channel, &cq, &context);
    call->error = call->result ? errno : 0;
    if (call->result)
        return;
    call->number[0] = (intptr_t)context;
    call->id[0] = number_of(objects, KIND_CQ, cq);
    objects->unacknowledged[call->id[0]]++;
}

static void ack_cq_events(struct end_objects *objects, struct call *call, void *payload)
{
    ibv_ack_cq_events(end_object(objects, KIND_CQ, call->id[0]), (unsigned)call->number[0]);
    objects->unacknowledged[call->id[0]] -= (unsigned)call->number[0];
}

static enum kind kind_of(enum ibv_event_type type)
{
    return type == IBV_EVENT_CQ_ERR                                           ? KIND_CQ
           : type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED ? KIND_SRQ
                                                                              : KIND_QP;
}

/* Acknowledged at once: what happens before the acknowledgement is tested without remote ends. */
static void get_async_event(struct end_objects *objects, struct call *call, void *payload)
{
    struct ibv_async_event event;
    call->error = EAGAIN;
    call->result = -1;
    if (!is_readable(objects->context->async_fd, call->number[0]))
        return;
    call->result = ibv_get_async_event(objects->context, &event);
    call->error = call->result ? errno : 0;
    if (call->result)
        return;
    call->number[0] = event.event_type;
    call->id[0] = number_of(objects, kind_of(event.event_type), event.element.cq);
    ibv_ack_async_event(&event);
}

/* The memory that peers read and write is touched unseen by sanitizers: that the operation is over this process knows
 * from the other end of the test, not from its own library, which is right for one-sided operations. Eight bytes at a
 * time, as sanitizers' builds spent most of `data` here. */
#define UNSEEN __attribute__((no_sanitize("thread", "address", "undefined")))

struct unaligned {
    uint64_t word;
} __attribute__((packed, may_alias));

/* A sequence in which no piece repeats soon, so that shifted or repeated data shows: its bytes from 8 * `number` on. */
static inline UNSEEN uint64_t expected_word(uint64_t seed, uint64_t number)
{
    uint64_t word = (seed + number) * 0x9e3779b97f4a7c15ull;
    return htole64(word ^ word >> 29);
}

static inline UNSEEN uint8_t expected(uint64_t seed, uint64_t at)
{
    return (uint8_t)(le64toh(expected_word(seed, at >> 3)) >> (at & 7) * 8);
}

static UNSEEN void fill(struct end_objects *objects, struct call *call, void *payload)
{
    volatile uint8_t *memory = (volatile uint8_t *)(intptr_t)call->number[0];
    uint64_t length = (uint64_t)call->number[1], seed = (uint64_t)call->number[2], i = 0;
    for (; length - i >= 8; i += 8)
        ((volatile struct unaligned *)(memory + i))->word = expected_word(seed, i >> 3);
    for (; i < length; i++)
        memory[i] = expected(seed, i);
}

static UNSEEN void compare(struct end_objects *objects, struct call *call, void *payload)
{
    const volatile uint8_t *memory = (const volatile uint8_t *)(intptr_t)call->number[0];
    uint64_t length = (uint64_t)call->number[1], seed = (uint64_t)call->number[2], from = (uint64_t)call->number[3],
             i = 0;
    while (i < length) {
        bool whole = !((i + from) & 7) && length - i >= 8;
        if (whole && ((const volatile struct unaligned *)(memory + i))->word == expected_word(seed, (i + from) >> 3)) {
            i += 8;
        } else if (memory[i] == expected(seed, i + from)) {
            i++;
        } else {
            call->number[0] = (int64_t)i;
            return;
        }
    }
    call->number[0] = -1;
}

static UNSEEN void set(struct end_objects *objects, struct call *call, void *payload)
{
    volatile uint8_t *memory = (volatile uint8_t *)(intptr_t)call->number[0];
    uint64_t length = (uint64_t)call->number[1], i = 0;
    for (; length - i >= 8; i += 8)
        ((volatile struct unaligned *)(memory + i))->word = 0x0101010101010101ull * (uint8_t)call->number[2];
    for (; i < length; i++)
        memory[i] = (uint8_t)call->number[2];
}

static UNSEEN void peek(struct end_objects *objects, struct call *call, void *payload)
{
    const volatile uint8_t *memory = (const volatile uint8_t *)(intptr_t)call->number[0];
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | memory[i];
    call->number[0] = (int64_t)value;
}

static UNSEEN void poke(struct end_objects *objects, struct call *call, void *payload)
{
    volatile uint8_t *memory = (volatile uint8_t *)(intptr_t)call->number[0];
    for (int i = 0; i < 8; i++)
        memory[i] = (uint8_t)((uint64_t)call->number[1] >> 8 * i);
}

end_verb *const end_data_verbs[VERBS] = {
    [VERB_POST_SEND] = post_send,
    [VERB_POST_RECEIVE] = post_receive,
    [VERB_POST_SRQ] = post_receive,
    [VERB_POLL] = poll_classic,
    [VERB_POLL_EX] = poll_extended,
    [VERB_ARM] = arm,
    [VERB_GET_CQ_EVENT] = get_cq_event,
    [VERB_ACK_CQ_EVENTS] = ack_cq_events,
    [VERB_GET_ASYNC_EVENT] = get_async_event,
    [VERB_FILL] = fill,
    [VERB_COMPARE] = compare,
    [VERB_SET] = set,
    [VERB_PEEK] = peek,
    [VERB_POKE] = poke,
};
