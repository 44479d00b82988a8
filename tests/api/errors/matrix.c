#include "matrix.h"

#include <string.h>

#include "matrix_names.h"

enum {
    LENGTH = 64,
    ATOMIC = 8,
    AT = 1024,
    RECEIVE_AT = 4096,
    RECEIVE_LENGTH = 512,
    QUICK = 8,
    SLOW = 13,
    FEW = 1,
    GRH = 40,
    QUIET = 5
};

const struct row rows[] = {
#define ROW(type, operation, fault, requester, responder, requester_state, responder_state, requester_reason,          \
            responder_reason, event)                                                                                   \
    {IBV_QPT_##type,                                                                                                   \
     OPERATION_##operation,                                                                                            \
     FAULT_##fault,                                                                                                    \
     STATUS_##requester,                                                                                               \
     STATUS_##responder,                                                                                               \
     STATE_##requester_state,                                                                                          \
     STATE_##responder_state,                                                                                          \
     REASON_##requester_reason,                                                                                        \
     REASON_##responder_reason,                                                                                        \
     EVENT_##event},
#include "error_matrix.def"
#undef ROW
};
const size_t row_count = COUNT(rows);

static const enum ibv_wr_opcode opcodes[OPERATIONS] = {
    [OPERATION_SEND] = IBV_WR_SEND,
    [OPERATION_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
    [OPERATION_SEND_INV] = IBV_WR_SEND_WITH_INV,
    [OPERATION_WRITE] = IBV_WR_RDMA_WRITE,
    [OPERATION_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
    [OPERATION_READ] = IBV_WR_RDMA_READ,
    [OPERATION_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
    [OPERATION_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [OPERATION_ATOMIC_WRITE] = IBV_WR_ATOMIC_WRITE,
};

/* A receive waits in every row, even if the operation takes no receive: it shows if the responder was flushed. */
static struct scene set(const struct row *row)
{
    const struct fault *fault = &faults[row->fault];
    struct wishes wishes = pair_wishes(row->type);
    wishes.timeout =
        harness_promises(IBV_QPT_UD) ? QUICK : SLOW; /* where links have faults, a busy machine is not a slow peer */
    wishes.retries = FEW;
    if (fault->wish)
        fault->wish(&wishes);
    struct scene scene = {.pair = pair_open_as(wishes), .post_receive = true};
    uint32_t length = row->operation >= OPERATION_COMPARE_SWAP ? ATOMIC : LENGTH;
    scene.send = end_send(&scene.pair.near, &scene.pair.far, opcodes[row->operation], 1, AT, length);
    scene.receive = end_receive(&scene.pair.far, 2, RECEIVE_AT, RECEIVE_LENGTH);
    if (fault->spoil)
        fault->spoil(&scene);
    return scene;
}

static void take(const struct ibv_wc *wc, uint64_t id, int *status, enum reason *reason)
{
    EXPECT(wc->wr_id, ==, id);
    *status = (int)wc->status;
    *reason = (enum reason)wc->vendor_err;
}

/* A message after the one in question: whatever that one did at the responder is over when this one has arrived. On the
 * unreliable services it also shows that the dropped one left the receive where it was. */
static void send_another(struct scene *scene, struct row *seen)
{
    struct end *near = &scene->pair.near, *far = &scene->pair.far;
    end_post_receive(far, end_receive(far, 3, RECEIVE_AT + RECEIVE_LENGTH, RECEIVE_LENGTH));
    end_post(near, end_send(near, far, IBV_WR_SEND, 4, 0, 1));
    end_expect_sent(near, 4, IBV_WC_SUCCESS);
    struct ibv_wc wc = end_received(far);
    uint64_t first = wc.wr_id;
    if (first == 2 && (wc.status != IBV_WC_SUCCESS || (wc.byte_len & ~(uint32_t)GRH) != 1)) {
        take(&wc, 2, &seen->responder, &seen->responder_reason);
        wc = end_received(far);
        EXPECT(wc.wr_id, ==, 3);
    }
    EXPECT(wc.status, ==, IBV_WC_SUCCESS);
}

/* Returns true if the receive has completed. One that must fail may still be about to. */
static void look_at_receive(struct scene *scene, struct row *seen)
{
    struct ibv_wc wc;
    int64_t wait = scene->bad_receive ? PATIENCE : 0;
    if (remote_poll(scene->pair.far.remote, scene->pair.far.receive_cq, 1, &wc, wait) == 1)
        take(&wc, 2, &seen->responder, &seen->responder_reason);
}

static bool both_run(struct scene *scene)
{
    return scene->pair.far.qp != NOBODY && end_state(&scene->pair.near) == IBV_QPS_RTS &&
           end_state(&scene->pair.far) == IBV_QPS_RTS;
}

static struct row observe(struct scene *scene, const struct row *row)
{
    struct end *near = &scene->pair.near, *far = &scene->pair.far;
    struct row seen = {row->type, row->operation, row->fault, .responder = STATUS_NOTHING,
                       .responder_state = STATE_GONE};
    if (scene->post_receive)
        end_post_receive(far, scene->receive);
    end_post(near, scene->send);
    struct ibv_wc wc = end_sent(near);
    take(&wc, 1, &seen.requester, &seen.requester_reason);
    if (scene->bad_receive || !both_run(scene))
        look_at_receive(scene, &seen);
    else if (row->type != IBV_QPT_RC || seen.requester == IBV_WC_SUCCESS)
        send_another(scene, &seen);
    seen.requester_state = end_state(near);
    if (far->qp != NOBODY)
        seen.responder_state = end_state(far);
    seen.event = remote_get_async_event(far->remote, seen.responder_state == IBV_QPS_ERR ? QUIET : 0);
    if (seen.event == IBV_EVENT_COMM_EST)
        seen.event = EVENT_NONE;
    return seen;
}

static const char *name_of_reason(enum reason reason)
{
    switch (reason) {
#define REASON(number, name, sentence)                                                                                 \
    case number:                                                                                                       \
        return #name;
#include "diag/diag.def"
#undef REASON
    default:
        return reason ? "UNKNOWN" : "NONE";
    }
}

void row_play(const void *argument)
{
    const struct row *row = argument;
    struct scene scene = set(row);
    struct row seen = observe(&scene, row);
    if (!memcmp(&seen, row, sizeof seen))
        return;
    harness_fail(__FILE__, __LINE__, "seen: ROW(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", name_of_type(seen.type),
                 name_of_operation(seen.operation), name_of_fault(seen.fault), name_of_status(seen.requester),
                 name_of_status(seen.responder), name_of_state(seen.requester_state),
                 name_of_state(seen.responder_state), name_of_reason(seen.requester_reason),
                 name_of_reason(seen.responder_reason), name_of_event(seen.event));
}
