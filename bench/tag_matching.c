/* Tag matching in numbers, through the public API: tag_matching match | list | bandwidth [SIZE [WAY [SECONDS]]], where
 * SIZE 0 is all sizes and "all" all ways. Each line of the output is a measurement: names, then a number. See tags.py.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"
#include "room.h"
#include "transport/tm/tag_list.h"

enum { MESSAGES = 20000, WINDOW = 16, LARGEST = 1 << 20, BATCH_BYTES = 1 << 24, BATCH_MOST = 1024, BATCHES = 1024 };
#define ENOUGH (0.0005 * measure_rounds(1000)) /* seconds for one number, unless the command names them */
#define EXACT UINT64_MAX
#define ANY_SOURCE 0xffff0000ffffffffu /* which leaves out where MPI's tag has the source */

#define need(what) ((what) ? (void)0 : (fprintf(stderr, "tag_matching: %s failed\n", #what), exit(1)))

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* -- time to match: one process, one message after another */

struct position {
    const char *name;
    double part; /* the part of the list that was posted before the matching entry; above 1: no entry matches */
};

static void add(struct room *room, uint64_t tag, uint64_t mask)
{
    need(!room_add(room, tag & mask, mask, tag, 0, 64, 0, 0, NULL));
}

/* A message with that tag, from posting it to its completion. */
static void exchange(struct room *room, uint64_t tag)
{
    struct room_event event;
    struct ibv_wc wc;
    room_head(room_upper(room, 0), IBV_TMH_EAGER, 0, tag);
    need(!room_send(room, 0, 0, 0, TMH + 8));
    need(room_wait(room, &event) && !event.status);
    need(room_sender_wait(room, &wc) && !wc.status);
}

static uint64_t source(uint64_t tag)
{
    return tag | (uint64_t)7 << 32;
}

static int compare(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

static const struct position positions[] = {{"first", 0}, {"middle", 0.5}, {"last", 1}, {"none", 2}};
static const uint32_t counts[] = {1, 100, 10000, 100000};
enum { POSITIONS = 4, COUNTS = 4 };

/* A list of each length, and all of them in turns: what else the machine does meets them alike. */
struct subject {
    struct room room;
    uint64_t mask, first; /* the tag that the next message has */
    uint32_t next;        /* the tag that is posted next */
    bool matches;
    uint32_t sent;
    double times[MESSAGES];
};

static void open_subject(struct subject *subject, uint32_t count, uint64_t mask, const struct position *position)
{
    *subject = (struct subject){.mask = mask, .next = count, .matches = position->part <= 1};
    subject->first = subject->matches ? (uint64_t)((count - 1) * position->part) : (uint64_t)1 << 31;
    need(room_open(&subject->room, 200000, 16) && room_connect(&subject->room, 0));
    for (int receive = 0; receive < 64; receive++)
        room_post(&subject->room, 0, 4096, 4096);
    for (uint32_t tag = 0; tag < count; tag++)
        add(&subject->room, tag, mask);
}

/* An entry that matched is posted again with a new tag, at the end of the list, so that the place stays what it is. One
 * that did not match is put back and reported. */
static void send_some(struct subject *subject, uint32_t messages)
{
    struct room *room = &subject->room;
    for (; messages; messages--) {
        uint64_t tag = subject->first++;
        double start = now();
        exchange(room, subject->mask == EXACT ? tag : source(tag));
        subject->times[subject->sent++] = now() - start;
        if (subject->matches) {
            add(room, subject->next++, subject->mask);
        } else {
            need(!room_post(room, 0, 4096, 4096));
            need(!room_operate(room, IBV_WR_TAG_SYNC, 0, 0, IBV_OPS_TM_SYNC, subject->sent));
        }
    }
}

static void measure_place(bool wild, const struct position *position)
{
    enum { TURN = 1000 };
    static struct subject subjects[COUNTS];
    for (int i = 0; i < COUNTS; i++)
        open_subject(&subjects[i], counts[i], wild ? ANY_SOURCE : EXACT, position);
    for (int turn = 0; turn < MESSAGES / TURN; turn++)
        for (int i = 0; i < COUNTS; i++)
            send_some(&subjects[i], TURN);
    for (int i = 0; i < COUNTS; i++) {
        printf("match %s %s %u %.4f\n", wild ? "wildcard" : "exact", position->name, counts[i],
               median(subjects[i].times, MESSAGES) * 1e6);
        room_close(&subjects[i].room);
    }
}

static void measure_matching(void)
{
    for (int wild = 0; wild < 2; wild++)
        for (int at = 0; at < POSITIONS; at++)
            measure_place(wild, &positions[at]);
}

/* -- the list alone: one search, with taking out and posting again where it finds something */

struct alone {
    struct tag_list list;
    void *memory;
    uint64_t mask, first, next;
    bool matches;
};

static void make_alone(struct alone *alone, uint32_t count, uint64_t mask, double part)
{
    size_t size = (tag_list_size(200000) + 63) & ~(size_t)63;
    *alone = (struct alone){.memory = memset(aligned_alloc(64, size), 0, size), .mask = mask, .matches = part <= 1};
    alone->first = alone->matches ? (uint64_t)((count - 1) * part) : 1ull << 31;
    tag_list_initialize(&alone->list, alone->memory, 200000);
    for (; alone->next < count; alone->next++)
        tag_list_insert(&alone->list, tag_list_allocate(&alone->list), alone->next, mask);
}

/* Nanoseconds for one search, of `rounds`. */
static double search(struct alone *alone, uint32_t rounds)
{
    struct tag_list *list = &alone->list;
    double start = now();
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t tag = alone->first++;
        uint32_t entry = tag_list_find(list, alone->mask == EXACT ? tag : source(tag), UINT64_MAX);
        need(!entry == !alone->matches);
        if (!entry)
            continue;
        tag_list_remove(list, entry);
        tag_list_free(list, entry);
        tag_list_insert(list, tag_list_allocate(list), alone->next++, alone->mask);
    }
    return (now() - start) / rounds * 1e9;
}

