#include "later.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct ibv_context *context;
struct ibv_pd *pd;

int later_open(const struct later_function *function)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    for (; function->name; function++) {
        void *found = dlvsym(RTLD_DEFAULT, function->name, function->node);
        if (!found)
            fail_msg("%s@%s is not there", function->name, function->node);
        memcpy(function->place, &found, sizeof found);
    }
    return !pd;
}

int later_close(void **unused)
{
    return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

void refused(const void *answer, int error)
{
    assert_null(answer);
    assert_int_equal(errno, error);
}
