/* Two processes whose work is checked to the last byte, while rules are given and taken back.
 *
 *     beside WORK LEAST MOST
 *
 * WORK is send, write, read, atomic or datagram; its messages have LEAST to MOST bytes. Prints the numbers of the two
 * processes, continues until a line arrives on standard input, then ends the work, and sends one message over a new
 * connection between the two. The exit status is 0 if all was as it should be. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"
#include "endpoint.h"

enum {
    SLOTS = 8,         /* messages that are under way at most */
    PLACE = 512 << 10, /* bytes of one */
    MEMORY = SLOTS * PLACE,
    TIMEOUT = 17,                /* half a second, so that a delay is not a silence */
    LOOK = 20,                   /* milliseconds between two looks whether it is to end */
    LAST = (1 << 30) + SLOTS - 1 /* wr_id of the message over the new connection, in the last place */
};

enum { REQUESTER, RESPONDER };

static struct shared {
    atomic_uint stages[2];
    atomic_bool ends;
    struct address addresses[2], last[2];
    atomic_ulong posted, seen; /* messages that the responder is to see, and those that it has seen */
} * shared;

static const char *work;
static uint32_t least, most;
static struct endpoint endpoint;
static struct ibv_qp *qp, *last;
static struct ibv_ah *way; /* of datagrams */
static struct ibv_mr *mr;
static uint8_t *memory;
static int self;

static bool is(const char *name)
{
    return !strcmp(work, name);
}

/* --- what a message has */

static uint32_t length_of(uint64_t number)
{
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
    return least + (uint32_t)((mixed >> 32) % (most - least + 1));
}

static uint64_t word_of(uint64_t number, uint32_t at)
{
    return number * 0xbf58476d1ce4e5b9 + at;
}

static void fill(uint8_t *to, uint64_t number, uint32_t length)
{
    for (uint32_t at = 0; at + 8 <= length; at += 8)
        memcpy(to + at, &(uint64_t){word_of(number, at)}, 8);
}

static void check(const uint8_t *from, uint64_t number, uint32_t length)
{
    for (uint32_t at = 0; at + 8 <= length; at += 8) {
        uint64_t word;
        memcpy(&word, from + at, 8);
        errno = 0;
        if (word != word_of(number, at))
            die("message %lu has wrong bytes at %u of %u", (unsigned long)number, at, length);
    }
}

static uint8_t *place_of(uint64_t number)
{
    return memory + number % SLOTS * PLACE;
}

/* --- both sides */

static void post_receive(struct ibv_qp *to, uint64_t number)
{
    struct ibv_sge sge = {(uintptr_t)place_of(number), PLACE, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1}, *bad;
    errno = ibv_post_recv(to, &wr, &bad);
    if (errno)
        die("ibv_post_recv fails");
}

static void post(struct ibv_qp *by, struct ibv_send_wr *wr, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)place_of(wr->wr_id), length, mr->lkey};
    struct ibv_send_wr *bad;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->send_flags |= IBV_SEND_SIGNALED;
    errno = ibv_post_send(by, wr, &bad);
    if (errno)
        die("ibv_post_send fails");
}

/* Up to `count` completions that are good. */
static int take(struct ibv_wc *entries, int count, double seconds)
{
    int got = endpoint_wait(&endpoint, entries, count, seconds);
    errno = 0;
    for (int i = 0; i < got; i++)
        if (entries[i].status)
            die("work %lu ends with %s (%u)", (unsigned long)entries[i].wr_id, ibv_wc_status_str(entries[i].status),
                entries[i].vendor_err);
    return got;
}

static void open_side(void)
{
    endpoint_open(&endpoint, 8 * SLOTS);
    memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mr = endpoint_register(&endpoint, memory, MEMORY);
    qp = endpoint_create_qp(&endpoint, is("datagram") ? IBV_QPT_UD : IBV_QPT_RC, 2 * SLOTS, SLOTS);
    shared->addresses[self] = endpoint_address(&endpoint, qp, mr);
    endpoint_meet(shared->stages, self, 1, PATIENCE_MANY_SECONDS);
    endpoint_connect(qp, &shared->addresses[!self], TIMEOUT);
    for (unsigned i = 0; self == RESPONDER && i < SLOTS; i++)
        post_receive(qp, i);
    for (unsigned i = 0; self == RESPONDER && is("read") && i < SLOTS; i++)
        fill(memory + i * PLACE, i, PLACE);
    endpoint_meet(shared->stages, self, 2, PATIENCE_MANY_SECONDS);
}