/* Each turn begins with searches that don't count: another list has had the caches. */
static void measure_list(bool wild, const struct position *position)
{
    enum { TURNS = 15, WARM = 30000, ROUNDS = 30000 };
    struct alone lists[COUNTS];
    double times[COUNTS][TURNS];
    for (int i = 0; i < COUNTS; i++)
        make_alone(&lists[i], counts[i], wild ? ANY_SOURCE : EXACT, position->part);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < COUNTS; i++) {
            search(&lists[i], WARM);
            times[i][turn] = search(&lists[i], ROUNDS);
        }
    for (int i = 0; i < COUNTS; i++) {
        printf("list %s %s %u %.2f\n", wild ? "wildcard" : "exact", position->name, counts[i], median(times[i], TURNS));
        free(lists[i].memory);
    }
}

static void measure_lists(void)
{
    for (int wild = 0; wild < 2; wild++)
        for (int at = 0; at < POSITIONS; at++)
            measure_list(wild, &positions[at]);
}

/* -- bandwidth: the sender is another process */

struct introduction {
    uint32_t number, rkey;
    uint64_t address;
    union ibv_gid gid;
};

static void introduce(struct room *room, int fd, struct ibv_qp *qp, struct introduction *peer)
{
    struct introduction mine = {
        .number = qp->qp_num, .rkey = room->mr->rkey, .address = (uintptr_t)room_upper(room, 0)};
    need(!ibv_query_gid(room->context, 1, 0, &mine.gid));
    need(write(fd, &mine, sizeof mine) == sizeof mine && read(fd, peer, sizeof *peer) == sizeof *peer);
    need(room_join(qp, peer->number, &peer->gid));
    need(write(fd, "", 1) == 1 && read(fd, &mine, 1) == 1);
}

static struct ibv_qp *make_plain(struct room *room)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = room->sender_cq,
        .recv_cq = room->sender_cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(room->pd, &attr);
}

