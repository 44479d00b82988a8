/* The device makes as many objects as its profile says, and refuses one more with the error number of that. Run by
 * profiles_test.py under `softverbs run --profile`, with the profile as argument. Prints TAP: a case for each kind of
 * object whose limit the profile lets this program reach. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

enum { FEW = 8192 };

static struct profile profile;
static unsigned cases, failures;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static _Alignas(4096) char memory[4096];

/* --- one object of each kind */

static void *make_pd(void)
{
    return ibv_alloc_pd(context);
}

static void *make_cq(void)
{
    return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static void *make_mr(void)
{
    return ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
}

static void *make_qp(void)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_UC};
    size_t which = 0;
    while (profile.set[PROFILE_qp_types] && !(profile.values[PROFILE_qp_types] >> types[which] & 1))
        which++;
    return ibv_create_qp(
        pd, &(struct ibv_qp_init_attr){
                .send_cq = cq, .recv_cq = cq, .qp_type = types[which], .cap = {.max_send_wr = 1, .max_send_sge = 1}});
}

static void *make_srq(void)
{
    return ibv_create_srq(pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}});
}

static void *make_mw(void)
{
    bool first = profile_value(&profile, PROFILE_mw_types, 1 << IBV_MW_TYPE_1) >> IBV_MW_TYPE_1 & 1;
    return ibv_alloc_mw(pd, first ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
}

static void *make_ah(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    struct ibv_port_attr port;
    if (ibv_query_gid(context, 1, 0, &attr.grh.dgid) || ibv_query_port(context, 1, &port))
        return NULL;
    attr.dlid = port.lid;
    return ibv_create_ah(pd, &attr);
}

/* The number of objects that are there before the first. */
#define KINDS(kind)                                                                                                    \
    kind(pd, 1, ibv_dealloc_pd, ibv_alloc_pd) kind(cq, 1, ibv_destroy_cq, ibv_create_cq)                               \
        kind(mr, 0, ibv_dereg_mr, ibv_reg_mr) kind(qp, 0, ibv_destroy_qp, ibv_create_qp)                               \
            kind(srq, 0, ibv_destroy_srq, ibv_create_srq) kind(mw, 0, ibv_dealloc_mw, ibv_alloc_mw)                    \
                kind(ah, 0, ibv_destroy_ah, ibv_create_ah)

#define UNMAKE(kind, before, call, maker)                                                                              \
    static int unmake_##kind(void *made)                                                                               \
    {                                                                                                                  \
        return call(made);                                                                                             \
    }
KINDS(UNMAKE)

static const struct kind {
    const char *name;
    enum profile_key most, error;
    enum profile_call call;
    unsigned before;
    void *(*make)(void);
    int (*unmake)(void *);
} kinds[] = {
#define KIND(kind, before, call, maker)                                                                                \
    {#kind, PROFILE_max_##kind, PROFILE_errno_##kind##_count, PROFILE_CALL_##maker, before, make_##kind, unmake_##kind},
    KINDS(KIND)};

/* --- */

static void report(bool holds, const char *name, unsigned count, int error, const struct kind *kind)
{
    printf("%s %u - one %s too many\n", holds ? "ok" : "not ok", ++cases, name);
    if (!holds)
        printf("# made %u of %llu, then errno %d in place of %d\n", count,
               (unsigned long long)profile.values[kind->most] - kind->before, error, (int)profile.values[kind->error]);
    failures += !holds;
}

static bool has_windows(void)
{
    return profile_value(&profile, PROFILE_mw_types, 1 << IBV_MW_TYPE_1);
}

static void reach(const struct kind *kind)
{
    static void *made[FEW];
    uint64_t most = profile.values[kind->most];
    unsigned count = 0;
    int error = 0;
    bool holds = most > kind->before || kind->most == PROFILE_max_srq || kind->most == PROFILE_max_mw;
    bool lacks = profile.without[kind->call] || (kind->most == PROFILE_max_mw && !has_windows());
    if (!profile.set[kind->most] || most > FEW || !holds || lacks)
        return;
    while (!error && count < FEW) {
        errno = 0;
        made[count] = kind->make();
        error = made[count] ? 0 : errno;
        count += made[count] != NULL;
    }
    report(error == (int)profile.values[kind->error] && count == most - kind->before, kind->name, count, error, kind);
    while (count)
        if (kind->unmake(made[--count]))
            failures++;
}

static bool set_up(const char *path)
{
    char why[512];
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && *list ? ibv_open_device(*list) : NULL;
    if (!profile_read(path, &profile, why, sizeof why) || !context)
        return false;
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    return pd && cq;
}

int main(int count, char **arguments)
{
    if (count != 2 || !set_up(arguments[1])) {
        printf("Bail out! no device or no profile\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        reach(&kinds[i]);
    printf("1..%u\n", cases);
    return failures ? 1 : 0;
}
