/* The library is found and bound as programs do it: by name, through LD_LIBRARY_PATH, with every symbol at once. */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

/* Symbols as NCCL takes them (src/misc/ibvsymbols.cc): the node with each name. */
static const struct {
    const char *name, *node;
} nccl[] = {
    {"ibv_get_device_list", "IBVERBS_1.1"}, {"ibv_free_device_list", "IBVERBS_1.1"},
    {"ibv_get_device_name", "IBVERBS_1.1"}, {"ibv_open_device", "IBVERBS_1.1"},
    {"ibv_close_device", "IBVERBS_1.1"},    {"ibv_get_async_event", "IBVERBS_1.1"},
    {"ibv_ack_async_event", "IBVERBS_1.1"}, {"ibv_query_device", "IBVERBS_1.1"},
    {"ibv_query_port", "IBVERBS_1.1"},      {"ibv_query_gid", "IBVERBS_1.1"},
    {"ibv_query_qp", "IBVERBS_1.1"},        {"ibv_alloc_pd", "IBVERBS_1.1"},
    {"ibv_dealloc_pd", "IBVERBS_1.1"},      {"ibv_reg_mr", "IBVERBS_1.1"},
    {"ibv_reg_mr_iova2", "IBVERBS_1.8"},    {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
    {"ibv_dereg_mr", "IBVERBS_1.1"},        {"ibv_create_cq", "IBVERBS_1.1"},
    {"ibv_destroy_cq", "IBVERBS_1.1"},      {"ibv_create_qp", "IBVERBS_1.1"},
    {"ibv_modify_qp", "IBVERBS_1.1"},       {"ibv_destroy_qp", "IBVERBS_1.1"},
    {"ibv_fork_init", "IBVERBS_1.1"},       {"ibv_event_type_str", "IBVERBS_1.1"},
};

static void is_ours(const void *address)
{
    Dl_info found;
    assert_true(dladdr(address, &found));
    char *path = realpath(found.dli_fname, NULL), *expected = realpath(OUR_LIBRARY, NULL);
    assert_non_null(path);
    assert_non_null(expected);
    assert_string_equal(path, expected);
    free(path);
    free(expected);
}

static void both_names_of_the_library_are_ours(void **unused)
{
    static const char *const names[] = {"libibverbs.so", "libibverbs.so.1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        if (!library)
            fail_msg("%s", dlerror());
        is_ours(dlsym(library, "ibv_get_device_list"));
        dlclose(library);
    }
}

static void the_names_that_nccl_takes_are_there_with_their_versions(void **unused)
{
    void *library = dlopen("libibverbs.so", RTLD_NOW);
    assert_non_null(library);
    for (size_t i = 0; i < sizeof(nccl) / sizeof(*nccl); i++) {
        void *symbol = dlvsym(library, nccl[i].name, nccl[i].node);
        if (!symbol)
            fail_msg("%s", dlerror());
        is_ours(symbol);
    }
    assert_null(dlvsym(library, "ibv_reg_dmabuf_mr", "IBVERBS_1.1"));
    dlclose(library);
}

/* Constructors of providers call verbs_register_driver_34, and they bind everything at once. */
static void load_on_top(const char *name)
{
    void *library = dlopen(name, RTLD_NOW);
    const char *error = library ? "" : dlerror();
    if (strstr(error, "No such file")) {
        print_message("%s is not installed\n", name);
        skip();
    }
    if (!library)
        fail_msg("%s", error);
    is_ours(dlsym(library, "ibv_get_device_list"));
    dlclose(library);
}

static void libmlx5_loads_on_top_of_it(void **unused)
{
    load_on_top("libmlx5.so.1");
}

static void libefa_loads_on_top_of_it(void **unused)
{
    load_on_top("libefa.so.1");
}

static void libmlx4_loads_on_top_of_it(void **unused)
{
    load_on_top("libmlx4.so.1");
}

static void librdmacm_loads_on_top_of_it(void **unused)
{
    load_on_top("librdmacm.so.1");
}

TESTS(both_names_of_the_library_are_ours,
      the_names_that_nccl_takes_are_there_with_their_versions,
      libmlx5_loads_on_top_of_it,
      libefa_loads_on_top_of_it,
      libmlx4_loads_on_top_of_it,
      librdmacm_loads_on_top_of_it)
