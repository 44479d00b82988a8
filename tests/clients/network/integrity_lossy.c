/* Data arrives unchanged: two processes on two hosts, which are network namespaces, exchange messages of a service over
 * a network that may lose, repeat, reorder and corrupt them. Usage: integrity_lossy HOST HOST rc|uc|ud MESSAGES (hosts:
 * names for ip-netns(8)). rc: everything arrives once, in order, with SENDs, WRITEs, READs and atomics mixed. uc and
 * ud: each message that arrives is whole and of one message; a lost one completes nothing. Prints the number that
 * arrived; exit status 0 when all was right. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum {
    GRH = 40,
    LONGEST = 8000,
    HEAD = 8,       /* the number of the message, its length */
    RECEIVES = 256, /* posted */
    FEW = 4,        /* the same for rc, where messages wait for them */
    SENDS = 24,     /* of rc under way */
    MESSAGES_MOST = 10000,
};

static const double silence = 0.1; /* s after which no more arrives: what is reordered waits for a millisecond */

enum { SENDER, RECEIVER };

struct meeting {
    struct address addresses[2];
    atomic_uint stages[2];
    atomic_bool sent, heard;
};

struct side {
    struct meeting *meeting;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    unsigned char *memory;
    unsigned messages, longest;
    int self;
};

static uint64_t mix(uint64_t number)
{
    number = (number + 1) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    return number ^ number >> 27;
}

/* ---- messages: everything about one follows from its number */

static unsigned length_of(const struct side *side, unsigned number)
{
    return HEAD + (unsigned)(mix(number) >> 8) % (side->longest - HEAD + 1);
}

static unsigned char byte_of(unsigned number, unsigned place)
{
    return (unsigned char)(mix((uint64_t)number << 32 | place / 8) >> place % 8 * 8);
}

static void write_message(const struct side *side, unsigned number, unsigned char *to)
{
    unsigned length = length_of(side, number);
    memcpy(to, &(uint32_t[]){number, length}, HEAD);
    for (unsigned place = HEAD; place < length; place++)
        to[place] = byte_of(number, place);
}

/* Returns its number. */
static unsigned check_message(const struct side *side, const unsigned char *message, unsigned length)
{
    uint32_t head[2];
    memcpy(head, message, HEAD);
    if (length < HEAD || head[0] >= side->messages || head[1] != length || length_of(side, head[0]) != length)
        die("%u bytes came as message %u of %u bytes", length, head[0], head[1]);
    for (unsigned place = HEAD; place < length; place++)
        if (message[place] != byte_of(head[0], place))
            die("byte %u of message %u, of %u bytes, is wrong", place, head[0], length);
    return head[0];
}

/* ---- posting */

static unsigned char *slot(const struct side *side, unsigned index)
{
    return side->memory + (size_t)index * (LONGEST + GRH);
}

