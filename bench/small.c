/* SENDs of 8 bytes between two processes of a host, by the least that any verbs library must do for them, and by verbs.
 * Usage: small minimum|verbs latency|rate [SIGNALLED-EACH]. Prints one number: microseconds of half of a round trip, or
 * millions of messages each second, the median of short stretches. Of the round trip all SENDs are signalled, of the
 * stream one in 100, as perftest has them; or one in SIGNALLED-EACH.
 *
 * The minimum, for one queue pair on each side, safe to call from several threads:
 * - a post reads the list, checks opcode, flags, elements and room, keeps wr_id in a slot of the queue, and writes
 * header and data in one cache line of shared memory; then it looks whether the receiver sleeps
 * - a posted receive is kept in a slot
 * - a poll takes what has come: it checks queue pair and PSN, takes the receive, finds its memory by the key, checks
 *   the bounds, copies, and puts an entry in the completion queue; it publishes in one word how far it came, which is
 *   the ACK and makes room; it ends its own work by the other side's word; and it writes entries as ibv_wc
 * What is left out: all other operations and types, refusals, errors, time-outs, memory that is gone, counters,
 * captures and the helper that works while no thread polls. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "endpoint.h"
#include "measure.h"

enum {
    LINE = 64,
    LINES = 1024,
    DEPTH = 128, /* works, and a power of two as all sizes here */
    RECEIVES = 512,
    ENTRIES = 1024,
    KEYS = 16,
    BATCH = 16,
    STRETCH = 64, /* messages that are timed together */
    STRETCHES_MOST = 4000,
    STREAM_EACH = 100,
    YIELDS_EACH = 1 << 14
};

/* --- the minimum */

struct line {
    _Alignas(LINE) atomic_uint turn; /* the number of the message, from 1 on; stored last */
    uint32_t qp_number, psn;
    uint16_t opcode, length;
    char data[LINE - 16];
};

/* The messages from one process to the other. */
struct channel {
    struct line lines[LINES];
    _Alignas(LINE) atomic_uint taken; /* by the receiver: messages that it has taken */
    _Alignas(LINE) atomic_uint sleeps;
};

struct entry {
    uint64_t id;
    uint32_t length, qp_number, immediate;
    uint8_t status, opcode;
    uint16_t flags;
};

struct queue {
    atomic_uchar lock;
    struct entry entries[ENTRIES];
    _Alignas(LINE) atomic_uint head;
    _Alignas(LINE) atomic_uint tail;
};

struct work {
    uint64_t id;
    uint32_t psn, flags;
};

struct receive {
    uint64_t id, address;
    uint32_t length, key;
};

struct key {
    uint64_t start, length;
    uint32_t key, access;
};

struct pair {
    atomic_uchar lock, progress;
    uint32_t number, peer;
    struct channel *out, *in;
    struct queue *sends, *receives;
    struct work works[DEPTH];
    uint32_t posted, ended, room; /* works; messages that may be sent as far as is known */
    struct receive slots[RECEIVES];
    uint32_t slots_posted, slots_taken, expected;
    struct key keys[KEYS];
};

static inline void lock(atomic_uchar *word)
{
    while (atomic_exchange_explicit(word, 1, memory_order_acquire))
        sched_yield();
}

