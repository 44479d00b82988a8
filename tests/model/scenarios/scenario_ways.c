/* WRITEs, READs and SENDs of one queue pair, each sent as packets through the ring or without packets, as the attention
 * of the other side says just then (docs/evidence/one-sided.md, "Packets to a peer that polls"). Both sides have the
 * real engines. B polls and sleeps by turns. */
#include <string.h>

#include "link/direct.h"
#include "link/shm.h"
#include "process/process.h"
#include "rig.h"
#include "seam.h"
#include "trace.h"
#include "transport/engine/engine.h"
#include "verbs/memory/publish.h"
#include "wire/wire.h"

enum {
    SHORT = 8,
    LONG = 16, /* its second half is where the short ones go */
    KEY = 0x101,
    SLOTS = 8,
    SLOT = sizeof(struct send_wqe) + LONG,
    FIRST_PSN = 1, /* of A's requests, */
    OWN_PSN = 9,   /* and of B's */
    WORKS_MOST = 6,
};
static const nanos now = NANOS_SECOND;

/* Words of the memory of an end. */
enum { BEFORE_X, X, RECEIVED, RESULTS, WORDS = RESULTS + WORKS_MOST };

/* One end of the connection, in the heap of its process. */
struct end {
    struct engine_owner owner;
    struct engine engine;
    struct responder_resource saved[2];
    struct recv_wqe receive;
    struct ibv_sge into;
    _Alignas(8) uint8_t queue[SLOTS * SLOT];
    uint64_t memory[WORDS];
    uint32_t ended; /* works */
    unsigned self;
};

/* The works of A. `value`: of a WRITE, the value that it stores; of the others, the value there when a SEND arrives or
 * a READ looks. */
struct wanted {
    enum ibv_wr_opcode opcode;
    uint32_t length;
    uint64_t value;
};

static const struct wanted scripts[][WORKS_MOST] = {
    {{IBV_WR_RDMA_WRITE, SHORT, 1},
     {IBV_WR_RDMA_WRITE, LONG, 2},
     {IBV_WR_RDMA_WRITE, SHORT, 3},
     {IBV_WR_RDMA_READ, SHORT, 3}},
    {{IBV_WR_RDMA_WRITE, SHORT, 1},
     {IBV_WR_SEND, SHORT, 1},
     {IBV_WR_RDMA_WRITE, SHORT, 2},
     {IBV_WR_RDMA_READ, SHORT, 2}},
};

/* Outside of all processes. */
struct plan {
    struct end *ends[2];
    struct peer *others[2]; /* each side as the other knows it */
    uint64_t seen;          /* the newest value at B that was seen there */
    uint32_t script, done;
};

static struct plan *plan(void)
{
    return (struct plan *)(void *)(rig_notes() + 1);
}

static const struct wanted *script(void)
{
    return scripts[plan()->script];
}

static unsigned works(void)
{
    unsigned count = 0;
    while (count < WORKS_MOST && script()[count].length)
        count++;
    return count;
}

/* --- the conditions that hold */

static const char *values_grow(void)
{
    uint64_t value = memory_load(&plan()->ends[B]->memory[X], 8);
    if (value < plan()->seen)
        return "a WRITE lands behind one that was posted later";
    if (value > plan()->seen)
        memory_store(&plan()->seen, 8, value);
    return NULL;
}

static const char *all_end(void)
{
    return plan()->done ? NULL : "work does not end";
}

/* --- the owner of both engines */

static struct end *end_of(struct engine_owner *owner)
{
    return (struct end *)owner;
}

static void on_sent(struct engine_owner *owner, const struct send_wqe *work, enum ibv_wc_status status,
                    enum reason reason)
{
    struct end *end = end_of(owner);
    if (status)
        schedule_violation("work %u fails with status %d", (unsigned)work->id, status);
    if (work->id != end->ended)
        schedule_violation("work %u ends, and %u is next", (unsigned)work->id, end->ended);
    if (work->opcode == IBV_WR_RDMA_READ && end->memory[RESULTS + work->id] != script()[work->id].value)
        schedule_violation("a READ finds %u where the WRITE before it stored %u",
                           (unsigned)end->memory[RESULTS + work->id], (unsigned)script()[work->id].value);
    end->ended++;
    trace_line(NULL, "work %u ends", (unsigned)work->id);
}

static const struct recv_wqe *on_take_receive(struct engine_owner *owner, const struct packet *packet, uint64_t least)
{
    struct end *end = end_of(owner);
    end->into = (struct ibv_sge){(uintptr_t)&end->memory[RECEIVED], SHORT, KEY};
    end->receive = (struct recv_wqe){.sge_count = 1, .sge = &end->into};
    return &end->receive;
}

static void on_received(struct engine_owner *owner, const struct recv_wqe *receive, const struct recv_cqe *arrival)
{
    const struct end *end = end_of(owner);
    if (end->memory[X] != end->memory[RECEIVED])
        schedule_violation("a SEND comes behind WRITE %u and finds %u", (unsigned)end->memory[RECEIVED],
                           (unsigned)end->memory[X]);
}

