/* A process with a queue pair for datagrams that does what its standard input says, a line each, and answers each with
 * a line: "attach GID" and "detach GID" (GID: an IPv6 address, or ::ffff: and an IPv4 one) with the number that the
 * call returned; "send GID COUNT" with 0 when all of them have left; "count" with the messages that arrived since it
 * last was asked, as GID=COUNT for each destination that was named, once nothing more arrives. It answers "ready" to
 * nothing, at first. At the end of its input it closes everything. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoint.h"

enum { GRH = 40, LENGTH = 200, RECEIVES = 256, GROUPS = 64, MULTICAST_QP = 0xffffff };

struct member {
    struct endpoint endpoint;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char memory[RECEIVES + 1][GRH + LENGTH];
    struct {
        union ibv_gid gid;
        unsigned count;
    } came[GROUPS];
    union ibv_gid groups[GROUPS]; /* those that it attached to last */
    unsigned group_count, sent;
};

static unsigned char pattern(unsigned place)
{
    return (unsigned char)(place * 2654435761u >> 24);
}

static void post_receive(struct member *member, unsigned index)
{
    struct ibv_sge sge = {(uintptr_t)member->memory[index], GRH + LENGTH, member->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(member->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

/* IPv6's header, or twenty unused bytes and IPv4's. */
static union ibv_gid destination(const unsigned char *grh)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    if (grh[0] >> 4 == 6)
        memcpy(gid.raw, grh + 24, 16);
    else
        memcpy(gid.raw + 12, grh + 36, 4);
    return gid;
}

static void note(struct member *member, union ibv_gid gid)
{
    unsigned i = 0;
    while (i < GROUPS && member->came[i].count && memcmp(&member->came[i].gid, &gid, sizeof gid))
        i++;
    if (i == GROUPS)
        die("too many groups");
    member->came[i].gid = gid;
    member->came[i].count++;
}

static void take(struct member *member, const struct ibv_wc *wc)
{
    const unsigned char *bytes = member->memory[wc->wr_id];
    if (wc->status != IBV_WC_SUCCESS || wc->byte_len != GRH + LENGTH || !(wc->wc_flags & IBV_WC_GRH))
        die("%s, %u bytes", ibv_wc_status_str(wc->status), wc->byte_len);
    for (unsigned place = 0; place < LENGTH; place++)
        if (bytes[GRH + place] != pattern(place))
            die("byte %u is wrong", place);
    note(member, destination(bytes));
    post_receive(member, (unsigned)wc->wr_id);
}

/* Takes what arrives, until nothing arrives for `seconds`. */
static void listen_for(struct member *member, double seconds)
{
    struct ibv_wc wc;
    while (endpoint_wait(&member->endpoint, &wc, 1, seconds))
        if (wc.opcode & IBV_WC_RECV)
            take(member, &wc);
        else if (wc.status == IBV_WC_SUCCESS)
            member->sent++;
        else
            die("a send ends in %s", ibv_wc_status_str(wc.status));
}

static void report(struct member *member)
{
    char text[INET6_ADDRSTRLEN];
    listen_for(member, 0.3);
    for (unsigned i = 0; i < GROUPS && member->came[i].count; i++) {
        printf("%s%s=%u", i ? " " : "", inet_ntop(AF_INET6, member->came[i].gid.raw, text, sizeof text),
               member->came[i].count);
        member->came[i].count = 0;
    }
    puts("");
}

static void send_all(struct member *member, union ibv_gid gid, unsigned count)
{
    struct ibv_ah *ah = endpoint_reach(&member->endpoint, &(struct address){.gid = gid});
    struct ibv_sge sge = {(uintptr_t)member->memory[RECEIVES], LENGTH, member->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = MULTICAST_QP;
    wr.wr.ud.remote_qkey = ENDPOINT_QKEY;
    member->sent = 0;
    for (unsigned i = 0; i < count; i++)
        if (ibv_post_send(member->qp, &wr, &bad))
            die("ibv_post_send fails");
    double deadline = now_seconds() + 10;
    while (member->sent < count && now_seconds() < deadline)
        listen_for(member, 0.01);
    printf("%u\n", count - member->sent);
    ibv_destroy_ah(ah);
}

static void obey(struct member *member, const char *line)
{
    char verb[16], address[64] = "";
    unsigned count = 0;
    union ibv_gid gid;
    sscanf(line, "%15s %63s %u", verb, address, &count);
    if (*address && inet_pton(AF_INET6, address, gid.raw) != 1)
        die("no address: %s", address);
    if (!strcmp(verb, "attach")) {
        member->groups[member->group_count++ % GROUPS] = gid;
        printf("%d\n", ibv_attach_mcast(member->qp, &gid, 0));
    } else if (!strcmp(verb, "detach"))
        printf("%d\n", ibv_detach_mcast(member->qp, &gid, 0));
    else if (!strcmp(verb, "send"))
        send_all(member, gid, count);
    else
        report(member);
}

int main(void)
{
    static struct member member;
    char line[128];
    endpoint_open(&member.endpoint, 2 * RECEIVES);
    member.mr = endpoint_register(&member.endpoint, member.memory, sizeof member.memory);
    member.qp = endpoint_create_qp(&member.endpoint, IBV_QPT_UD, RECEIVES, RECEIVES);
    endpoint_connect(member.qp, NULL, 0);
    for (unsigned i = 0; i < RECEIVES; i++)
        post_receive(&member, i);
    for (unsigned place = 0; place < LENGTH; place++)
        member.memory[RECEIVES][place] = pattern(place);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin))
        obey(&member, line);
    for (unsigned i = 0; i < GROUPS; i++)
        ibv_detach_mcast(member.qp, &member.groups[i], 0); /* where it is still a member */
    if (ibv_destroy_qp(member.qp) || ibv_dereg_mr(member.mr))
        die("something is still in use");
    endpoint_close(&member.endpoint);
    return 0;
}