static inline void unlock(atomic_uchar *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

/* The address, if the key allows the range; NULL: the key is another's, or the range is outside. */
static inline void *find_memory(const struct pair *pair, uint32_t key, uint64_t address, uint32_t length)
{
    const struct key *found = &pair->keys[key % KEYS];
    bool fits = found->key == key && found->access & IBV_ACCESS_LOCAL_WRITE && address >= found->start &&
                length <= found->length && address - found->start <= found->length - length;
    return fits ? (void *)(uintptr_t)address : NULL;
}

static inline bool push(struct queue *queue, const struct entry *entry)
{
    lock(&queue->lock);
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
    bool room = tail - atomic_load_explicit(&queue->head, memory_order_acquire) < ENTRIES;
    if (room) {
        queue->entries[tail % ENTRIES] = *entry;
        atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
    }
    unlock(&queue->lock);
    return room;
}

static inline bool has_room(struct pair *pair)
{
    if (pair->posted < pair->room)
        return true;
    pair->room = atomic_load_explicit(&pair->out->taken, memory_order_acquire) + LINES;
    return pair->posted < pair->room;
}

static inline int post_one(struct pair *pair, const struct ibv_send_wr *wr)
{
    const struct ibv_sge *sge = wr->sg_list;
    bool fits = wr->num_sge == 1 && sge->length <= sizeof pair->out->lines->data;
    if (wr->opcode != IBV_WR_SEND || wr->send_flags & ~(unsigned)(IBV_SEND_SIGNALED | IBV_SEND_INLINE) || !fits)
        return 1;
    if (pair->posted - pair->ended >= DEPTH || !has_room(pair))
        return 1;
    const void *from = wr->send_flags & IBV_SEND_INLINE ? (const void *)(uintptr_t)sge->addr
                                                        : find_memory(pair, sge->lkey, sge->addr, sge->length);
    if (!from)
        return 1;
    pair->works[pair->posted % DEPTH] = (struct work){wr->wr_id, pair->posted, wr->send_flags};
    struct line *line = &pair->out->lines[pair->posted % LINES];
    line->qp_number = pair->peer;
    line->psn = pair->posted;
    line->opcode = (uint16_t)wr->opcode;
    line->length = (uint16_t)sge->length;
    memcpy(line->data, from, sge->length);
    atomic_store_explicit(&line->turn, ++pair->posted, memory_order_release);
    return 0;
}

static int minimum_send(void *context, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct pair *pair = context;
    int refused = 0;
    lock(&pair->lock);
    for (; wr && !refused; wr = refused ? wr : wr->next)
        refused = post_one(pair, wr);
    unlock(&pair->lock);
    if (atomic_load_explicit(&pair->out->sleeps, memory_order_acquire))
        die("a side sleeps that polls");
    *bad = wr;
    return refused;
}

static int minimum_receive(void *context, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct pair *pair = context;
    lock(&pair->lock);
    for (; wr && wr->num_sge == 1 && pair->slots_posted - pair->slots_taken < RECEIVES; wr = wr->next)
        pair->slots[pair->slots_posted++ % RECEIVES] =
            (struct receive){wr->wr_id, wr->sg_list->addr, wr->sg_list->length, wr->sg_list->lkey};
    unlock(&pair->lock);
    *bad = wr;
    return wr != NULL;
}

/* The other side is trusted, and a fault ends the program. */
static inline bool take(struct pair *pair, const struct line *line)
{
    uint32_t length = line->length;
    lock(&pair->lock);
    if (line->psn != pair->expected || pair->slots_taken == pair->slots_posted)
        die("a message comes too early");
    const struct receive *receive = &pair->slots[pair->slots_taken % RECEIVES];
    void *to = length <= receive->length ? find_memory(pair, receive->key, receive->address, length) : NULL;
    if (!to || length > sizeof line->data)
        die("a message does not fit");
    memcpy(to, line->data, length);
    pair->expected++;
    pair->slots_taken++;
    struct entry entry = {.id = receive->id, .length = length, .qp_number = pair->number, .opcode = IBV_WC_RECV};
    unlock(&pair->lock);
    return push(pair->receives, &entry);
}

static inline void take_all(struct pair *pair)
{
    uint32_t count = 0, first = pair->expected;
    for (; count < LINE; count++) {
        const struct line *line = &pair->in->lines[(first + count) % LINES];
        if (atomic_load_explicit(&line->turn, memory_order_acquire) != first + count + 1)
            break;
        if (line->qp_number != pair->number || !take(pair, line))
            die("a message is lost");
    }
    if (count)
        atomic_store_explicit(&pair->in->taken, first + count, memory_order_release);
}

static inline void end_work(struct pair *pair)
{
    uint32_t taken = atomic_load_explicit(&pair->out->taken, memory_order_acquire);
    if (taken == pair->ended)
        return;
    lock(&pair->lock);
    for (; pair->ended != taken; pair->ended++) {
        const struct work *work = &pair->works[pair->ended % DEPTH];
        if (work->flags & IBV_SEND_SIGNALED)
            push(pair->sends, &(struct entry){.id = work->id, .qp_number = pair->number, .opcode = IBV_WC_SEND});
    }
    unlock(&pair->lock);
}

static inline void to_wc(const struct entry *entry, struct ibv_wc *wc)
{
    *wc = (struct ibv_wc){.wr_id = entry->id,
                          .status = entry->status,
                          .opcode = entry->opcode,
                          .byte_len = entry->length,
                          .imm_data = entry->immediate,
                          .qp_num = entry->qp_number,
                          .wc_flags = entry->flags};
}

static inline bool is_empty(const struct queue *queue)
{
    return atomic_load_explicit(&queue->head, memory_order_relaxed) ==
           atomic_load_explicit(&queue->tail, memory_order_acquire);
}

static int poll(struct pair *pair, struct queue *queue, int count, struct ibv_wc *wc)
{
    int taken = 0;
    if (is_empty(queue) && !atomic_exchange_explicit(&pair->progress, 1, memory_order_acquire)) {
        take_all(pair);
        end_work(pair);
        unlock(&pair->progress);
    }
    if (is_empty(queue))
        return 0;
    lock(&queue->lock);
    uint32_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&queue->tail, memory_order_acquire);
    for (; head != tail && taken < count; head++)
        to_wc(&queue->entries[head % ENTRIES], &wc[taken++]);
    atomic_store_explicit(&queue->head, head, memory_order_release);
    unlock(&queue->lock);
    return taken;
}

