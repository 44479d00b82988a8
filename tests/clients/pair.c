#include "pair.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/patience.h"

static void *map(size_t size, int flags)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("no memory");
    return memory;
}

void *pair_share(size_t size)
{
    return map(size, MAP_SHARED);
}

bool pair_run(void (*live)(int self, void *argument), void *argument)
{
    bool bad = false;
    for (int self = 0; self < 2; self++)
        if (!fork()) {
            live(self, argument);
            exit(0);
        }
    for (int self = 0; self < 2; self++) {
        int status = -1;
        wait(&status);
        bad |= status != 0;
    }
    return bad;
}

void side_meet(struct side *side, unsigned stage)
{
    endpoint_meet(side->meeting->stages, side->self, stage, PATIENCE_SECONDS);
}

void side_open(struct side *side, struct meeting *meeting, int self, const char *host, uint32_t length, unsigned depth)
{
    *side = (struct side){.meeting = meeting, .memory = map(length, MAP_PRIVATE), .length = length, .self = self};
    if (host)
        endpoint_go_to(host);
    endpoint_open(&side->endpoint, (int)(4 * depth));
    side->mr = endpoint_register(&side->endpoint, side->memory, length);
    side->qp = endpoint_create_qp(&side->endpoint, IBV_QPT_RC, depth, depth);
    meeting->addresses[self] = endpoint_address(&side->endpoint, side->qp, side->mr);
    side_meet(side, 1);
}

const struct address *side_peer(const struct side *side)
{
    return &side->meeting->addresses[!side->self];
}

void side_connect(struct side *side, uint8_t timeout)
{
    endpoint_connect(side->qp, side_peer(side), timeout);
}

static struct ibv_sge whole(const struct side *side)
{
    return (struct ibv_sge){(uintptr_t)side->memory, side->length, side->mr->lkey};
}

void side_receive(struct side *side)
{
    struct ibv_sge sge = whole(side);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(side->qp, &wr, &bad))
        die("ibv_post_recv fails");
}

void side_send(struct side *side, uint64_t id, unsigned flags)
{
    struct ibv_sge sge = whole(side);
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
    struct ibv_send_wr *bad;
    if (ibv_post_send(side->qp, &wr, &bad))
        die("ibv_post_send fails");
}

struct ibv_wc side_poll(struct side *side, const char *what)
{
    struct ibv_wc wc;
    double deadline = now_seconds() + PATIENCE_SECONDS;
    int found;
    while (!(found = ibv_poll_cq(side->endpoint.cq, 1, &wc)))
        if (now_seconds() > deadline)
            die("%s does not come", what);
    if (found < 0 || wc.status != IBV_WC_SUCCESS)
        die("%s: %s", what, found < 0 ? "ibv_poll_cq fails" : ibv_wc_status_str(wc.status));
    return wc;
}