/* A ring that is dead leads nowhere for new connections, either. */
static void send_last(void)
{
    struct ibv_wc entry;
    last = endpoint_create_qp(&endpoint, IBV_QPT_RC, SLOTS, SLOTS);
    shared->last[self] = endpoint_address(&endpoint, last, mr);
    endpoint_meet(shared->stages, self, 3, PATIENCE_MANY_SECONDS);
    endpoint_connect(last, &shared->last[!self], TIMEOUT);
    if (self == RESPONDER)
        post_receive(last, LAST);
    endpoint_meet(shared->stages, self, 4, PATIENCE_MANY_SECONDS);
    if (self == REQUESTER) {
        fill(place_of(LAST), LAST, 64);
        post(last, &(struct ibv_send_wr){.wr_id = LAST, .opcode = IBV_WR_SEND}, 64);
    }
    do
        if (!take(&entry, 1, PATIENCE_MANY_SECONDS))
            die("the message over a new connection does not come");
    while (entry.wr_id != LAST);
    if (self == RESPONDER)
        check(place_of(LAST), LAST, 64);
    endpoint_meet(shared->stages, self, 5, PATIENCE_MANY_SECONDS);
}

/* --- the responder */

/* A datagram says which it is. A message that a connection brings is the next, and the WRITE before it is there. */
static void see(const struct ibv_wc *entry)
{
    enum { GRH = 40 };
    const uint8_t *at = place_of(entry->wr_id);
    uint64_t number = shared->seen;
    if (is("datagram")) {
        memcpy(&number, at + GRH, 8);
        number *= 0x96de1b173f119089; /* the inverse of the factor in word_of */
        check(at + GRH, number, entry->byte_len - GRH);
    } else {
        uint32_t length = length_of(number);
        errno = 0;
        if (is("send") && entry->byte_len != length)
            die("message %lu has %u bytes and not %u", (unsigned long)number, entry->byte_len, length);
        check(at, number, length);
    }
}

/* Messages that have ended at the requester may still have to be seen here. */
static bool goes_on(void)
{
    bool counts = is("send") || is("write");
    return shared->stages[REQUESTER] < 3 || (counts && shared->seen < shared->posted);
}

static void respond(void)
{
    struct ibv_wc entries[SLOTS];
    double idle = now_seconds();
    while (goes_on()) {
        int count = take(entries, SLOTS, LOOK / 1e3);
        for (int i = 0; i < count; i++) {
            see(&entries[i]);
            shared->seen++;
            post_receive(qp, entries[i].wr_id + SLOTS);
        }
        idle = count || !shared->ends ? now_seconds() : idle;
        errno = 0;
        if (now_seconds() - idle > PATIENCE_MANY_SECONDS)
            die("%lu of %lu messages came", shared->seen, shared->posted);
    }
}

/* --- the requester */

