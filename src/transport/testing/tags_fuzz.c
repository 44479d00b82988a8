/* Arrivals of any kind: bytes of the fuzzer become operations, packets of two queue pairs, and ends of their work. The
 * list must stay whole, and everything that was taken must end. */
#include <stdlib.h>
#include <string.h>

#include "transport/tm/tags.h"
#include "wire/op.h"

enum { CAPACITY = 16, SGES = 2, WORKS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at;
    size_t left;
};

struct machine {
    struct tags tags;
    struct tags_port ports[2];
    struct send_wqe works[2][WORKS];
    unsigned working[2];
    _Alignas(8) char place[sizeof(struct send_wqe) + 256];
};

static uint32_t take(struct input *input)
{
    if (!input->left)
        return 0;
    input->left--;
    return *input->at++;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void operate(struct machine *machine, struct input *input)
{
    struct ibv_sge sges[SGES] = {{.length = take(input)}, {.length = take(input)}};
    struct ibv_ops_wr wr = {.opcode = take(input) % 4, .flags = (int)take(input) % 5};
    struct tags_event event;
    bool completes;
    wr.tm.unexpected_cnt = take(input);
    wr.tm.handle = take(input);
    wr.tm.add.sg_list = sges;
    wr.tm.add.num_sge = (int)take(input) % 4;
    wr.tm.add.tag = take(input);
    wr.tm.add.mask = take(input);
    tags_operate(&machine->tags, &wr, &event, &completes);
}

static void arrive(struct machine *machine, struct input *input, int which)
{
    struct tags_port *port = &machine->ports[which];
    struct tags_event event;
    struct recv_cqe arrival = {.status = take(input) % 4 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};
    if (port->open) {
        arrival.length = TAGS_TMH + take(input);
        tags_received(&machine->tags, port, 0, &arrival, &event);
        return;
    }
    static const uint8_t operations[] = {OPERATION_SEND_ONLY, OPERATION_SEND_FIRST, OPERATION_SEND_ONLY_IMMEDIATE,
                                         OPERATION_WRITE_ONLY_IMMEDIATE};
    uint8_t operation = operations[take(input) % sizeof(operations)];
    uint32_t length = take(input);
    length = length < input->left ? length : (uint32_t)input->left;
    struct iovec piece = {(void *)input->at, length};
    struct packet packet = {.opcode = operation, .payload = {.length = length, .count = length > 0, .pieces = &piece}};
    input->at += length;
    input->left -= length;
    enum tags_kind kind = tags_arrive(&machine->tags, port, &packet);
    require(kind != TAGS_NOTHING);
    require((kind >= TAGS_EAGER) == (tags_receive(&machine->tags, port) != NULL));
    if (kind < TAGS_EAGER && take(input) % 8)
        tags_accept(&machine->tags, port, kind);
    bool matches = tags_match(&machine->tags, port, &packet, &event);
    require(matches == (kind == TAGS_EAGER && operation == OPERATION_SEND_FIRST));
}

static void carry_out(struct machine *machine, struct input *input, int which)
{
    struct tags_event event;
    struct send_wqe *work = (struct send_wqe *)machine->place;
    unsigned *count = &machine->working[which];
    if (*count < WORKS && tags_work(&machine->tags, &machine->ports[which], work))
        machine->works[which][(*count)++] = *work;
    if (!*count || !(take(input) % 2))
        return;
    unsigned at = take(input) % *count;
    tags_sent(&machine->tags, &machine->ports[which], &machine->works[which][at],
              take(input) % 8 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, REASON_NONE, &event);
    machine->works[which][at] = machine->works[which][--*count];
}

static void finish(struct machine *machine)
{
    struct tags_event event;
    struct recv_cqe flushed = {.status = IBV_WC_WR_FLUSH_ERR};
    for (int which = 0; which < 2; which++) {
        if (machine->ports[which].open)
            tags_received(&machine->tags, &machine->ports[which], 0, &flushed, &event);
        while (tags_flush(&machine->tags, &machine->ports[which], &event))
            ;
    }
    require(machine->tags.list.allocated == machine->tags.list.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct machine *machine = calloc(1, sizeof(*machine));
    size_t room = (tags_size(CAPACITY, SGES) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, room);
    memset(memory, 0, room);
    tags_initialize(&machine->tags, memory, CAPACITY, SGES);
    while (input.left) {
        uint32_t choice = take(&input);
        if (choice % 4 == 0)
            operate(machine, &input);
        else if (choice % 4 < 3)
            arrive(machine, &input, choice >> 7);
        else
            carry_out(machine, &input, choice >> 7);
    }
    finish(machine);
    free(memory);
    free(machine);
    return 0;
}