static enum reason on_local_memory(struct engine_owner *owner, const struct ibv_sge *sge, unsigned access,
                                   struct iovec *memory)
{
    *memory = (struct iovec){(void *)(uintptr_t)sge->addr, sge->length};
    return REASON_NONE;
}

static enum reason on_remote_memory(struct engine_owner *owner, uint32_t rkey, uint64_t address, uint32_t length,
                                    unsigned access, struct iovec *memory)
{
    *memory = (struct iovec){(uint8_t *)end_of(owner)->memory + address, length};
    return REASON_NONE;
}

static void on_failed(struct engine_owner *owner, bool sqe)
{
    schedule_violation("an engine fails");
}

static void on_event(struct engine_owner *owner, enum ibv_event_type event)
{
}

static void on_watch(struct engine_owner *owner, nanos deadline)
{
}

static void on_dropped(struct engine_owner *owner, const struct packet *packet, enum reason reason)
{
    schedule_violation("a packet is dropped for reason %d", (int)reason);
}

static const struct owner_operations operations = {
    .sent = on_sent,
    .take_receive = on_take_receive,
    .received = on_received,
    .local_memory = on_local_memory,
    .receive_memory = on_local_memory,
    .remote_memory = on_remote_memory,
    .failed = on_failed,
    .event = on_event,
    .watch = on_watch,
    .dropped = on_dropped,
};

/* --- both ways */

static struct published_question question_of(const struct send_wqe *work)
{
    bool writes = work->opcode == IBV_WR_RDMA_WRITE;
    return (struct published_question){.write = writes,
                                       .number = rig_notes()->numbers[B],
                                       .own_number = rig_notes()->numbers[A],
                                       .first_psn = OWN_PSN,
                                       .own_psn = FIRST_PSN,
                                       .key = work->rkey,
                                       .address = work->remote_address,
                                       .length = work->length,
                                       .max_rd_atomic = writes ? 0 : 1};
}

static bool do_directly(struct engine_owner *owner, const struct direct_works *these)
{
    struct published_question more[DIRECT_MORE];
    for (uint32_t i = 1; i < these->count; i++)
        more[i - 1] = question_of(these->works[i]);
    struct direct_access access = {question_of(these->works[0]), these->pieces, these->piece_count, more,
                                   these->count - 1};
    bool done = shm_direct(plan()->others[A]->link, &access);
    trace_line(NULL, "work %u and %u more without a packet: %s", (unsigned)these->works[0]->id, these->count - 1,
               done ? "done" : "not permitted");
    return done;
}

/* Works as qp_transmit_directly, with what verbs/chooser/polled.c decides after some tens of works. */
static void offer(struct end *end, struct link *link)
{
    const struct send_wqe *next = engine_next_direct(&end->engine);
    if (!next)
        return;
    uint32_t above = shm_attention(link) % 2 ? 0 : SHORT;
    engine_allow_direct_above(&end->engine, above);
    if (next->length > above)
        engine_transmit_directly(&end->engine, do_directly);
}

static void send_packet(struct link *link, const struct packet *packet)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    const struct frame frame = {.kind = FRAME_ROCE,
                                .headers_length = (uint16_t)wire_encode(packet, headers),
                                .headers = headers,
                                .payload = packet->payload};
    if (link->operations->send(link, &frame) != FRAME_SENT)
        schedule_violation("a ring with room takes no frame");
}

static void transmit(struct end *end)
{
    struct link *link = plan()->others[end->self]->link;
    struct packet packet;
    struct iovec pieces[PAYLOAD_PIECES_MAX];
    if (end->self == A)
        offer(end, link);
    link->operations->begin(link);
    while (engine_has_output(&end->engine) && link->operations->ready(link) &&
           engine_transmit(&end->engine, &packet, pieces, now))
        send_packet(link, &packet);
    link->operations->end(link);
}

static void take(void *process, struct peer *peer, const struct frame *frame)
{
    struct packet packet;
    unsigned used, pad;
    if (wire_decode(frame->headers, frame->headers_length, &packet, &used, &pad))
        schedule_violation("a frame is no packet");
    packet.payload = frame->payload;
    trace_line(NULL, "takes a packet, PSN %u", packet.psn);
    engine_receive(&plan()->ends[rig_process(process)]->engine, &packet, now);
}

/* --- A */

