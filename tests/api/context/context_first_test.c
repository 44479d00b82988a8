/* A program closes its device and destroys afterwards what it made there, as destructors do in an unlucky order: each
 * object is gone with its context, so the call that destroys it answers ENOENT (reason 306, HANDLE), touches no memory
 * that was freed, and waits for no lock. The rows are the kinds of calls/objects.def; a kind without a row fails. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "calls/objects.def"
#include "local_fixture.h"
#include "xrc_make.h"

#define KIND(kind, ...) KIND_##kind,
enum { CALLS_OBJECTS(KIND, KIND) OBJECT_KINDS };
#define NAME(kind, ...) #kind,
static const char *const names[] = {CALLS_OBJECTS(NAME, NAME)};

enum { MANY = 3, ROUNDS = 40 /* more contexts than are kept */ };

struct kind_row {
    void *(*make)(const struct fixture *);
    int (*destroy)(void *);
};

/* -- the functions that newer headers declare */

static int call_newer(const char *name, void *object)
{
    int (*function)(void *);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    return function(object);
}

static void *make_newer(const char *name, const struct fixture *fixture, const void *attributes)
{
    void *(*function)(struct ibv_context *, const void *);
    *(void **)&function = dlsym(RTLD_DEFAULT, name);
    return function(fixture->context, attributes);
}

/* -- one of each kind */

#define MAKE(kind, call)                                                                                               \
    static void *make_##kind(const struct fixture *fixture)                                                            \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#define DESTROY(kind, call)                                                                                            \
    static int destroy_##kind(void *object)                                                                            \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

static struct ibv_wq *make_receiver(const struct fixture *fixture)
{
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = fixture->pd, .cq = fixture->cq};
    return ibv_create_wq(fixture->context, &init);
}

static void *make_AH(const struct fixture *fixture)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(fixture->context, 1, 0, &attr.grh.dgid), ==, 0);
    return ibv_create_ah(fixture->pd, &attr);
}

static void *make_IND_TABLE(const struct fixture *fixture)
{
    struct ibv_wq *wq = make_receiver(fixture);
    return ibv_create_rwq_ind_table(fixture->context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &wq});
}

static void *make_FLOW(const struct fixture *fixture)
{
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof attr, .port = 1};
    return ibv_create_flow(fixture_qp(fixture, IBV_QPT_RAW_PACKET), &attr);
}

MAKE(COUNTERS, ibv_create_counters(fixture->context, &(struct ibv_counters_init_attr){0}))
MAKE(QP, fixture_qp(fixture, IBV_QPT_RC))
MAKE(WQ, make_receiver(fixture))
MAKE(SRQ, ibv_create_srq(fixture->pd, &(struct ibv_srq_init_attr){.attr = {.max_wr = 1, .max_sge = 1}}))
MAKE(XRCD, xrc_make_domain(fixture->context, -1, O_CREAT))
MAKE(MW, ibv_alloc_mw(fixture->pd, IBV_MW_TYPE_2))
MAKE(CQ, ibv_create_cq(fixture->context, 1, NULL, ibv_create_comp_channel(fixture->context), 0))
MAKE(CHANNEL, ibv_create_comp_channel(fixture->context))
MAKE(COMP_CNTR, make_newer("ibv_create_comp_cntr", fixture, &(struct newer_comp_cntr_init_attr){0}))
MAKE(MR, ibv_reg_mr(fixture->pd, fixture->memory, 64, IBV_ACCESS_LOCAL_WRITE))
MAKE(DMAH, make_newer("ibv_alloc_dmah", fixture, &(struct newer_dmah_init_attr){.comp_mask = NEWER_DMAH_PH}))
MAKE(DM, ibv_alloc_dm(fixture->context, &(struct ibv_alloc_dm_attr){.length = 64}))
MAKE(PARENT_DOMAIN, ibv_alloc_parent_domain(fixture->context, &(struct ibv_parent_domain_init_attr){.pd = fixture->pd}))
MAKE(TD, ibv_alloc_td(fixture->context, &(struct ibv_td_init_attr){0}))
MAKE(PD, ibv_alloc_pd(fixture->context))

DESTROY(FLOW, ibv_destroy_flow(object))
DESTROY(COUNTERS, ibv_destroy_counters(object))
DESTROY(QP, ibv_destroy_qp(object))
DESTROY(IND_TABLE, ibv_destroy_rwq_ind_table(object))
DESTROY(WQ, ibv_destroy_wq(object))
DESTROY(SRQ, ibv_destroy_srq(object))
DESTROY(XRCD, ibv_close_xrcd(object))
DESTROY(AH, ibv_destroy_ah(object))
DESTROY(MW, ibv_dealloc_mw(object))
DESTROY(CQ, ibv_destroy_cq(object))
DESTROY(CHANNEL, ibv_destroy_comp_channel(object))
DESTROY(COMP_CNTR, call_newer("ibv_destroy_comp_cntr", object))
DESTROY(MR, ibv_dereg_mr(object))
DESTROY(DMAH, call_newer("ibv_dealloc_dmah", object))
DESTROY(DM, ibv_free_dm(object))
DESTROY(PARENT_DOMAIN, ibv_dealloc_pd(object))
DESTROY(TD, ibv_dealloc_td(object))
DESTROY(PD, ibv_dealloc_pd(object))

