/* What the layer of a profile answers by itself, over calls that are made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "config/limits.h"
#include "imitate/layer.h"

static struct profile profile;
static struct calls calls;
static unsigned passed_on;

/* --- the calls below */

static struct ibv_mr made;

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    passed_on++;
    return &made;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    passed_on++;
    return NULL;
}

static int query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    passed_on++;
    memset(gid, 7, sizeof *gid);
    return 0;
}

static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    passed_on++;
    *pkey = 0xffff;
    return 0;
}

static int put_around(void **unused)
{
    profile = (struct profile){.name = "made-up"};
    imitated = &profile;
    passed_on = 0;
    imitate_layer.below.ibv_reg_mr = reg_mr;
    imitate_layer.below.ibv_alloc_mw = alloc_mw;
    imitate_layer.below.ibv_query_gid = query_gid;
    imitate_layer.below.ibv_query_pkey = query_pkey;
    imitate_add_memory(&calls);
    imitate_add_queries(&calls);
    return 0;
}

static void set(enum profile_key key, uint64_t value)
{
    profile.set[key] = true;
    profile.values[key] = value;
}

static void a_profile_that_says_nothing_passes_all_on(void **unused)
{
    union ibv_gid gid;
    __be16 pkey;
    assert_ptr_equal((calls.ibv_reg_mr)(NULL, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), &made);
    calls.ibv_alloc_mw(NULL, IBV_MW_TYPE_2);
    assert_int_equal(calls.ibv_query_gid(NULL, 1, 200, &gid), 0);
    assert_int_equal(calls.ibv_query_pkey(NULL, 1, 1, &pkey), 0);
    assert_int_equal(passed_on, 4);
}

static void an_access_that_the_device_lacks_is_refused_with_its_errno(void **unused)
{
    set(PROFILE_access, IBV_ACCESS_LOCAL_WRITE);
    set(PROFILE_errno_access, EOPNOTSUPP);
    errno = 0;
    assert_null((calls.ibv_reg_mr)(NULL, NULL, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(passed_on, 0);
    assert_non_null((calls.ibv_reg_mr)(NULL, NULL, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING));
}

static void a_region_that_is_too_long_is_refused(void **unused)
{
    set(PROFILE_max_mr_size, 4096);
    set(PROFILE_errno_mr_size, EINVAL);
    assert_non_null((calls.ibv_reg_mr)(NULL, NULL, 4096, 0));
    errno = 0;
    assert_null((calls.ibv_reg_mr)(NULL, NULL, 4097, 0));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(passed_on, 1);
}

static void a_type_of_window_that_the_device_lacks_is_refused(void **unused)
{
    set(PROFILE_mw_types, 1u << IBV_MW_TYPE_1);
    errno = 0;
    assert_null(calls.ibv_alloc_mw(NULL, IBV_MW_TYPE_2));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(passed_on, 0);
    calls.ibv_alloc_mw(NULL, IBV_MW_TYPE_1);
    assert_int_equal(passed_on, 1);
}

/* The entries after those that softverbs has are empty. */
static void a_longer_table_of_gids_ends_empty(void **unused)
{
    static const union ibv_gid zero;
    union ibv_gid gid;
    set(PROFILE_gid_tbl_len, 256);
    assert_int_equal(calls.ibv_query_gid(NULL, 1, 0, &gid), 0);
    assert_int_equal(gid.raw[0], 7);
    assert_int_equal(calls.ibv_query_gid(NULL, 1, 255, &gid), 0);
    assert_memory_equal(&gid, &zero, sizeof gid);
    assert_int_equal(passed_on, 1);
    errno = 0;
    assert_int_equal(calls.ibv_query_gid(NULL, 1, 256, &gid), -1);
    assert_int_equal(errno, EINVAL);
}

static void a_longer_table_of_pkeys_ends_empty(void **unused)
{
    __be16 pkey = 1;
    set(PROFILE_pkey_tbl_len, 128);
    assert_int_equal(calls.ibv_query_pkey(NULL, 1, 127, &pkey), 0);
    assert_int_equal(pkey, 0);
    assert_int_equal(calls.ibv_query_pkey(NULL, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
    assert_int_equal(passed_on, 1);
}

static uint32_t most_receives(uint32_t limit)
{
    return limits_most(&(struct limits){.max_qp_wr = limit}, imitated, PROFILE_max_recv_wr, PROFILE_max_qp_wr);
}

static uint32_t most_sges(enum profile_key queue, uint32_t limit)
{
    return limits_most(&(struct limits){.max_sge = limit}, imitated, queue, PROFILE_max_sge);
}

static void each_queue_has_its_limit(void **unused)
{
    struct limits limits = limits_standard;
    set(PROFILE_max_qp_wr, 50);
    set(PROFILE_max_recv_wr, 100);
    set(PROFILE_max_sge, 2);
    set(PROFILE_max_send_sge, 1);
    set(PROFILE_max_recv_sge, 4);
    limits_imitate(&limits, imitated);
    assert_int_equal(limits.max_qp_wr, 100);
    assert_int_equal(limits.max_sge, 4);
    assert_int_equal(most_receives(100), 100);
    assert_int_equal(limits_most(&limits, imitated, PROFILE_max_send_wr, PROFILE_max_qp_wr), 50);
    assert_int_equal(most_sges(PROFILE_max_send_sge, 4), 1);
    assert_int_equal(most_sges(PROFILE_max_recv_sge, 4), 4);
    assert_int_equal(most_sges(PROFILE_max_sge, 4), 2);
}

static void a_limit_of_the_user_holds_for_both_queues(void **unused)
{
    set(PROFILE_max_qp_wr, 50);
    set(PROFILE_max_recv_wr, 100);
    assert_int_equal(most_receives(30), 30);
    assert_int_equal(most_receives(200), 200);
    assert_int_equal(limits_most(&(struct limits){.max_qp_wr = 200}, imitated, PROFILE_max_send_wr, PROFILE_max_qp_wr),
                     200);
}

#define TEST(test) cmocka_unit_test_setup(test, put_around)
TESTS_OF(TEST, a_profile_that_says_nothing_passes_all_on, an_access_that_the_device_lacks_is_refused_with_its_errno,
         a_region_that_is_too_long_is_refused, a_type_of_window_that_the_device_lacks_is_refused,
         a_longer_table_of_gids_ends_empty, a_longer_table_of_pkeys_ends_empty, each_queue_has_its_limit,
         a_limit_of_the_user_holds_for_both_queues)