/* Keeps a window of messages on their way; a rendezvous is over with its FIN. */
static void send_messages(struct room *room, uint8_t opcode, uint32_t size, uint32_t count)
{
    bool rendezvous = opcode == IBV_TMH_RNDV;
    struct ibv_wc wc;
    for (uint32_t sent = 0, ended = 0; ended < count;) {
        while (sent < count && sent - ended < WINDOW) {
            uint32_t slot = sent % WINDOW * 64;
            if (rendezvous) {
                need(!room_post_finish(room, 0, 0, 4096));
                room_rendezvous_head(room, room_upper(room, slot), 0, 5, 8192, size);
            } else
                room_head(room_upper(room, 0), opcode, 0, 5);
            need(!room_send(room, 0, 0, rendezvous ? slot : 0, rendezvous ? HEAD : TMH + size));
            sent++;
        }
        need(room_sender_wait(room, &wc) && !wc.status);
        ended += wc.opcode == (rendezvous ? IBV_WC_RECV : IBV_WC_SEND);
    }
}

static double receive_tagged(struct room *room, uint32_t size, uint32_t count)
{
    struct room_event event;
    uint32_t posted = 0, ended = 0;
    double start = now();
    for (; ended < count; ended += event.flags & IBV_WC_TM_DATA_VALID ? 1 : 0) {
        for (; posted < count && posted - ended < 2 * WINDOW; posted++)
            need(!room_add(room, 5, EXACT, 1, 0, size, 0, 0, NULL));
        need(room_wait(room, &event) && !event.status);
    }
    return now() - start;
}

/* No buffer has the tag: each message takes an ordinary receive, and is reported. `reported` counts this queue's
 * reported messages since it was made. */
static double receive_unexpected(struct room *room, uint32_t size, uint32_t count, uint32_t *reported)
{
    struct room_event event;
    uint32_t posted = 0, ended = 0;
    double start = now();
    while (ended < count) {
        for (; posted < count && posted - ended < 2 * WINDOW; posted++)
            need(!room_post(room, 1, 0, TMH + size));
        need(room_wait(room, &event) && !event.status && event.opcode == IBV_WC_TM_RECV && !event.flags);
        ended++;
        if (++*reported % WINDOW == 0)
            need(!room_operate(room, IBV_WR_TAG_SYNC, 0, 0, IBV_OPS_TM_SYNC, *reported));
    }
    return now() - start;
}