static void post(struct end *end, unsigned number)
{
    const struct wanted *wanted = &script()[number];
    struct send_wqe *work = send_queue_reserve(engine_queue(&end->engine));
    uint64_t values[] = {0, wanted->value};
    bool reads = wanted->opcode == IBV_WR_RDMA_READ;
    memset(work, 0, sizeof *work);
    work->id = number;
    work->opcode = (uint8_t)wanted->opcode;
    work->flags = reads ? IBV_SEND_SIGNALED : IBV_SEND_INLINE;
    work->length = wanted->length;
    work->rkey = KEY;
    work->remote_address = (X + 1) * sizeof(uint64_t) - wanted->length;
    work->sge_count = reads;
    if (reads)
        work->sge[0] = (struct ibv_sge){(uintptr_t)&end->memory[RESULTS + number], SHORT, KEY};
    else
        memcpy(work->inline_data, (uint8_t *)values + sizeof values - wanted->length, wanted->length);
    send_queue_commit(engine_queue(&end->engine));
    engine_posted(&end->engine);
}

static void request(void *process)
{
    struct end *end = plan()->ends[rig_process(process)];
    for (unsigned number = 0; number < works(); number++) {
        post(end, number);
        transmit(end);
        while (rig_turn_with(A, take))
            transmit(end);
    }
    while (end->ended < works()) {
        schedule_forget(__LINE__);
        rig_sleep(A, -1);
        while (rig_turn_with(A, take))
            transmit(end);
    }
    plan()->done = 1;
}

/* --- B, which looks once more before it sleeps */

static void poll_and_sleep(void *process)
{
    struct end *end = plan()->ends[rig_process(process)];
    for (;;) {
        schedule_forget(__LINE__);
        while (rig_turn_with(B, take))
            transmit(end);
        engine_acknowledge_late(&end->engine);
        transmit(end);
        rig_sleep(B, -1);
    }
}

/* --- what is there before */

static void connect_end(unsigned self, uint32_t first_psn, uint32_t expected_psn)
{
    struct end *end = model_calloc(1, sizeof *end);
    const struct send_queue queue = {.memory = end->queue, .stride = SLOT, .capacity = SLOTS};
    const struct engine_settings settings = {
        .service = SERVICE_RC,
        .pkey = 0xffff,
        .destination = rig_notes()->numbers[1 - self],
        .segment = LONG,
        .window = SLOTS,
        .retry_count = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
        .ack_mask = 15,
        .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
        .direct = self == A,
        .max_message = 1 << 20,
    };
    plan()->ends[self] = end;
    end->self = self;
    end->owner.operations = &operations;
    engine_initialize(&end->engine, SERVICE_RC, &end->owner, &queue, end->saved);
    engine_configure(&end->engine, &settings);
    engine_start_receiving(&end->engine, expected_psn);
    engine_start_transmitting(&end->engine, first_psn);
    plan()->others[self] = node_find(rig_notes()->nodes[self], rig_notes()->numbers[1 - self]);
}

static void publish(void)
{
    struct node *node = rig_notes()->nodes[B];
    struct process *process = model_calloc(1, sizeof *process);
    struct mr *mr = model_calloc(1, sizeof *mr);
    const struct published_queue_pair queue_pair = {.peer = rig_notes()->numbers[A],
                                                    .access = PUBLISHED_WRITE | PUBLISHED_READ,
                                                    .first_psn = OWN_PSN,
                                                    .peer_psn = FIRST_PSN,
                                                    .max_dest_rd_atomic = 1,
                                                    .domain = (uintptr_t)process};
    process->node = node;
    node_vouch(node);
    published_open(node_published(node), true);
    mr->region.kind = REGION_MEMORY;
    mr->region.key = KEY;
    mr->region.pd = (void *)process;
    mr->region.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    mr->region.memory = (char *)plan()->ends[B]->memory;
    mr->region.length = sizeof plan()->ends[B]->memory;
    publish_region(process, mr);
    if (!published_queue_pair(node_published(node), rig_notes()->numbers[B], &queue_pair))
        schedule_violation("the queue pair is not published");
}

static void set_up(unsigned script)
{
    host_direct(true);
    rig_join(2);
    rig_attach(B, A);
    rig_attach(A, B);
    plan()->script = script;
    schedule_as(schedule_process_at(A));
    connect_end(A, FIRST_PSN, OWN_PSN);
    schedule_as(schedule_process_at(B));
    connect_end(B, OWN_PSN, FIRST_PSN);
    publish();
    schedule_as(NULL);
    rig_keep_members();
    rig_thread(A, request);
    rig_thread(B, poll_and_sleep);
}

static void set_up_lengths(void)
{
    set_up(0);
}

SCENARIO(ways, set_up_lengths, "ways",
         "short and long WRITEs, as packets and without, land in their order, and a READ finds the last of them",
         .checks = {all_end, values_grow}, .budget = {.preemptions = 3, .rests = 4},
         .more = {.preemptions = ANY_NUMBER, .rests = 4})

static void set_up_sends(void)
{
    set_up(1);
}

SCENARIO(ways_sends, set_up_sends, "ways-sends",
         "the same with a SEND between them, which finds the WRITE before it and not the one behind",
         .checks = {all_end, values_grow}, .budget = {.preemptions = 3, .rests = 4},
         .more = {.preemptions = ANY_NUMBER, .rests = 4})
