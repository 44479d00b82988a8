#include "transport/testing/script.h"

#include <stdlib.h>

const struct packet *script_sends(struct rig *rig, enum operation operation, uint32_t psn, const char *file, int line)
{
    _assert_true(rig_has_output(rig), "has output", file, line);
    _assert_true(rig_transmit(rig), "transmits", file, line);
    _assert_int_equal(rig->out.opcode, op_code(rig_service(rig), operation), file, line);
    _assert_int_equal(rig->out.psn, psn & PSN_MASK, file, line);
    _assert_int_equal(rig->out.destination, RIG_PEER, file, line);
    return &rig->out;
}

void script_answers(struct rig *rig, uint8_t syndrome, uint32_t psn, const char *file, int line)
{
    const struct packet *packet = script_sends(rig, OPERATION_ACKNOWLEDGE, psn, file, line);
    _assert_int_equal(packet->syndrome, syndrome, file, line);
}

void script_silent(struct rig *rig, const char *file, int line)
{
    _assert_true(!rig_transmit(rig), "transmits nothing", file, line);
    _assert_true(!rig_has_output(rig), "has no output", file, line);
}

void script_ends(struct rig *rig, uint64_t id, enum ibv_wc_status status, const char *file, int line)
{
    _assert_true(rig->saw_end < rig->ended, "work has ended", file, line);
    const struct rig_end *end = &rig->ends[rig->saw_end++];
    _assert_int_equal(end->id, id, file, line);
    _assert_int_equal(end->status, status, file, line);
    _assert_int_equal(end->reason == REASON_NONE, status == IBV_WC_SUCCESS, file, line);
}

void script_ends_nothing(struct rig *rig, const char *file, int line)
{
    _assert_int_equal(rig->ended, rig->saw_end, file, line);
}

const struct recv_cqe *script_delivers(struct rig *rig, uint64_t id, enum ibv_wc_status status, const char *file,
                                       int line)
{
    _assert_true(rig->saw_arrival < rig->arrived, "a receive has ended", file, line);
    const struct rig_arrival *arrival = &rig->arrivals[rig->saw_arrival++];
    _assert_int_equal(arrival->id, id, file, line);
    _assert_int_equal(arrival->arrival.status, status, file, line);
    return &arrival->arrival;
}

void script_delivers_nothing(struct rig *rig, const char *file, int line)
{
    _assert_int_equal(rig->arrived, rig->saw_arrival, file, line);
}

void script_raises(struct rig *rig, enum ibv_event_type event, const char *file, int line)
{
    _assert_true(rig->saw_event < rig->raised, "an event was raised", file, line);
    _assert_int_equal(rig->events[rig->saw_event++], event, file, line);
}

void script_raises_nothing(struct rig *rig, const char *file, int line)
{
    _assert_int_equal(rig->raised, rig->saw_event, file, line);
}

void script_drops(struct rig *rig, enum reason reason, const char *file, int line)
{
    _assert_true(rig->drops > 0, "a packet was dropped", file, line);
    _assert_int_equal(rig->dropped[(rig->drops - 1) % (sizeof(rig->dropped) / sizeof(*rig->dropped))], reason, file,
                      line);
}

uint64_t script_send(struct rig *rig, uint32_t psn, const char *file, int line)
{
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 1);
    script_sends(rig, OPERATION_SEND_ONLY, psn, file, line);
    return id;
}

uint64_t script_read(struct rig *rig, uint32_t length, const char *file, int line)
{
    uint64_t id = post(rig, .opcode = IBV_WR_RDMA_READ, .length = length, .at = 0x1000, .remote = 0x40, .rkey = 9);
    script_sends(rig, OPERATION_READ_REQUEST, RIG_OURS, file, line);
    return id;
}

uint64_t script_message(struct rig *rig, const char *file, int line)
{
    uint64_t id = post(rig, .opcode = IBV_WR_SEND, .length = 600);
    script_sends(rig, OPERATION_SEND_FIRST, RIG_OURS, file, line);
    script_sends(rig, OPERATION_SEND_MIDDLE, RIG_OURS + 1, file, line);
    script_sends(rig, OPERATION_SEND_LAST, RIG_OURS + 2, file, line);
    return id;
}

int script_set_up(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    rig_make(rig);
    rig_start(rig);
    *state = rig;
    return 0;
}

static void *set_up_unreliable(enum service service)
{
    struct rig *rig = malloc(sizeof(*rig));
    rig_make_unreliable(rig, service);
    rig_start(rig);
    return rig;
}

int script_set_up_uc(void **state)
{
    *state = set_up_unreliable(SERVICE_UC);
    return 0;
}

int script_set_up_ud(void **state)
{
    *state = set_up_unreliable(SERVICE_UD);
    return 0;
}

int script_tear_down(void **state)
{
    free(*state);
    return 0;
}
