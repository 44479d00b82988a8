/* Many processes on each of two hosts, which are network namespaces, in pairs that exchange checked messages while
 * others are killed. All of a host share its UDP port. Survivors whose partner lives must not see an error. Usage:
 * kills_two_hosts HOST HOST PAIRS SECONDS KILLS (hosts: names for ip-netns(8)). Exit status 0 when all was right. */
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

/* 4.096 us * 2^17, and three retries: with 14 they were over in 0.74 s, for which now and then one of 200 processes did
 * not run, where two processors had other work. */
enum { ACK_TIMER = 17 };

enum { MOST = 128, LONGEST = 8000, LAST_WORD = 0xff };

/* One of a pair, as everybody sees it. */
struct member {
    struct address address;
    atomic_bool ready, killed;
    atomic_uint rounds;
    pid_t process;
};

struct meeting {
    atomic_bool stop;
    struct member members[MOST][2];
};

/* One of a pair, as it sees itself. */
struct talker {
    struct meeting *meeting;
    struct member *self, *partner;
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *out, *in;
    unsigned char memory[2][LONGEST];
};

/* No process waits for the dead. */
static void leave_if_alone(const struct talker *talker)
{
    if (talker->partner->killed)
        exit(0);
}

static struct ibv_wc await_completion(struct talker *talker)
{
    struct ibv_wc wc;
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    while (!endpoint_wait(&talker->endpoint, &wc, 1, 0.2)) {
        leave_if_alone(talker);
        if (now_seconds() > deadline)
            die("nothing completes in %.0f s", PATIENCE_MANY_SECONDS);
    }
    if (wc.status != IBV_WC_SUCCESS) {
        leave_if_alone(talker);
        die("a living partner's messages end in %s", ibv_wc_status_str(wc.status));
    }
    return wc;
}

static void post_receive(struct talker *talker)
{
    struct ibv_sge sge = {.addr = (uintptr_t)talker->memory[1], .length = LONGEST, .lkey = talker->in->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(talker->qp, &receive, &bad))
        die("ibv_post_recv fails");
}

static unsigned char pattern(unsigned round, unsigned place)
{
    return (unsigned char)((round * 31 + place) * 2654435761u >> 25);
}

/* The first byte says whether this is the last message; the rest follows from the round. */
static void send_message(struct talker *talker, unsigned round, unsigned length, unsigned char word)
{
    struct ibv_sge sge = {.addr = (uintptr_t)talker->memory[0], .length = length, .lkey = talker->out->lkey};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    for (unsigned i = 1; i < length; i++)
        talker->memory[0][i] = pattern(round, i);
    talker->memory[0][0] = word;
    if (ibv_post_send(talker->qp, &send, &bad))
        die("ibv_post_send fails");
}

static void check(const struct talker *talker, unsigned round, unsigned length)
{
    for (unsigned i = 1; i < length; i++)
        if (talker->memory[1][i] != pattern(round, i))
            die("byte %u of %u is wrong in round %u", i, length, round);
}

/* Both completions of a round in either order; returns the length of the message that arrived. */
static unsigned take_both(struct talker *talker)
{
    unsigned length = 0;
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = await_completion(talker);
        if (wc.opcode == IBV_WC_RECV)
            length = wc.byte_len;
    }
    return length;
}

static void ask(struct talker *talker)
{
    for (unsigned round = 0, last = 0; !last; round++) {
        unsigned length = 1 + (round * 977 + (unsigned)getpid() * 131) % (LONGEST - 1);
        last = talker->meeting->stop;
        post_receive(talker);
        send_message(talker, round, length, last ? LAST_WORD : 0);
        if (take_both(talker) != length)
            die("the echo of round %u has another length", round);
        check(talker, round, length);
        atomic_fetch_add(&talker->self->rounds, 1);
    }
}

/* The next question may arrive before the answer to the last has been acknowledged. */
static struct ibv_wc await_end_of_send(struct talker *talker)
{
    struct ibv_wc first = await_completion(talker), second = await_completion(talker);
    return first.opcode == IBV_WC_RECV ? first : second;
}

