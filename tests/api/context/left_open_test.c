/* ibv_close_device destroys what the program left in the context, users before what they use, and the log says how many
 * of each kind. LeakSanitizer sees what remains. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local_fixture.h"
#include "xrc_make.h"

enum { LEFT = 2 /* of each kind */ };

/* The kinds, in the order of their ends. */
static const char *const kinds[] = {
    "flow",          "set of counters",      "queue pair",         "indirection table",
    "work queue",    "shared receive queue", "XRC domain",         "address handle",
    "memory window", "completion queue",     "completion channel", "memory region",
    "device memory", "parent domain",        "thread domain",      "protection domain",
};

static void make_receivers(const struct fixture *fixture)
{
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = fixture->pd, .cq = fixture->cq};
    struct ibv_wq *wq = ibv_create_wq(fixture->context, &init);
    EXPECT_TRUE(wq);
    EXPECT_TRUE(ibv_create_rwq_ind_table(fixture->context, &(struct ibv_rwq_ind_table_init_attr){.ind_tbl = &wq}));
    EXPECT_TRUE(xrc_make_srq(fixture->pd, xrc_make_domain(fixture->context, -1, O_CREAT), fixture->cq, 1));
}

static void make_flow(const struct fixture *fixture, struct ibv_qp *frames)
{
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof attr, .port = 1};
    EXPECT_TRUE(ibv_create_flow(frames, &attr));
    EXPECT_TRUE(ibv_create_counters(fixture->context, &(struct ibv_counters_init_attr){0}));
}

static void make_memory(const struct fixture *fixture)
{
    static char memory[64]; /* the program's, which outlives each region */
    struct ibv_td *td = ibv_alloc_td(fixture->context, &(struct ibv_td_init_attr){0});
    EXPECT_TRUE(
        ibv_alloc_parent_domain(fixture->context, &(struct ibv_parent_domain_init_attr){.pd = fixture->pd, .td = td}));
    EXPECT_TRUE(ibv_alloc_dm(fixture->context, &(struct ibv_alloc_dm_attr){.length = 64}));
    EXPECT_TRUE(ibv_alloc_mw(fixture->pd, IBV_MW_TYPE_2));
    EXPECT_TRUE(ibv_reg_mr(fixture->pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE));
}

/* One of each kind but the queue pair and the completion queue, which the fixture has already. */
static void make_one_each(const struct fixture *fixture, struct ibv_qp *frames)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
    EXPECT(ibv_query_gid(fixture->context, 1, 0, &attr.grh.dgid), ==, 0);
    EXPECT_TRUE(ibv_create_ah(fixture->pd, &attr));
    EXPECT_TRUE(ibv_create_comp_channel(fixture->context));
    make_flow(fixture, frames);
    make_receivers(fixture);
    make_memory(fixture);
}

/* The line after `from` that says how many of this kind were left. */
static const char *find_kind(const char *from, const char *kind)
{
    char line[64];
    snprintf(line, sizeof line, "ibv_close_device: %d objects of kind %s: ", LEFT, kind);
    const char *found = strstr(from, line);
    if (!found)
        printf("# not there, or in another order: %s\n", line);
    return found;
}

static void expect_kinds(const char *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        text = find_kind(text, kinds[i]);
        EXPECT_TRUE(text);
    }
}

static void what_is_left_goes_with_the_context_in_order(const void *row)
{
    static char text[1 << 16];
    struct fixture fixture = fixture_open();
    struct ibv_qp *frames = fixture_qp(&fixture, IBV_QPT_RAW_PACKET);
    fixture_qp(&fixture, IBV_QPT_UD);
    for (int i = 0; i < LEFT; i++)
        make_one_each(&fixture, frames);
    EXPECT_TRUE(ibv_alloc_pd(fixture.context) && ibv_create_cq(fixture.context, 1, NULL, NULL, 0));
    EXPECT(ibv_dereg_mr(fixture.mr), ==, 0); /* so that there are as many as of the others */
    fixture_close(&fixture);
    FILE *log = fopen(getenv("SOFTVERBS_LOG_FILE"), "r");
    EXPECT_TRUE(log && fread(text, 1, sizeof text - 1, log));
    fclose(log);
    expect_kinds(text);
}

static void all(void)
{
    CASE(what_is_left_goes_with_the_context_in_order);
}

/* Sets the variables before the library reads them, when it writes its first line. */
__attribute__((constructor)) static void log_to_file(void)
{
    static char path[] = "/tmp/softverbs-left-XXXXXX";
    int fd = mkstemp(path);
    setenv("SOFTVERBS_LOG", "info", 1);
    setenv("SOFTVERBS_LOG_FILE", path, 1);
    close(fd);
}

__attribute__((destructor)) static void remove_log(void)
{
    unlink(getenv("SOFTVERBS_LOG_FILE"));
}

int main(int argc, char **argv)
{
    return harness_main(argc, argv, all);
}