static double receive_plain(struct room *room, struct ibv_qp *qp, uint32_t size, uint32_t count)
{
    struct ibv_sge sge = {.addr = (uintptr_t)room->memory, .length = TMH + size, .lkey = room->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    uint32_t posted = 0;
    double start = now();
    for (uint32_t ended = 0; ended < count; ended++) {
        for (; posted < count && posted - ended < 2 * WINDOW; posted++)
            need(!ibv_post_recv(qp, &wr, &bad));
        need(room_sender_wait(room, &wc) && !wc.status);
    }
    return now() - start;
}

static double read_plain(struct room *room, struct ibv_qp *qp, const struct introduction *peer, uint32_t size,
                         uint32_t count)
{
    struct ibv_sge sge = {.addr = (uintptr_t)room->memory, .length = size, .lkey = room->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    uint32_t posted = 0;
    wr.wr.rdma.remote_addr = peer->address;
    wr.wr.rdma.rkey = peer->rkey;
    double start = now();
    for (uint32_t ended = 0; ended < count; ended++) {
        for (; posted < count && posted - ended < WINDOW; posted++)
            need(!ibv_post_send(qp, &wr, &bad));
        need(room_sender_wait(room, &wc) && !wc.status);
    }
    return now() - start;
}

enum way { EAGER, UNEXPECTED, RENDEZVOUS, SEND, READ, WAYS };

/* The receiver asks for batches until it has measured for long enough, so that a loaded machine does less work instead
 * of taking minutes. */
static uint32_t batch_of(uint32_t size)
{
    return BATCH_BYTES / size < BATCH_MOST ? BATCH_BYTES / size : BATCH_MOST;
}

/* Each side on its half of the processors, as in bench.py, so that both have one. */
static void keep_to_half(bool upper)
{
    cpu_set_t all, half;
    CPU_ZERO(&half);
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2)
        return;
    for (int at = 0, seen = 0; seen < CPU_COUNT(&all); at++)
        if (CPU_ISSET(at, &all) && (2 * seen++ >= CPU_COUNT(&all)) == upper)
            CPU_SET(at, &half);
    sched_setaffinity(0, sizeof half, &half);
}

static void be_sender(int fd, enum way way, uint32_t size)
{
    struct room room;
    struct introduction peer;
    char more;
    keep_to_half(true);
    need(room_open(&room, 1, 1));
    memset(room.memory, 1, ROOM_MEMORY);
    room.senders[0].qp = make_plain(&room);
    introduce(&room, fd, room.senders[0].qp, &peer);
    while (read(fd, &more, 1) == 1 && more)
        if (way != READ)
            send_messages(&room, way == RENDEZVOUS ? IBV_TMH_RNDV : IBV_TMH_EAGER, size, batch_of(size));
}

static double receive_batch(struct room *room, struct ibv_qp *qp, const struct introduction *peer, enum way way,
                            uint32_t size, uint32_t *reported)
{
    uint32_t count = batch_of(size);
    if (way == READ)
        return read_plain(room, qp, peer, size, count);
    if (way == UNEXPECTED)
        return receive_unexpected(room, size, count, reported);
    return way == SEND ? receive_plain(room, qp, size, count) : receive_tagged(room, size, count);
}

/* The time of a batch that a tenth of them is below: other programs take a processor away within the others. */
static double time_batches(struct room *room, int fd, enum way way, uint32_t size, double seconds)
{
    static double times[BATCHES];
    uint32_t reported = 0;
    struct introduction peer;
    size_t count = 0;
    struct ibv_qp *qp = way < SEND ? room_make_tm_qp(room, 0) : make_plain(room);
    introduce(room, fd, qp, &peer);
    for (double time = 0; !count || (time < seconds && count < BATCHES); time += times[count++]) {
        need(write(fd, "m", 1) == 1);
        times[count] = receive_batch(room, qp, &peer, way, size, &reported);
    }
    need(write(fd, "", 1) == 1);
    ibv_destroy_qp(qp);
    qsort(times, count, sizeof *times, compare);
    return times[count / 10];
}

/* Bytes in a nanosecond, of one batch at least. */
static double be_receiver(int fd, enum way way, uint32_t size, double seconds)
{
    struct room room;
    cpu_set_t all;
    need(!sched_getaffinity(0, sizeof all, &all));
    keep_to_half(false);
    need(room_open(&room, 256, 16));
    memset(room.memory, 1, ROOM_MEMORY);
    double time = time_batches(&room, fd, way, size, seconds);
    room_close(&room);
    need(!sched_setaffinity(0, sizeof all, &all)); /* for the next sender's sake */
    return (double)size * batch_of(size) / time / 1e9;
}

/* A sender must not go on when its receiver has failed, or was killed for taking too long. */
static pid_t start_sender(int fd, enum way way, uint32_t size)
{
    pid_t child = fork();
    need(child >= 0);
    if (child)
        return child;
    need(!prctl(PR_SET_PDEATHSIG, SIGKILL));
    be_sender(fd, way, size);
    _exit(0);
}

static const char *const names[] = {"eager", "unexpected", "rendezvous", "send", "read"};

static void measure_way(enum way way, uint32_t size, double seconds)
{
    int fds[2], status;
    need(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    pid_t child = start_sender(fds[1], way, size);
    printf("bandwidth %s %u %.4f\n", names[way], size, be_receiver(fds[0], way, size, seconds));
    need(waitpid(child, &status, 0) == child && !status);
    fflush(stdout);
    close(fds[0]);
    close(fds[1]);
}

/* Measures this size and this way alone; 0, "all": each. */
static void measure_bandwidth(uint32_t only, const char *name, double seconds)
{
    static const uint32_t sizes[] = {4096, 65536, LARGEST};
    for (int i = 0; i < 3; i++)
        for (enum way way = 0; way < WAYS; way++)
            if ((!only || only == sizes[i]) && (!strcmp(name, "all") || !strcmp(name, names[way])))
                measure_way(way, sizes[i], seconds);
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "match"))
        measure_matching();
    else if (count > 1 && !strcmp(arguments[1], "list"))
        measure_lists();
    else if (count > 1 && !strcmp(arguments[1], "bandwidth"))
        measure_bandwidth(count > 2 ? (uint32_t)atoi(arguments[2]) : 0, count > 3 ? arguments[3] : "all",
                          count > 4 ? atof(arguments[4]) : ENOUGH);
    else
        return 2;
    return 0;
}
