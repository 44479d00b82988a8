/* Tag matching of messages whose bytes stay in another process's memory until the receiver fetches them: the sender
 * changes them, dies, or may not be read. Each test has two processes. The receiver is stopped while the sender posts
 * and changes memory. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "steps.h"

enum { BYTES = 100000, NO_FILTER = 77, RECEIVES = 2 << 20 /* where ordinary receives begin */ };

#define need(what) ((what) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what), _exit(1)))

/* --- both processes */

struct introduction {
    uint32_t number;
    union ibv_gid gid;
};

static void tell(int to)
{
    need(write(to, "", 1) == 1);
}

static void hear(int from)
{
    char byte;
    need(read(from, &byte, 1) == 1);
}

static void introduce(struct room *room, struct ibv_qp *qp, int peer)
{
    struct introduction mine = {.number = qp->qp_num}, other;
    need(!ibv_query_gid(room->context, 1, 0, &mine.gid));
    need(write(peer, &mine, sizeof mine) == sizeof mine && read(peer, &other, sizeof other) == sizeof other);
    need(room_join(qp, other.number, &other.gid));
    tell(peer);
    hear(peer);
}

/* --- the sender */

static void open_sender(struct room *room, int peer)
{
    need(room_open(room, 1, 1));
    struct ibv_qp_init_attr attr = {.send_cq = room->sender_cq,
                                    .recv_cq = room->sender_cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    room->senders[0].qp = ibv_create_qp(room->pd, &attr);
    need(room->senders[0].qp);
    introduce(room, room->senders[0].qp, peer);
}

static void post(struct room *room, uint32_t offset, uint64_t tag, uint32_t length, uint8_t fill)
{
    room_head(room_upper(room, offset), IBV_TMH_EAGER, fill, tag);
    memset(room_upper(room, offset) + TMH, fill, length);
    need(!room_send(room, 0, offset, offset, TMH + length));
}

static void has_sent(struct room *room)
{
    struct ibv_wc wc;
    need(room_sender_wait(room, &wc) && !wc.status);
}

/* The link learns from the receiver that it may read here. The receiver answers whether there is another message. */
static void warm_up_sender(struct room *room, int peer)
{
    char more = 1;
    while (more) {
        post(room, 0, 1, BYTES, 1);
        has_sent(room);
        need(read(peer, &more, 1) == 1);
    }
}

static void stop(pid_t process)
{
    char path[64], line[512] = "", *state = NULL;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    need(!kill(process, SIGSTOP));
    while (!state || state[2] != 'T') {
        FILE *file = fopen(path, "r");
        need(file && fgets(line, sizeof line, file));
        fclose(file);
        state = strrchr(line, ')');
        need(state);
    }
}

/* --- the receiver */

static struct ibv_qp *open_receiver(struct room *room, int peer)
{
    need(room_open(room, TAGS, OPERATIONS));
    struct ibv_qp *qp = room_make_tm_qp(room, 0);
    need(qp);
    introduce(room, qp, peer);
    return qp;
}

static void add_buffer(struct room *room, uint64_t tag, uint64_t id, uint32_t offset, uint32_t length)
{
    need(!room_add(room, tag, EXACT, id, offset, length, 0, 0, NULL));
}

static struct room_event next_of(struct room *room)
{
    struct room_event event;
    need(room_wait(room, &event));
    return event;
}

/* A message of one packet is one whose bytes were sent by reference. */
static void warm_up_receiver(struct room *room, int peer)
{
    enum { ENOUGH = 100 };
    bool whole = false;
    for (unsigned i = 0; !whole; i++) {
        need(i < ENOUGH);
        add_buffer(room, 1, 10, 0, BYTES);
        struct room_event event = next_of(room);
        need(!event.status && event.id == 10 && event.flags & IBV_WC_TM_MATCH);
        whole = event.flags == MATCHED;
        if (!whole)
            need(next_of(room).flags == IBV_WC_TM_DATA_VALID);
        need(write(peer, whole ? "\0" : "\1", 1) == 1);
    }
}

static bool holds(const struct room *room, uint32_t offset, uint8_t fill)
{
    for (uint32_t i = 0; i < BYTES; i++)
        if (room->memory[offset + i] != fill)
            return false;
    return true;
}

/* --- scenes: what each process does once messages go by reference */

struct scene {
    void (*send)(struct room *, int peer, pid_t receiver);
    void (*receive)(struct room *, struct ibv_qp *, int peer);
};

static void be_receiver(const struct scene *scene, int peer)
{
    struct room room;
    struct ibv_qp *qp = open_receiver(&room, peer);
    warm_up_receiver(&room, peer);
    scene->receive(&room, qp, peer);
    _exit(0);
}

static void be_sender(const struct scene *scene, int peer, pid_t receiver)
{
    struct room room;
    open_sender(&room, peer);
    warm_up_sender(&room, peer);
    scene->send(&room, peer, receiver);
    _exit(0);
}

static pid_t fork_child(void)
{
    pid_t child = fork();
    if (!child)
        need(!prctl(PR_SET_PDEATHSIG, SIGKILL));
    return child;
}

/* The receiver continues when the sender has ended. `signalled`: by that signal, which it raised; 0: no signal. */
static void play(const struct scene *scene, int signalled)
{
    char byte = 1, copy;
    struct iovec from = {&byte, 1}, to = {&copy, 1};
    int peers[2], status;
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1)
        skip(); /* under qemu-user, or where seccomp refuses it, bytes go in packets */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, peers), 0);
    pid_t receiver = fork_child();
    if (!receiver)
        be_receiver(scene, peers[0]);
    pid_t sender = fork_child();
    if (!sender)
        be_sender(scene, peers[1], receiver);
    close(peers[0]);
    close(peers[1]);
    assert_int_equal(waitpid(sender, &status, 0), sender);
    kill(receiver, SIGCONT);
    bool ended = signalled ? WIFSIGNALED(status) && WTERMSIG(status) == signalled
                           : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended)
        kill(receiver, SIGKILL);
    assert_int_equal(waitpid(receiver, &status, 0), receiver);
    assert_true(ended && WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- the header changes after the post, which a program must not do: under `late-read` this test fails */

static void change_headers(struct room *room, int peer, pid_t receiver)
{
    hear(peer);
    stop(receiver);
    post(room, 0, 5, BYTES, 7);
    post(room, PLACE, 6, BYTES, 8);
    room_head(room_upper(room, 0), IBV_TMH_NO_TAG, 0xbad, 9);
    room_head(room_upper(room, PLACE), IBV_TMH_EAGER, 0xbad, 9);
    need(!kill(receiver, SIGCONT));
    has_sent(room);
    has_sent(room);
}

/* The second message is not expected: its receive gets the header that was looked up, and not an entry's. */
static void match_the_header_of_the_post(struct room *room, struct ibv_qp *qp, int peer)
{
    uint8_t expected[TMH];
    add_buffer(room, 9, 49, 3 << 20, BYTES);
    add_buffer(room, 5, 50, 0, BYTES);
    need(!room_post(room, 99, RECEIVES, TMH + BYTES));
    tell(peer);
    struct room_event event = next_of(room);
    need(!event.status && event.id == 50 && event.flags == MATCHED && event.tag == 5 && event.application == 7);
    need(event.length == BYTES && holds(room, 0, 7));
    event = next_of(room);
    need(!event.status && event.id == 99 && event.opcode == IBV_WC_TM_RECV && !event.flags);
    room_head(expected, IBV_TMH_EAGER, 8, 6);
    need(event.length == TMH + BYTES && !memcmp(room->memory + RECEIVES, expected, TMH));
    need(holds(room, RECEIVES + TMH, 8));
}

static void the_header_of_the_post_is_matched_and_delivered(void **state)
{
    play(&(struct scene){change_headers, match_the_header_of_the_post}, 0);
}

/* --- the receiver may not read the sender any more */

/* Forbids reading to all threads of this process. */
static void forbid_reading(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
        _exit(NO_FILTER);
}

static void send_one(struct room *room, int peer, pid_t receiver)
{
    hear(peer);
    post(room, 0, 5, BYTES, 7);
    has_sent(room);
}

/* The bytes arrive in packets, after the match. */
static void match_without_reading(struct room *room, struct ibv_qp *qp, int peer)
{
    add_buffer(room, 5, 50, 0, BYTES);
    forbid_reading();
    tell(peer);
    struct room_event event = next_of(room);
    need(!event.status && event.id == 50 && event.flags == IBV_WC_TM_MATCH && !event.length);
    need(event.tag == 5 && event.application == 7);
    event = next_of(room);
    need(!event.status && event.id == 50 && event.flags == IBV_WC_TM_DATA_VALID && event.length == BYTES);
    need(holds(room, 0, 7));
}

static void a_match_is_told_before_bytes_that_come_in_packets(void **state)
{
    play(&(struct scene){send_one, match_without_reading}, 0);
}

/* --- the sender dies */

static void post_and_die(struct room *room, int peer, pid_t receiver)
{
    hear(peer);
    stop(receiver);
    post(room, 0, 5, BYTES, 7);
    tell(peer); /* it learns it when it continues */
    raise(SIGKILL);
}

/* Whether its header was still looked at or not, each buffer is returned once, and is the program's again. */
static void get_the_buffer_back(struct room *room, struct ibv_qp *qp, int peer)
{
    uint32_t handle;
    struct room_event event;
    need(!room_add(room, 5, EXACT, 50, 0, BYTES, 0, 0, &handle));
    tell(peer);
    hear(peer);
    for (unsigned i = 0; i < 1000; i++)
        if (room_poll(room, &event))
            need(event.id == 50 && event.flags == IBV_WC_TM_MATCH);
    need(!ibv_destroy_qp(qp));
    bool flushed = false;
    while (room_poll(room, &event)) {
        need(event.id == 50 && !flushed);
        flushed = event.status == IBV_WC_WR_FLUSH_ERR;
        need(flushed || event.flags == IBV_WC_TM_MATCH);
    }
    need(!room_operate(room, IBV_WR_TAG_DEL, 60, handle, SIGNALED, 0));
    event = next_of(room);
    need(event.id == 60 && event.status == (flushed ? IBV_WC_TM_ERR : IBV_WC_SUCCESS));
}

static void a_buffer_of_a_message_whose_sender_died_comes_back_once(void **state)
{
    play(&(struct scene){post_and_die, get_the_buffer_back}, SIGKILL);
}

TESTS(the_header_of_the_post_is_matched_and_delivered,
      a_match_is_told_before_bytes_that_come_in_packets,
      a_buffer_of_a_message_whose_sender_died_comes_back_once)