static void echo(struct talker *talker)
{
    post_receive(talker);
    struct ibv_wc question = await_completion(talker);
    for (unsigned round = 0;; round++) {
        check(talker, round, question.byte_len);
        bool last = talker->memory[1][0] == LAST_WORD;
        post_receive(talker);
        send_message(talker, round, question.byte_len, 0);
        atomic_fetch_add(&talker->self->rounds, 1);
        if (last)
            break;
        question = await_end_of_send(talker);
    }
    await_completion(talker);
}

static void connect_to_partner(struct talker *talker)
{
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    while (!talker->partner->ready) {
        leave_if_alone(talker);
        if (now_seconds() > deadline)
            die("the partner does not come");
        usleep(1000);
    }
    endpoint_connect(talker->qp, &talker->partner->address, ACK_TIMER);
}

static int live(struct meeting *meeting, unsigned pair, unsigned side, const char *host)
{
    static struct talker talker;
    endpoint_go_to(host);
    talker.meeting = meeting;
    talker.self = &meeting->members[pair][side];
    talker.partner = &meeting->members[pair][!side];
    endpoint_open(&talker.endpoint, 16);
    talker.qp = endpoint_create_qp(&talker.endpoint, IBV_QPT_RC, 8, 8);
    talker.out = endpoint_register(&talker.endpoint, talker.memory[0], LONGEST);
    talker.in = endpoint_register(&talker.endpoint, talker.memory[1], LONGEST);
    talker.self->address = endpoint_address(&talker.endpoint, talker.qp, NULL);
    atomic_store(&talker.self->ready, true);
    connect_to_partner(&talker);
    if (side)
        echo(&talker);
    else
        ask(&talker);
    return 0;
}

static void kill_somebody(struct meeting *meeting, unsigned pairs)
{
    struct member *member;
    do
        member = &meeting->members[(unsigned)rand() % pairs][rand() % 2];
    while (member->killed);
    member->killed = true;
    kill(member->process, SIGKILL);
}

static unsigned count_rounds(const struct meeting *meeting, unsigned pairs)
{
    unsigned rounds = 0;
    for (unsigned pair = 0; pair < pairs; pair++)
        rounds += meeting->members[pair][0].rounds;
    return rounds;
}

static void wait_until_all_talk(const struct meeting *meeting, unsigned pairs)
{
    double deadline = now_seconds() + PATIENCE_MANY_SECONDS;
    for (unsigned pair = 0; pair < pairs; pair++)
        while (!meeting->members[pair][0].rounds) {
            if (now_seconds() > deadline)
                die("pair %u does not begin to talk", pair);
            usleep(10000);
        }
}

/* Returns how many of the processes that were not killed ended badly. */
static unsigned reap(const struct meeting *meeting, unsigned pairs)
{
    unsigned bad = 0;
    for (unsigned i = 0; i < 2 * pairs; i++) {
        const struct member *member = &meeting->members[i / 2][i % 2];
        int status;
        waitpid(member->process, &status, 0);
        bad += !member->killed && status;
    }
    return bad;
}

int main(int argc, char **argv)
{
    unsigned pairs = argc == 6 ? (unsigned)atoi(argv[3]) : 0, kills = argc == 6 ? (unsigned)atoi(argv[5]) : 0;
    struct meeting *meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!pairs || pairs > MOST || kills > pairs || meeting == MAP_FAILED)
        die("Usage: kills_two_hosts HOST HOST PAIRS SECONDS KILLS");
    for (unsigned i = 0; i < 2 * pairs; i++) {
        pid_t process = fork();
        if (!process)
            exit(live(meeting, i / 2, i % 2, argv[1 + i % 2]));
        meeting->members[i / 2][i % 2].process = process;
    }
    wait_until_all_talk(meeting, pairs);
    for (unsigned i = 0; i < kills; i++) {
        usleep((unsigned)(atof(argv[4]) * 1e6 / (kills + 1)));
        kill_somebody(meeting, pairs);
    }
    usleep((unsigned)(atof(argv[4]) * 1e6 / (kills + 1)));
    unsigned before = count_rounds(meeting, pairs);
    atomic_store(&meeting->stop, true);
    unsigned bad = reap(meeting, pairs);
    printf("%u processes on each host, %u killed; %u exchanges, %u of them at the end; %u survivors saw errors\n",
           pairs, kills, count_rounds(meeting, pairs), count_rounds(meeting, pairs) - before, bad);
    return bad != 0;
}
