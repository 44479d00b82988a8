/* The program of `softverbs demo` where the distribution's ibv_rc_pingpong is not installed, and of its tour: two
 * processes send messages to and fro over a reliable connection and compare every byte. It uses verbs alone and is
 * started as any program is: softverbs run -- pingpong.
 *
 *   pingpong [-p PORT] [-n COUNT] [-s SIZE]              waits for the other end
 *   pingpong [-p PORT] [-n COUNT] [-s SIZE] [-w] ADDRESS begins; with -w it first writes with a key that is wrong
 *
 * Exit status: 0, 1 with a sentence on stderr, or 2 for wrong arguments. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_MOST = 1 << 20, COUNT_MOST = 1000000, POLLS = 100000 };

struct options {
    in_port_t port;
    unsigned count, size;
    bool wrong_key;
    const char *peer; /* NULL: this end waits */
};

struct end {
    int tcp; /* the connection over which the ends have exchanged their addresses */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *out, *in;
    unsigned sent, received; /* completions that the program has not waited for yet */
};

/* The facts that one end needs of the other, in network byte order. */
struct address {
    uint32_t qp_num, rkey;
    uint64_t memory;
    union ibv_gid gid;
};

static void need(bool holds, const char *call)
{
    if (holds)
        return;
    fprintf(stderr, "pingpong: %s: %s\n", call, strerror(errno));
    exit(1);
}

