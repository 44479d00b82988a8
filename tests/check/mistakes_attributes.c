/* Attributes: of the two that are connected to each other; of one that is connected to itself. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistakes.h"

static void connect_with(enum loopback_variant variant, const struct loopback_options *wrong)
{
    struct loopback loopback;
    const struct loopback_options usual = {0};
    /* timeout-zero faulty */
    /* retry-zero faulty */
    /* rnr-retry-endless faulty */
    loopback_open(&loopback, variant == FAULTY ? wrong : &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    /* timeout-zero neighbour */
    /* retry-zero neighbour */
    /* rnr-retry-endless neighbour */
    loopback_connect(&loopback, qp, qp->qp_num, variant == NEIGHBOUR ? wrong : &usual);
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

void connect_without_timeout(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.timeout_zero = true});
}

void connect_without_retries(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.retry_zero = true});
}

void connect_for_ever(enum loopback_variant variant)
{
    connect_with(variant, &(struct loopback_options){.rnr_endless = true});
}

/* Two processes: the child is connected first. */
static void disagree_with_child(void)
{
    struct loopback loopback;
    struct loopback_options usual = {0}, deep = {.depth = 5};
    uint32_t peer;
    int ways[2];
    MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ways));
    pid_t child = fork();
    int way = ways[!child];
    loopback_open(&loopback, &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    MUST(write(way, &qp->qp_num, sizeof qp->qp_num) > 0 && read(way, &peer, sizeof peer) > 0);
    if (!child) {
        loopback_connect(&loopback, qp, peer, &usual);
        MUST(write(way, &peer, sizeof peer) > 0 && read(way, &peer, sizeof peer) > 0);
    } else {
        MUST(read(way, &(uint32_t){0}, sizeof peer) > 0);
        loopback_connect(&loopback, qp, peer, &deep); /* peers-disagree neighbour */
        MUST(write(way, &peer, sizeof peer) > 0 && waitpid(child, NULL, 0) == child);
    }
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* The MTU, in one process; the depth of READs, in two. */
void disagree(enum loopback_variant variant)
{
    struct loopback loopback;
    struct loopback_options usual = {0}, wrong = {.mtu = variant == FAULTY ? IBV_MTU_4096 : 0};
    if (variant == NEIGHBOUR) {
        disagree_with_child();
        return;
    }
    loopback_open(&loopback, &usual);
    struct ibv_qp *one = loopback_make_qp(&loopback, &usual), *other = loopback_make_qp(&loopback, &usual);
    loopback_connect(&loopback, one, other->qp_num, &usual);
    loopback_connect(&loopback, other, one->qp_num, &wrong); /* peers-disagree faulty */
    MUST(!ibv_destroy_qp(one) && !ibv_destroy_qp(other));
    loopback_close(&loopback);
}

void connect_deeply(enum loopback_variant variant)
{
    struct loopback loopback;
    const struct loopback_options usual = {0}, deep = {.target_depth = 17};
    /* rd-atomic-high faulty */
    loopback_open(&loopback, variant == FAULTY ? &deep : &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    const struct loopback_options own = {.depth = variant == NEIGHBOUR ? 100 : 16};
    /* rd-atomic-high neighbour */
    loopback_connect(&loopback, qp, qp->qp_num, &own);
    MUST(!ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* One lets the other do nothing but READs; or nothing remote at all. */
void allow_less(enum loopback_variant variant)
{
    struct loopback loopback;
    struct loopback_options usual = {0}, less = {.access = variant == FAULTY ? IBV_ACCESS_REMOTE_READ : 0};
    if (variant == NEIGHBOUR)
        less.access = IBV_ACCESS_LOCAL_WRITE;
    loopback_open(&loopback, &usual);
    struct ibv_qp *one = loopback_make_qp(&loopback, &usual), *other = loopback_make_qp(&loopback, &usual);
    loopback_connect(&loopback, one, other->qp_num, variant == NEIGHBOUR ? &less : &usual);
    if (variant == NEIGHBOUR)
        loopback_connect(&loopback, other, one->qp_num, &usual); /* access-differs neighbour */
    else
        loopback_connect(&loopback, other, one->qp_num, &less); /* access-differs faulty */
    MUST(!ibv_destroy_qp(one) && !ibv_destroy_qp(other));
    loopback_close(&loopback);
}

/* The first request of the one is not what the other expects. */
void number_differently(enum loopback_variant variant)
{
    struct loopback loopback;
    const struct loopback_options usual = {0}, other_psn = {.rq_psn = variant == TWIN ? 0 : 0x123};
    loopback_open(&loopback, &usual);
    struct ibv_qp *one = loopback_make_qp(&loopback, &usual), *other = loopback_make_qp(&loopback, &usual);
    loopback_connect(&loopback, one, other->qp_num, &usual);
    loopback_connect(&loopback, other, one->qp_num, &other_psn);
    MUST(!ibv_destroy_qp(one) && !ibv_destroy_qp(other));
    loopback_close(&loopback);
}

/* The address vector of a queue pair; of an address handle, the other way round. */
void mix_families(enum loopback_variant variant)
{
    struct loopback loopback;
    const struct loopback_options usual = {0}, mixed = {.target_gid = 1};
    loopback_open(&loopback, &usual);
    struct ibv_qp *qp = loopback_make_qp(&loopback, &usual);
    loopback_connect(&loopback, qp, qp->qp_num, variant == FAULTY ? &mixed : &usual); /* gid-families faulty */
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1, .sgid_index = 1}};
    MUST(!ibv_query_gid(loopback.context, 1, variant != NEIGHBOUR, &attr.grh.dgid));
    struct ibv_ah *ah = ibv_create_ah(loopback.pd, &attr); /* gid-families neighbour */
    MUST(ah && !ibv_destroy_ah(ah) && !ibv_destroy_qp(qp));
    loopback_close(&loopback);
}

/* The address of a route; of one that the program has from its own GID. */
void address_without_hops(enum loopback_variant variant)
{
    struct loopback loopback;
    loopback_open(&loopback, &(struct loopback_options){0});
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.hop_limit = variant == TWIN};
    struct ibv_ah *ah = NULL;
    MUST(!ibv_query_gid(loopback.context, 1, 0, &attr.grh.dgid));
    attr.grh.traffic_class = variant == NEIGHBOUR;
    if (variant == NEIGHBOUR)
        ah = ibv_create_ah(loopback.pd, &attr); /* hop-limit-zero neighbour */
    else
        ah = ibv_create_ah(loopback.pd, &attr); /* hop-limit-zero faulty */
    MUST(ah && !ibv_destroy_ah(ah));
    loopback_close(&loopback);
}
