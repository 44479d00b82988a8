/* Contexts, domains, regions and device memory under two names. The near end's objects are imported; the far end
 * writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_end.h"

enum { LENGTH = 4096, SEED = 3 };

static struct ibv_context *import_near(const struct pair *pair)
{
    int fd = dup(near_pd(pair)->context->cmd_fd);
    struct ibv_context *context = ibv_import_device(fd);
    EXPECT_TRUE(context);
    EXPECT(context->cmd_fd, ==, fd);
    EXPECT_TRUE(context != near_pd(pair)->context && context->device == near_pd(pair)->context->device);
    return context;
}

static struct ibv_pd *import_near_pd(const struct pair *pair, struct ibv_context *context)
{
    struct ibv_pd *pd = ibv_import_pd(context, near_pd(pair)->handle);
    EXPECT_TRUE(pd && pd != near_pd(pair) && pd->context == context);
    EXPECT(pd->handle, ==, near_pd(pair)->handle);
    return pd;
}

static void write_to(struct pair *pair, uint32_t rkey, uint64_t address)
{
    remote_fill(pair->far.remote, pair->far.memory, LENGTH, SEED);
    end_post(&pair->far, far_send_to(pair, IBV_WR_RDMA_WRITE, 1, rkey, address, LENGTH));
    end_expect_sent(&pair->far, 1, IBV_WC_SUCCESS);
    EXPECT(remote_compare(pair->near.remote, address, LENGTH, SEED, 0), ==, -1);
}

static void an_imported_region_has_the_same_keys(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = import_near(&pair);
    struct ibv_pd *pd = import_near_pd(&pair, context);
    struct ibv_mr *mr = ibv_import_mr(pd, near_mr(&pair)->handle);
    EXPECT_TRUE(mr && mr->pd == pd && mr->context == context && !mr->addr);
    EXPECT(mr->lkey, ==, near_mr(&pair)->lkey);
    EXPECT(mr->rkey, ==, near_mr(&pair)->rkey);
    write_to(&pair, mr->rkey, pair.near.memory);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    EXPECT(ibv_close_device(context), ==, 0);
    write_to(&pair, pair.near.rkey, pair.near.memory + LENGTH);
}

/* An object that is made in an imported domain belongs to the domain, by whichever name the domain is reached. */
static void regions_of_both_names_of_a_domain_serve_its_queue_pairs(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = import_near(&pair);
    struct ibv_pd *pd = import_near_pd(&pair, context);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)pair.near.memory, LENGTH, ACCESS_ALL);
    EXPECT_TRUE(mr && mr->pd == pd);
    write_to(&pair, mr->rkey, pair.near.memory);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    EXPECT(ibv_dealloc_pd(pd), ==, EBUSY); /* the pair's objects are in it */
    ibv_unimport_pd(pd);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void an_object_can_be_destroyed_by_its_second_name(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = import_near(&pair);
    struct ibv_pd *pd = ibv_alloc_pd(near_pd(&pair)->context), *second = ibv_import_pd(context, pd->handle);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)pair.near.memory, LENGTH, ACCESS_ALL);
    struct ibv_mr *third = ibv_import_mr(second, mr->handle);
    EXPECT_TRUE(second && third);
    EXPECT(ibv_dereg_mr(third), ==, 0);
    EXPECT(ibv_dealloc_pd(second), ==, 0);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    EXPECT_TRUE(!ibv_import_pd(context, near_pd(&pair)->handle + 1000));
    EXPECT(errno, ==, ENOENT);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void what_was_destroyed_is_gone_under_all_names(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = import_near(&pair);
    struct ibv_pd *pd = ibv_alloc_pd(near_pd(&pair)->context), *second = ibv_import_pd(context, pd->handle);
    uint32_t handle = pd->handle;
    EXPECT(ibv_dealloc_pd(pd), ==, 0);
    EXPECT(ibv_dealloc_pd(second), ==, ENOENT);
    EXPECT_TRUE(!ibv_import_pd(context, handle));
    ibv_unimport_pd(second);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void device_memory_is_seen_under_both_names(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = import_near(&pair);
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(near_pd(&pair)->context, &attr),
                  *second = ibv_import_dm(context, *newer_dm_handle(dm));
    char in[64] = "seen twice", out[64];
    EXPECT_TRUE(second && second != dm && second->context == context);
    EXPECT(ibv_memcpy_to_dm(dm, 0, in, sizeof in), ==, 0);
    EXPECT(ibv_memcpy_from_dm(out, second, 0, sizeof out), ==, 0);
    EXPECT_TRUE(!memcmp(in, out, sizeof in));
    struct ibv_mr *mr = ibv_reg_dm_mr(near_pd(&pair), second, 0, 64, IBV_ACCESS_ZERO_BASED | ACCESS_ALL);
    EXPECT_TRUE(mr);
    EXPECT(ibv_free_dm(dm), ==, EBUSY);
    EXPECT(ibv_dereg_mr(mr), ==, 0);
    ibv_unimport_dm(second);
    EXPECT(ibv_free_dm(dm), ==, 0);
    EXPECT_TRUE(!ibv_import_dm(context, 1u << 30));
    EXPECT(errno, ==, ENOENT);
    EXPECT(ibv_close_device(context), ==, 0);
}

/* A context that closes leaves what was imported from it to those that remain. */
static void objects_outlive_the_context_that_made_them(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *first = import_near(&pair);
    struct ibv_pd *pd = ibv_alloc_pd(first);
    struct ibv_mr *mr = ibv_reg_mr(pd, (void *)(uintptr_t)pair.near.memory, LENGTH, ACCESS_ALL);
    struct ibv_context *second = import_near(&pair);
    struct ibv_pd *name = ibv_import_pd(second, pd->handle);
    struct ibv_mr *region = ibv_import_mr(name, mr->handle);
    EXPECT_TRUE(name && region);
    EXPECT(ibv_close_device(first), ==, 0);
    EXPECT(ibv_dealloc_pd(name), ==, EBUSY);
    EXPECT(ibv_dereg_mr(region), ==, 0);
    EXPECT(ibv_dealloc_pd(name), ==, 0);
    EXPECT(ibv_close_device(second), ==, 0);
}

/* Another process, this program anew, uses the descriptor; returns its exit status. */
static int import_elsewhere(int fd)
{
    char number[16];
    int status;
    snprintf(number, sizeof number, "%d", fd);
    pid_t child = fork();
    if (!child) {
        execl("/proc/self/exe", "importer", "--import", number, (char *)NULL);
        _exit(99);
    }
    EXPECT(waitpid(child, &status, 0), ==, child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void only_a_living_context_of_this_process_is_imported(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    int pipes[2], fd = dup(near_pd(&pair)->context->cmd_fd);
    EXPECT(pipe(pipes), ==, 0);
    EXPECT_TRUE(!ibv_import_device(-1));
    EXPECT(errno, ==, EBADF);
    EXPECT_TRUE(!ibv_import_device(pipes[0]));
    EXPECT(errno, ==, EINVAL);
    close(pipes[0]), close(pipes[1]);
    EXPECT(import_elsewhere(fd), ==, EOPNOTSUPP);
    close(fd);
}

static void two_openings_of_a_device_share_nothing(const void *row)
{
    struct pair pair = pair_open(IBV_QPT_RC);
    struct ibv_context *context = ibv_open_device(near_pd(&pair)->context->device);
    EXPECT_TRUE(!ibv_import_pd(context, near_pd(&pair)->handle));
    EXPECT(errno, ==, ENOENT);
    EXPECT(ibv_close_device(context), ==, 0);
}

static void all(void)
{
    CASE(an_imported_region_has_the_same_keys);
    CASE(regions_of_both_names_of_a_domain_serve_its_queue_pairs);
    CASE(an_object_can_be_destroyed_by_its_second_name);
    CASE(what_was_destroyed_is_gone_under_all_names);
    CASE(device_memory_is_seen_under_both_names);
    CASE(objects_outlive_the_context_that_made_them);
    CASE(only_a_living_context_of_this_process_is_imported);
    CASE(two_openings_of_a_device_share_nothing);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--import"))
        return ibv_import_device(atoi(argv[2])) ? 0 : errno;
    return harness_main(argc, argv, all);
}