static void open_end(struct end *end, unsigned size)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && *list, "ibv_get_device_list");
    need((end->context = ibv_open_device(*list)) != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    void *out = calloc(1, size), *in = calloc(1, size);
    need(out && in, "calloc");
    need((end->pd = ibv_alloc_pd(end->context)) != NULL, "ibv_alloc_pd");
    need((end->out = ibv_reg_mr(end->pd, out, size, 0)) != NULL, "ibv_reg_mr");
    need((end->in = ibv_reg_mr(end->pd, in, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL,
         "ibv_reg_mr");
    need((end->cq = ibv_create_cq(end->context, 4, NULL, NULL, 0)) != NULL, "ibv_create_cq");
    struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    need((end->qp = ibv_create_qp(end->pd, &init)) != NULL, "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    need(!(errno = ibv_modify_qp(end->qp, &attr, mask)), "ibv_modify_qp");
}

static void post_receive(struct end *end)
{
    struct ibv_sge sge = {(uintptr_t)end->in->addr, (uint32_t)end->in->length, end->in->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    need(!(errno = ibv_post_recv(end->qp, &wr, &bad)), "ibv_post_recv");
}

/* The TCP connection over which the ends exchange their addresses. */
static int meet(const struct options *options)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(options->port)};
    int tcp = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    need(tcp >= 0, "socket");
    if (options->peer) {
        if (inet_pton(AF_INET, options->peer, &name.sin_addr) != 1) {
            fprintf(stderr, "pingpong: \"%s\" is not an IPv4 address.\n", options->peer);
            exit(2);
        }
        need(!connect(tcp, (struct sockaddr *)&name, sizeof name), "connect");
        return tcp;
    }
    setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    need(!bind(tcp, (struct sockaddr *)&name, sizeof name) && !listen(tcp, 1), "bind");
    int peer = accept(tcp, NULL, NULL);
    need(peer >= 0, "accept");
    close(tcp);
    return peer;
}

static struct address exchange(const struct end *end)
{
    struct address ours = {.qp_num = htonl(end->qp->qp_num),
                           .rkey = htonl(end->in->rkey),
                           .memory = (uintptr_t)end->in->addr},
                   theirs;
    need(!ibv_query_gid(end->context, 1, 0, &ours.gid), "ibv_query_gid");
    need(write(end->tcp, &ours, sizeof ours) == sizeof ours, "write");
    need(recv(end->tcp, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs, "recv");
    return theirs;
}

static void connect_end(struct end *end, const struct address *peer)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = ntohl(peer->qp_num),
                              .min_rnr_timer = 12,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 7, .rnr_retry = 7};
    need(!(errno = ibv_modify_qp(end->qp, &rtr,
                                 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
         "ibv_modify_qp to RTR");
    need(!(errno = ibv_modify_qp(end->qp, &rts,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                     IBV_QP_MAX_QP_RD_ATOMIC)),
         "ibv_modify_qp to RTS");
}

/* The peer's messages still complete once it has left, so its connection is checked only after many empty polls. */
static bool other_end_has_left(const struct end *end)
{
    return recv(end->tcp, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A request that was posted always completes, also if the peer has left meanwhile, and its status says more than the
 * peer's end. A receive completes only if a message arrives. */
static enum ibv_wc_opcode next_completion(struct end *end, bool has_posted)
{
    struct ibv_wc wc;
    int count;
    for (unsigned polls = 1; !(count = ibv_poll_cq(end->cq, 1, &wc)); polls++)
        if (!has_posted && !(polls % POLLS) && other_end_has_left(end)) {
            fputs("pingpong: The other end has ended.\n", stderr);
            exit(1);
        }
    need(count > 0, "ibv_poll_cq");
    if (wc.status == IBV_WC_SUCCESS)
        return wc.opcode;
    fprintf(stderr, "pingpong: queue pair 0x%x: a completion has the status \"%s\".\n", end->qp->qp_num,
            ibv_wc_status_str(wc.status));
    exit(1);
}

static void post(struct end *end, struct ibv_send_wr *wr)
{
    struct ibv_sge sge = {(uintptr_t)end->out->addr, (uint32_t)end->out->length, end->out->lkey};
    struct ibv_send_wr *bad;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    need(!(errno = ibv_post_send(end->qp, wr, &bad)), "ibv_post_send");
}

/* Waits for one completion of a send, or of a receive, and counts the other completions that come first: if an ACK was
 * lost, the peer's next message can arrive before it. */
static void await(struct end *end, unsigned *kind)
{
    while (!*kind)
        ++*(next_completion(end, kind == &end->sent) & IBV_WC_RECV ? &end->received : &end->sent);
    --*kind;
}

/* A byte depends on its position and on the round, so that bytes at another place or of another round are found. */
static uint8_t byte_of(unsigned round, unsigned position)
{
    return (uint8_t)(round * 31 + position * 7 + (position >> 8));
}

static void check_bytes(const struct end *end, unsigned round, unsigned size)
{
    const uint8_t *bytes = end->in->addr;
    for (unsigned i = 0; i < size; i++)
        if (bytes[i] != byte_of(round, i)) {
            fprintf(stderr, "pingpong: message %u: byte %u is 0x%02x instead of 0x%02x.\n", round, i, bytes[i],
                    byte_of(round, i));
            exit(1);
        }
}

static void fill(struct end *end, unsigned round, unsigned size)
{
    uint8_t *bytes = end->out->addr;
    for (unsigned i = 0; i < size; i++)
        bytes[i] = byte_of(round, i);
}

/* A receive is posted before the peer can send the message that it is for: the first before the addresses are
 * exchanged, each further one before the answer that lets the peer go on. */
static void play(struct end *end, const struct options *options)
{
    for (unsigned round = 0; round < options->count; round++) {
        fill(end, round, options->size);
        if (options->peer) {
            post(end, &(struct ibv_send_wr){.opcode = IBV_WR_SEND});
            await(end, &end->sent);
            await(end, &end->received);
            check_bytes(end, round, options->size);
            post_receive(end);
        } else {
            await(end, &end->received);
            check_bytes(end, round, options->size);
            post_receive(end);
            post(end, &(struct ibv_send_wr){.opcode = IBV_WR_SEND});
            await(end, &end->sent);
        }
    }
}

static void write_with_wrong_key(struct end *end, const struct address *peer)
{
    struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = peer->memory;
    wr.wr.rdma.rkey = ntohl(peer->rkey) ^ 0xff;
    post(end, &wr);
    next_completion(end, true);
}

static bool read_number(const char *text, unsigned least, unsigned most, unsigned *to)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || number < least || number > most)
        return false;
    *to = (unsigned)number;
    return true;
}

static bool read_options(struct options *options, int argc, char **argv)
{
    unsigned port = options->port;
    bool right = true;
    for (int letter; right && (letter = getopt(argc, argv, "p:n:s:w")) != -1;)
        switch (letter) {
        case 'p':
            right = read_number(optarg, 1, 65535, &port);
            break;
        case 'n':
            right = read_number(optarg, 1, COUNT_MOST, &options->count);
            break;
        case 's':
            right = read_number(optarg, 1, SIZE_MOST, &options->size);
            break;
        case 'w':
            options->wrong_key = true;
            break;
        default:
            right = false;
        }
    options->port = (in_port_t)port;
    options->peer = argv[optind];
    return right && argc - optind <= 1 && (options->peer || !options->wrong_key);
}

int main(int argc, char **argv)
{
    struct options options = {.port = 18515, .count = 1000, .size = 4096};
    struct end end = {0};
    if (!read_options(&options, argc, argv)) {
        fprintf(stderr, "Usage: pingpong [-p PORT] [-n COUNT up to %d] [-s SIZE up to %d] [[-w] ADDRESS]\n", COUNT_MOST,
                SIZE_MOST);
        return 2;
    }
    open_end(&end, options.size);
    post_receive(&end);
    end.tcp = meet(&options);
    struct address peer = exchange(&end);
    connect_end(&end, &peer);
    need(write(end.tcp, "", 1) == 1 && recv(end.tcp, &(char){0}, 1, MSG_WAITALL) == 1,
         "the other end"); /* goes on when both ends have connected */
    if (options.wrong_key)
        write_with_wrong_key(&end, &peer);
    play(&end, &options);
    printf("%u messages of %u bytes went each way. Every byte is right.\n", options.count, options.size);
    need(write(end.tcp, "", 1) == 1, "write"); /* The end that leaves first could leave a lost ACK unanswered. */
    recv(end.tcp, &(char){0}, 1, MSG_WAITALL);
    return fflush(stdout) ? 1 : 0;
}