static int minimum_poll(void *context, bool sends, int count, struct ibv_wc *wc)
{
    struct pair *pair = context;
    return poll(pair, sends ? pair->sends : pair->receives, count, wc);
}

static char memory[LINE];

static void *minimum_open(int nth, int to_other, uint32_t *key)
{
    static struct pair pair;
    static struct queue queues[2];
    (void)to_other;
    pair.number = 100 + (uint32_t)nth;
    pair.peer = 101 - (uint32_t)nth;
    pair.sends = &queues[0];
    pair.receives = &queues[1];
    *key = 5;
    pair.keys[*key % KEYS] = (struct key){(uintptr_t)memory, sizeof memory, *key, IBV_ACCESS_LOCAL_WRITE};
    return &pair;
}

/* --- verbs */

struct verbs {
    struct endpoint endpoint;
    struct ibv_cq *receives;
    struct ibv_qp *qp;
};

static int verbs_send(void *context, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return ibv_post_send(((struct verbs *)context)->qp, wr, bad);
}

static int verbs_receive(void *context, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return ibv_post_recv(((struct verbs *)context)->qp, wr, bad);
}

static int verbs_poll(void *context, bool sends, int count, struct ibv_wc *wc)
{
    struct verbs *verbs = context;
    return ibv_poll_cq(sends ? verbs->endpoint.cq : verbs->receives, count, wc);
}

