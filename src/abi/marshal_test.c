/* The copies between the kernel's layouts and ours, against the distribution's library and against single fields. */
#include "abi/marshal.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

typedef void copy_function(void *to, void *from);

enum { BYTES = 512 };

/* Different in every byte of a field, and no byte is what the target was filled with. */
static void fill(unsigned char *bytes, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(1 + (i * 7 + seed) % 250);
}

static void compare(const char *name, copy_function *ours)
{
    void *stock = dlopen(STOCK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!stock)
        skip();
    copy_function *theirs = (copy_function *)dlsym(stock, name);
    assert_non_null(theirs);
    for (unsigned seed = 0; seed < 250; seed++) {
        _Alignas(16) unsigned char from[BYTES], expected[BYTES], got[BYTES];
        fill(from, seed);
        memset(expected, 0xfe, sizeof expected);
        memset(got, 0xfe, sizeof got);
        theirs(expected, from);
        ours(got, from);
        assert_memory_equal(got, expected, BYTES);
    }
}

#define COMPARE(function) compare(#function, (copy_function *)(void (*)(void))(function))

static void every_copy_is_the_distributions(void **unused)
{
    COMPARE(ibv_copy_ah_attr_from_kern);
    COMPARE(ibv_copy_qp_attr_from_kern);
    COMPARE(ibv_copy_path_rec_from_kern);
    COMPARE(ibv_copy_path_rec_to_kern);
}

static void a_path_record_survives_the_way_there_and_back(void **unused)
{
    struct ibv_sa_path_rec record = {.dlid = 1, .pkey = 2, .mtu = 3, .rate = 4, .preference = 5, .packet_life_time = 6};
    struct ibv_sa_path_rec back = {.dlid = 99};
    struct ib_user_path_rec kernel = {0};
    memset(record.dgid.raw, 0xd9, sizeof record.dgid);
    ibv_copy_path_rec_to_kern(&kernel, &record);
    assert_int_equal(kernel.mtu, 3);
    ibv_copy_path_rec_from_kern(&back, &kernel);
    assert_memory_equal(&back, &record, sizeof record);
}

static void the_state_of_a_queue_pair_is_not_copied(void **unused)
{
    struct ib_uverbs_qp_attr kernel = {
        .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTR, .timeout = 14, .dest_qp_num = 77};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    ibv_copy_qp_attr_from_kern(&attr, &kernel);
    assert_int_equal(attr.qp_state, IBV_QPS_INIT);
    assert_int_equal(attr.cur_qp_state, IBV_QPS_RTR);
    assert_int_equal(attr.timeout, 14);
    assert_int_equal(attr.dest_qp_num, 77);
}

TESTS(every_copy_is_the_distributions,
      a_path_record_survives_the_way_there_and_back,
      the_state_of_a_queue_pair_is_not_copied)