static void post_receive(const struct side *side, unsigned index)
{
    struct ibv_sge sge = {(uintptr_t)slot(side, index), LONGEST + GRH, side->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

static struct ibv_wc completion(struct side *side, double seconds)
{
    struct ibv_wc wc = {.opcode = IBV_WC_DRIVER1};
    if (endpoint_wait(&side->endpoint, &wc, 1, seconds) && wc.status != IBV_WC_SUCCESS)
        die("%s", ibv_wc_status_str(wc.status));
    return wc;
}

static bool is_none(const struct ibv_wc *wc)
{
    return wc->opcode == IBV_WC_DRIVER1;
}

/* The receiver's memory: the slots of its receives, one for each message that WRITEs, and one for the atomics' words.
 * The sender's: one for each that is under way. */
static unsigned target(unsigned number)
{
    return RECEIVES + number;
}

static uint64_t remote(const struct side *side, unsigned index)
{
    return side->meeting->addresses[RECEIVER].memory + (uint64_t)index * (LONGEST + GRH);
}

static struct ibv_send_wr request(unsigned number, struct ibv_sge *sge, enum ibv_wr_opcode opcode)
{
    return (struct ibv_send_wr){
        .wr_id = number,
        .sg_list = sge,
        .num_sge = 1,
        .send_flags = IBV_SEND_SIGNALED,
        .opcode = opcode,
        .imm_data = number, /* both ends are this machine: no byte order */
    };
}

static void post(const struct side *side, struct ibv_send_wr wr)
{
    struct ibv_send_wr *bad;
    errno = ibv_post_send(side->qp, &wr, &bad);
    if (errno)
        die("ibv_post_send fails");
}

/* `subject`: the number of the message that is moved; for a READ it is another one's. */
static void post_message(const struct side *side, unsigned number, unsigned subject, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {(uintptr_t)slot(side, number % SENDS), length_of(side, subject), side->mr->lkey};
    struct ibv_send_wr wr = request(number, &sge, opcode);
    if (side->ah) {
        wr.wr.ud.ah = side->ah;
        wr.wr.ud.remote_qpn = side->meeting->addresses[RECEIVER].qp_num;
        wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
    } else {
        wr.wr.rdma.remote_addr = remote(side, target(subject));
        wr.wr.rdma.rkey = side->meeting->addresses[RECEIVER].rkey;
    }
    post(side, wr);
}

/* ---- unreliable services */

static enum ibv_wr_opcode unreliable_opcode(const struct side *side, unsigned number)
{
    static const enum ibv_wr_opcode kinds[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM,
                                               IBV_WR_RDMA_WRITE};
    return side->qp->qp_type == IBV_QPT_UD ? kinds[number % 2 * 2] : kinds[number % 4];
}

static void send_one(struct side *side, unsigned number, enum ibv_wr_opcode opcode)
{
    write_message(side, number, slot(side, number % SENDS));
    post_message(side, number, number, opcode);
    struct ibv_wc wc = completion(side, PATIENCE_MANY_SECONDS);
    if (is_none(&wc))
        die("message %u does not leave", number);
    usleep(100); /* the receiver must find the time for new receives */
}

/* The end is one message more, which is sent until it has arrived. */
static void send_unreliably(struct side *side)
{
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    for (unsigned number = 0; number < side->messages; number++)
        send_one(side, number, unreliable_opcode(side, number));
    while (!side->meeting->heard && now_seconds() < deadline)
        send_one(side, side->messages, IBV_WR_SEND_WITH_IMM);
    if (!side->meeting->heard)
        die("the receiver does not hear of the end");
}

static bool is_end(const struct side *side, const struct ibv_wc *wc)
{
    return wc->opcode == IBV_WC_RECV && wc->wc_flags & IBV_WC_WITH_IMM && wc->imm_data == side->messages;
}

static unsigned check_arrival(struct side *side, const struct ibv_wc *wc)
{
    unsigned number, grh = wc->wc_flags & IBV_WC_GRH ? GRH : 0;
    bool write = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (write && wc->imm_data >= side->messages)
        die("a WRITE of nobody, %u", wc->imm_data);
    if (!grh != (side->qp->qp_type != IBV_QPT_UD))
        die("a GRH where there is none, or none");
    number = check_message(side, write ? slot(side, target(wc->imm_data)) : slot(side, (unsigned)wc->wr_id) + grh,
                           wc->byte_len - grh);
    enum ibv_wr_opcode opcode = unreliable_opcode(side, number);
    bool immediate = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (write != (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) || immediate != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
        (immediate && wc->imm_data != number))
        die("message %u came as another one", number);
    return number;
}

/* The memory of WRITEs that completed nothing: each byte is the right one, or was not written. */
static unsigned check_rest(const struct side *side)
{
    unsigned whole = 0;
    for (unsigned number = 0; number < side->messages; number++) {
        const unsigned char *bytes = slot(side, target(number));
        unsigned length = length_of(side, number), right = 0;
        for (unsigned place = HEAD; place < LONGEST + GRH; place++) {
            bool fits = place < length && bytes[place] == byte_of(number, place);
            if (!fits && bytes[place])
                die("byte %u of WRITE %u, of %u bytes, is wrong", place, number, length);
            right += fits;
        }
        whole += unreliable_opcode(side, number) == IBV_WR_RDMA_WRITE && right == length - HEAD;
    }
    return whole;
}

static void receive_unreliably(struct side *side)
{
    static unsigned char times[MESSAGES_MOST];
    unsigned came = 0, again = 0, late = 0, newest = 0, silent = 0;
    while (silent < 2) {
        bool sent = side->meeting->sent, end;
        struct ibv_wc wc = completion(side, silence);
        silent = is_none(&wc) ? silent + sent : 0;
        if (is_none(&wc))
            continue;
        if ((end = is_end(side, &wc)))
            side->meeting->heard = true;
        unsigned number = end ? 0 : check_arrival(side, &wc);
        memset(slot(side, (unsigned)wc.wr_id), 0xee, LONGEST + GRH);
        post_receive(side, (unsigned)wc.wr_id);
        if (end)
            continue;
        came += !times[number];
        again += times[number]++ > 0;
        late += number < newest;
        newest = number > newest ? number : newest;
    }
    printf("%u of %u messages came, %u of them again, %u late", came, side->messages, again, late);
    if (side->qp->qp_type == IBV_QPT_UC)
        printf(", and %u WRITEs", check_rest(side));
    puts("");
}

/* ---- RC: seven operations in turn */

enum kind { SEND, WRITE, READ_BACK, WRITE_IMM, ADD, SEND_IMM, SWAP, KINDS };

static const enum ibv_wr_opcode opcodes[KINDS] = {IBV_WR_SEND,
                                                  IBV_WR_RDMA_WRITE,
                                                  IBV_WR_RDMA_READ,
                                                  IBV_WR_RDMA_WRITE_WITH_IMM,
                                                  IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                  IBV_WR_SEND_WITH_IMM,
                                                  IBV_WR_ATOMIC_CMP_AND_SWP};

static enum kind kind_of(unsigned number)
{
    return number % KINDS;
}

static uint64_t operand(unsigned number)
{
    return mix(number);
}

/* The value that the SWAP before this one has left. */
static uint64_t swapped_before(unsigned number)
{
    return number < KINDS ? 0 : operand(number - KINDS);
}

static void post_atomic(const struct side *side, unsigned number)
{
    bool add = kind_of(number) == ADD;
    struct ibv_sge sge = {(uintptr_t)slot(side, number % SENDS), 8, side->mr->lkey};
    struct ibv_send_wr wr = request(number, &sge, opcodes[kind_of(number)]);
    wr.wr.atomic.remote_addr = remote(side, target(side->messages)) + (add ? 0 : 8);
    wr.wr.atomic.rkey = side->meeting->addresses[RECEIVER].rkey;
    wr.wr.atomic.compare_add = add ? operand(number) : swapped_before(number);
    wr.wr.atomic.swap = operand(number);
    post(side, wr);
}

static void post_next(const struct side *side, unsigned number)
{
    unsigned char *memory = slot(side, number % SENDS);
    memset(memory, 0xee, LONGEST);
    if (kind_of(number) == ADD || kind_of(number) == SWAP)
        post_atomic(side, number);
    else if (kind_of(number) == READ_BACK) {
        post_message(side, number, number - 1, IBV_WR_RDMA_READ);
    } else {
        write_message(side, number, memory);
        post_message(side, number, number, opcodes[kind_of(number)]);
    }
}

/* A READ has fetched what the WRITE before it wrote; atomics have run once, in their order. */
static void check_result(const struct side *side, unsigned number, uint64_t *sum)
{
    const unsigned char *memory = slot(side, number % SENDS);
    uint64_t word;
    memcpy(&word, memory, sizeof word);
    if (kind_of(number) == READ_BACK && check_message(side, memory, length_of(side, number - 1)) != number - 1)
        die("READ %u fetched something else", number);
    if ((kind_of(number) == ADD && word != *sum) || (kind_of(number) == SWAP && word != swapped_before(number)))
        die("atomic %u found %llx", number, (unsigned long long)word);
    if (kind_of(number) == ADD)
        *sum += operand(number);
}

static void send_reliably(struct side *side)
{
    uint64_t sum = 0;
    unsigned posted = 0;
    for (unsigned done = 0; done < side->messages; done++) {
        while (posted < side->messages && posted < done + SENDS)
            post_next(side, posted++);
        struct ibv_wc wc = completion(side, PATIENCE_MANY_SECONDS);
        if (is_none(&wc) || wc.wr_id != done)
            die("request %u does not complete", done);
        check_result(side, done, &sum);
    }
}

static bool is_told(unsigned number)
{
    enum kind kind = kind_of(number);
    return kind == SEND || kind == SEND_IMM || kind == WRITE_IMM;
}

static void receive_next(struct side *side, unsigned number)
{
    struct ibv_wc wc = completion(side, PATIENCE_MANY_SECONDS);
    bool write = kind_of(number) == WRITE_IMM, immediate = kind_of(number) != SEND;
    if (is_none(&wc))
        die("message %u does not come", number);
    if (wc.opcode != (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
        immediate != !!(wc.wc_flags & IBV_WC_WITH_IMM) || (immediate && wc.imm_data != number) ||
        check_message(side, slot(side, write ? target(number) : (unsigned)wc.wr_id), wc.byte_len) != number)
        die("message %u is another one", number);
    post_receive(side, (unsigned)wc.wr_id);
}

static void await_end(const struct side *side)
{
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    while (!side->meeting->sent && now_seconds() < deadline)
        usleep(1000);
    if (!side->meeting->sent)
        die("the sender does not come to an end");
}

static void receive_reliably(struct side *side)
{
    uint64_t words[2], sum = 0, swapped = 0;
    for (unsigned number = 0; number < side->messages; number++)
        if (is_told(number))
            receive_next(side, number);
    await_end(side);
    for (unsigned number = 0; number < side->messages; number++) {
        if (kind_of(number) == WRITE)
            check_message(side, slot(side, target(number)), length_of(side, number));
        sum += kind_of(number) == ADD ? operand(number) : 0;
        swapped = kind_of(number) == SWAP ? operand(number) : swapped;
    }
    memcpy(words, slot(side, target(side->messages)), sizeof words);
    if (words[0] != sum || words[1] != swapped)
        die("the words are %llx and %llx", (unsigned long long)words[0], (unsigned long long)words[1]);
    printf("%u requests\n", side->messages);
}

/* ---- both services */

/* Both sides are at this stage. */
static void meet(struct side *side, unsigned stage)
{
    struct meeting *meeting = side->meeting;
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    meeting->stages[side->self] = stage;
    while (meeting->stages[!side->self] < stage) {
        if (now_seconds() > deadline)
            die("the other side does not come");
        usleep(1000);
    }
}

static void connect_both(struct side *side)
{
    struct meeting *meeting = side->meeting;
    bool datagrams = side->qp->qp_type == IBV_QPT_UD;
    unsigned receives = side->qp->qp_type == IBV_QPT_RC ? FEW : RECEIVES;
    meeting->addresses[side->self] = endpoint_address(&side->endpoint, side->qp, side->mr);
    meet(side, 1);
    for (unsigned index = 0; index < receives && side->self == RECEIVER; index++)
        post_receive(side, index);
    endpoint_connect(side->qp, &meeting->addresses[!side->self], 14);
    if (datagrams && side->self == SENDER)
        side->ah = endpoint_reach(&side->endpoint, &meeting->addresses[RECEIVER]);
    meet(side, 2);
}

static void work(struct side *side)
{
    bool reliable = side->qp->qp_type == IBV_QPT_RC;
    if (side->self == RECEIVER) {
        (reliable ? receive_reliably : receive_unreliably)(side);
        return;
    }
    (reliable ? send_reliably : send_unreliably)(side);
    side->meeting->sent = true;
}

static int live(struct meeting *meeting, int self, const char *host, enum ibv_qp_type type, unsigned messages)
{
    struct side side = {.meeting = meeting, .messages = messages, .self = self};
    size_t size = (size_t)(RECEIVES + messages + 1) * (LONGEST + GRH);
    endpoint_go_to(host);
    endpoint_open(&side.endpoint, 2 * RECEIVES);
    side.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (side.memory == MAP_FAILED)
        die("no memory");
    side.mr = endpoint_register(&side.endpoint, side.memory, size);
    side.qp = endpoint_create_qp(&side.endpoint, type, SENDS, RECEIVES);
    side.longest = type == IBV_QPT_UD ? endpoint_mtu(&side.endpoint) : LONGEST;
    connect_both(&side);
    work(&side);
    meet(&side, 3); /* a process that leaves retransmits nothing */
    if ((side.ah && ibv_destroy_ah(side.ah)) || ibv_destroy_qp(side.qp) || ibv_dereg_mr(side.mr))
        die("something is still in use");
    endpoint_close(&side.endpoint);
    return 0;
}

static enum ibv_qp_type type_of(const char *service)
{
    return !strcmp(service, "rc") ? IBV_QPT_RC : !strcmp(service, "uc") ? IBV_QPT_UC : IBV_QPT_UD;
}

int main(int argc, char **argv)
{
    unsigned messages = argc == 5 ? (unsigned)atoi(argv[4]) : 0;
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!messages || messages > MESSAGES_MOST || meeting == MAP_FAILED)
        die("Usage: integrity_lossy HOST HOST rc|uc|ud MESSAGES");
    pid_t sides[2];
    for (int self = 0; self < 2; self++) {
        sides[self] = fork();
        if (!sides[self])
            exit(live(meeting, self, argv[1 + self], type_of(argv[3]), messages));
    }
    int status = 0;
    pid_t first = wait(&status), other = first == sides[0] ? sides[1] : sides[0];
    if (status)
        kill(other, SIGKILL);
    int last;
    waitpid(other, &last, 0);
    return status || last;
}