static struct ibv_send_wr request(uint64_t number)
{
    static const struct {
        const char *work;
        enum ibv_wr_opcode opcode;
    } works[] = {{"send", IBV_WR_SEND},
                 {"write", IBV_WR_RDMA_WRITE_WITH_IMM},
                 {"read", IBV_WR_RDMA_READ},
                 {"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD},
                 {"datagram", IBV_WR_SEND}};
    const struct address *theirs = &shared->addresses[RESPONDER];
    struct ibv_send_wr wr = {.wr_id = number};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (is(works[i].work))
            wr.opcode = works[i].opcode;
    wr.wr.rdma.remote_addr = theirs->memory + (is("atomic") ? 0 : number % SLOTS * PLACE);
    wr.wr.rdma.rkey = theirs->rkey;
    if (is("atomic")) {
        wr.wr.atomic.remote_addr = wr.wr.rdma.remote_addr;
        wr.wr.atomic.rkey = theirs->rkey;
        wr.wr.atomic.compare_add = 1;
    }
    return wr;
}

static bool fills_place(void)
{
    return is("send") || is("write") || is("datagram");
}

/* A plain WRITE, which may be done without a packet, and a SEND that says that it is there: two requests. */
static void post_write_and_word(uint64_t number)
{
    struct ibv_send_wr wr = request(number);
    wr.opcode = IBV_WR_RDMA_WRITE;
    post(qp, &wr, length_of(number));
    wr = (struct ibv_send_wr){.wr_id = number, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
    wr.wr.rdma.remote_addr = shared->addresses[RESPONDER].memory;
    wr.wr.rdma.rkey = shared->addresses[RESPONDER].rkey;
    post(qp, &wr, 0);
}

static void post_next(uint64_t number)
{
    struct ibv_send_wr wr = request(number);
    if (fills_place())
        fill(place_of(number), number, length_of(number));
    if (is("write"))
        return post_write_and_word(number);
    if (is("datagram")) {
        way = way ? way : endpoint_reach(&endpoint, &shared->addresses[RESPONDER]);
        wr.wr.ud.ah = way;
        wr.wr.ud.remote_qpn = shared->addresses[RESPONDER].qp_num;
        wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
    }
    post(qp, &wr, is("atomic") ? 8 : length_of(number));
}

static void judge(uint64_t number)
{
    uint64_t found;
    memcpy(&found, place_of(number), 8);
    errno = 0;
    if (is("atomic") && found != number)
        die("atomic %lu finds %lu", (unsigned long)number, (unsigned long)found);
    if (is("read"))
        check(place_of(number), number % SLOTS, length_of(number));
}

/* A place is used again when its work has ended here, and, where its message is to be seen there, was seen. */
static bool has_place(uint64_t posted, uint64_t ended)
{
    bool seen = is("send") || is("write") ? posted - shared->seen < SLOTS : true;
    return seen && posted - ended < SLOTS;
}

static void request_on(void)
{
    struct ibv_wc entries[SLOTS];
    uint64_t posted = 0, ended = 0, words = is("write") ? 2 : 1, got = 0;
    double idle = now_seconds();
    while (!shared->ends || ended < posted) {
        while (!shared->ends && has_place(posted, ended))
            post_next(posted++);
        int count = take(entries, SLOTS, LOOK / 1e3);
        for (int i = 0; i < count; i++)
            if (++got % words == 0)
                judge(ended++);
        idle = count ? now_seconds() : idle;
        errno = 0;
        if (ended < posted && now_seconds() - idle > PATIENCE_MANY_SECONDS)
            die("nothing ends any more; %lu of %lu have", (unsigned long)ended, (unsigned long)posted);
    }
    shared->posted = posted;
}

static void check_end(void)
{
    unsigned long seen = shared->seen, posted = shared->posted;
    errno = 0;
    if ((is("send") || is("write")) && seen != posted)
        die("%lu of %lu messages came", seen, posted);
    if (is("atomic") && self == RESPONDER && *(uint64_t *)(void *)memory != posted)
        die("%lu atomics, and the sum is %lu", posted, *(unsigned long *)(void *)memory);
    if (self == REQUESTER)
        printf("%lu\n", posted);
}

static void close_side(void)
{
    if (way)
        ibv_destroy_ah(way);
    ibv_destroy_qp(last);
    ibv_destroy_qp(qp);
    ibv_dereg_mr(mr);
    endpoint_close(&endpoint);
}

static int play(int side)
{
    self = side;
    open_side();
    if (side == REQUESTER)
        request_on();
    else
        respond();
    send_last();
    check_end();
    close_side();
    return 0;
}

static pid_t start(int side)
{
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a run that is given up leaves no side that continues */
        exit(play(side));
    }
    return child;
}

static bool ended_well(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child && !status;
}

int main(int count, char **arguments)
{
    char line[8];
    if (count != 4)
        die("Usage: beside WORK LEAST MOST");
    work = arguments[1];
    least = (uint32_t)atoi(arguments[2]);
    most = (uint32_t)atoi(arguments[3]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t requester = start(REQUESTER), responder = start(RESPONDER);
    printf("%d %d\n", (int)requester, (int)responder);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        line[0] = 0;
    shared->ends = true;
    bool well = ended_well(requester);
    return !(ended_well(responder) && well);
}