static void *verbs_open(int nth, int to_other, uint32_t *key)
{
    static struct verbs verbs;
    struct address peer;
    char connected = 0;
    (void)nth;
    endpoint_open(&verbs.endpoint, DEPTH);
    verbs.receives = ibv_create_cq(verbs.endpoint.context, RECEIVES, NULL, NULL, 0);
    struct ibv_qp_init_attr how = {.qp_type = IBV_QPT_RC,
                                   .send_cq = verbs.endpoint.cq,
                                   .recv_cq = verbs.receives,
                                   .cap = {DEPTH, RECEIVES, 1, 1, ENDPOINT_INLINE}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ENDPOINT_ACCESS};
    if (!verbs.receives || !(verbs.qp = ibv_create_qp(verbs.endpoint.pd, &how)) ||
        ibv_modify_qp(verbs.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("no queue pair");
    struct ibv_mr *mr = endpoint_register(&verbs.endpoint, memory, sizeof memory);
    struct address own = endpoint_address(&verbs.endpoint, verbs.qp, mr);
    if (write(to_other, &own, sizeof own) != sizeof own || read(to_other, &peer, sizeof peer) != sizeof peer)
        die("the other side is gone");
    endpoint_connect(verbs.qp, &peer, 14);
    if (write(to_other, &connected, 1) != 1 || read(to_other, &connected, 1) != 1)
        die("the other side is gone");
    *key = mr->lkey;
    return &verbs;
}

/* --- what is measured */

struct way {
    const char *name;
    void *(*open)(int nth, int to_other, uint32_t *key);
    int (*send)(void *, struct ibv_send_wr *, struct ibv_send_wr **bad);
    int (*receive)(void *, struct ibv_recv_wr *, struct ibv_recv_wr **bad);
    int (*poll)(void *, bool sends, int count, struct ibv_wc *);
};

static const struct way ways[] = {
    {"minimum", minimum_open, minimum_send, minimum_receive, minimum_poll},
    {"verbs", verbs_open, verbs_send, verbs_receive, verbs_poll},
};

struct side {
    const struct way *way;
    void *context;
    uint32_t key;
    uint64_t sent, received, ended; /* messages, and works that are known to have ended */
    uint32_t each, owed;            /* receives to be posted anew */
};

static void post_receive(struct side *side)
{
    struct ibv_sge sge = {(uintptr_t)memory, sizeof memory, side->key};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (side->way->receive(side->context, &wr, &bad))
        die("a receive is refused");
}

/* Posts the send of a round trip with its data inline, as perftest does. */
static void post_send(struct side *side, unsigned flags)
{
    struct ibv_sge sge = {(uintptr_t)memory, 8, side->key};
    struct ibv_send_wr wr = {.wr_id = side->sent, .sg_list = &sge, .num_sge = 1, .send_flags = flags}, *bad;
    wr.opcode = IBV_WR_SEND;
    if (++side->sent % side->each == 0)
        wr.send_flags |= IBV_SEND_SIGNALED;
    if (side->way->send(side->context, &wr, &bad))
        die("a send is refused");
}

static unsigned wait_for(struct side *side, bool sends, int most)
{
    struct ibv_wc wc[BATCH];
    int count;
    for (uint32_t polls = 1; !(count = side->way->poll(side->context, sends, most, wc)); polls++)
        if (polls % YIELDS_EACH == 0)
            sched_yield();
    for (int i = 0; i < count; i++)
        if (wc[i].status || (!sends && wc[i].byte_len != 8))
            die("a completion is wrong");
    return (unsigned)count;
}

static void receive_some(struct side *side, int most)
{
    unsigned count = wait_for(side, false, most);
    side->received += count;
    while (count--)
        post_receive(side);
}

static void end_some(struct side *side)
{
    side->ended += wait_for(side, true, BATCH) * side->each;
}

static unsigned stretches;

static void run_round_trips(struct side *side, int nth, double *spent)
{
    for (uint32_t stretch = 0; stretch < stretches; stretch++) {
        double start = measure_seconds();
        for (uint32_t i = 0; i < STRETCH; i++) {
            if (nth)
                receive_some(side, 1);
            post_send(side, IBV_SEND_INLINE);
            if (side->sent % side->each == 0)
                end_some(side);
            if (!nth)
                receive_some(side, 1);
        }
        spent[stretch] = (measure_seconds() - start) / STRETCH / 2;
    }
}

static void run_stream(struct side *side, int nth, double *spent)
{
    for (uint32_t stretch = 0; stretch < stretches; stretch++) {
        double start = measure_seconds();
        uint64_t end = (uint64_t)(stretch + 1) * STRETCH;
        while (nth && side->received < end)
            receive_some(side, BATCH);
        while (!nth && side->sent < end) {
            if (side->sent - side->ended == DEPTH)
                end_some(side);
            post_send(side, 0);
        }
        spent[stretch] = (measure_seconds() - start) / STRETCH;
    }
}

/* The second process is the one that receives; of the stream its time counts. */
static double run(struct side *side, int nth, int to_other, bool stream, struct channel *channels)
{
    static double spent[STRETCHES_MOST];
    char ready = 0;
    stretches = measure_rounds(STRETCHES_MOST);
    side->context = side->way->open(nth, to_other, &side->key);
    measure_pin(nth);
    if (side->way == &ways[0]) {
        ((struct pair *)side->context)->out = &channels[nth];
        ((struct pair *)side->context)->in = &channels[1 - nth];
    }
    for (int i = 0; i < RECEIVES; i++)
        post_receive(side);
    if (write(to_other, &ready, 1) != 1 || read(to_other, &ready, 1) != 1)
        die("the other side is gone");
    (stream ? run_stream : run_round_trips)(side, nth, spent);
    if (!nth)
        (void)!read(to_other, &ready, 1); /* until the other has received all */
    else if (write(to_other, &ready, 1) != 1)
        die("the other side is gone");
    return measure_median(spent, stretches);
}

static const struct way *find_way(const char *name)
{
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, name))
            return &ways[i];
    return NULL;
}

int main(int count, char **arguments)
{
    bool stream = count > 2 && !strcmp(arguments[2], "rate");
    struct side side = {.way = count > 2 ? find_way(arguments[1]) : NULL, .each = stream ? STREAM_EACH : 1};
    struct channel *channels =
        mmap(NULL, 2 * sizeof *channels, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    if (count > 3)
        side.each = (uint32_t)atoi(arguments[3]);
    if (!side.way || !side.each || side.each > DEPTH || channels == MAP_FAILED ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        die("usage: small minimum|verbs latency|rate [SIGNALLED-EACH]");
    pid_t other = fork();
    if (!other) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        double spent = run(&side, 1, ends[1], stream, channels);
        printf("%.4f\n", stream ? 1e-6 / spent : spent * 1e6);
        return 0;
    }
    int status;
    run(&side, 0, ends[0], stream, channels);
    return waitpid(other, &status, 0) == other && !status ? 0 : 1;
}