#define ROW(kind, ...) [KIND_##kind] = {make_##kind, destroy_##kind},
static const struct kind_row kinds[OBJECT_KINDS] = {CALLS_OBJECTS(ROW, ROW)};

/* -- cases */

static void an_object_is_gone_with_its_context(const void *row)
{
    const struct kind_row *kind = row;
    struct fixture fixture = fixture_open();
    void *objects[MANY];
    for (int i = 0; i < MANY; i++) {
        objects[i] = kind->make(&fixture);
        EXPECT_TRUE(objects[i]);
    }
    fixture_close(&fixture);
    for (int i = 0; i < MANY; i++)
        EXPECT(kind->destroy(objects[i]), ==, ENOENT);
    EXPECT(kind->destroy(objects[0]), ==, ENOENT); /* and stays so */
}

/* The process lives on with the other context, and numbers of objects are given again. */
static void another_context_is_not_touched(const void *row)
{
    const struct kind_row *kind = row;
    struct fixture first = fixture_open(), second = fixture_open();
    void *gone = kind->make(&first), *here = kind->make(&second);
    EXPECT_TRUE(gone && here);
    fixture_close(&first);
    EXPECT(kind->destroy(gone), ==, ENOENT);
    EXPECT(kind->destroy(here), ==, 0);
    fixture_close(&second);
}

static void a_handle_of_a_shared_queue_pair_is_gone_with_its_context(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_xrcd *domain = xrc_make_domain(fixture.context, -1, O_CREAT);
    struct ibv_qp *receiver = xrc_make_receiver(fixture.context, domain);
    struct ibv_qp *handle = xrc_make_handle(fixture.context, domain, receiver->qp_num);
    EXPECT_TRUE(handle);
    fixture_close(&fixture);
    EXPECT(ibv_destroy_qp(handle), ==, ENOENT);
    EXPECT(ibv_destroy_qp(receiver), ==, ENOENT);
}

/* The context that was imported is another name for the same device context of the kernel. */
static void a_thread_domain_stays_with_the_context_that_was_imported(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_context *imported = ibv_import_device(dup(fixture.context->cmd_fd));
    struct ibv_td *td = ibv_alloc_td(fixture.context, &(struct ibv_td_init_attr){0});
    EXPECT_TRUE(imported && td);
    fixture_close(&fixture);
    EXPECT(ibv_dealloc_td(td), ==, 0);
    EXPECT(ibv_close_device(imported), ==, 0);
}

static void a_counter_outlives_the_queue_pair_that_it_counts(const void *row)
{
    static const struct newer_qp_attach_comp_cntr_attr sends = {.op_mask = NEWER_COUNT_SEND};
    struct fixture fixture = fixture_open();
    struct ibv_qp *qp = fixture_qp(&fixture, IBV_QPT_RC);
    void *counter = make_COMP_CNTR(&fixture);
    int (*attach)(struct ibv_qp *, void *, const void *);
    *(void **)&attach = dlsym(RTLD_DEFAULT, "ibv_qp_attach_comp_cntr");
    EXPECT(attach(qp, counter, &sends), ==, 0);
    EXPECT(destroy_COMP_CNTR(counter), ==, EBUSY);
    EXPECT(ibv_destroy_qp(qp), ==, 0);
    EXPECT(destroy_COMP_CNTR(counter), ==, 0);
    fixture_close(&fixture);
}

/* The last context of the two takes the region, which both have a name for. */
static void an_imported_name_is_gone_with_its_context(const void *row)
{
    struct fixture fixture = fixture_open();
    struct ibv_context *imported = ibv_import_device(dup(fixture.context->cmd_fd));
    struct ibv_pd *pd = ibv_import_pd(imported, fixture.pd->handle);
    struct ibv_mr *mr = ibv_import_mr(pd, fixture.mr->handle);
    EXPECT_TRUE(mr);
    EXPECT(ibv_close_device(imported), ==, 0);
    EXPECT(ibv_dereg_mr(mr), ==, ENOENT);
    EXPECT(ibv_dealloc_pd(pd), ==, ENOENT);
    fixture_close(&fixture);
    EXPECT(ibv_dereg_mr(fixture.mr), ==, ENOENT);
}

/* A program that never destroys what it makes does not grow for ever: LeakSanitizer and AddressSanitizer look on. */
static void many_contexts_come_and_go(const void *row)
{
    struct ibv_comp_channel *channel = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *context = local_open();
        channel = ibv_create_comp_channel(context);
        EXPECT_TRUE(channel);
        EXPECT(ibv_close_device(context), ==, 0);
    }
    EXPECT(ibv_destroy_comp_channel(channel), ==, ENOENT);
}

static void run(int kind, const char *what, void (*body)(const void *))
{
    char name[128];
    snprintf(name, sizeof name, "%s: %s", names[kind], what);
    harness_run(name, body, &kinds[kind]);
}

static void all(void)
{
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        run(kind, "an object is gone with its context", an_object_is_gone_with_its_context);
        run(kind, "another context is not touched", another_context_is_not_touched);
    }
    CASE(a_handle_of_a_shared_queue_pair_is_gone_with_its_context);
    CASE(an_imported_name_is_gone_with_its_context);
    CASE(many_contexts_come_and_go);
    CASE(a_thread_domain_stays_with_the_context_that_was_imported);
    CASE(a_counter_outlives_the_queue_pair_that_it_counts);
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
