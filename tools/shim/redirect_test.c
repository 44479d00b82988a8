#include "redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ROOT "/tree"

/* The replacement, or NULL. */
static const char *replaced(const char *path, bool *device)
{
    static char place[PLACE_MAX];
    return redirect_plausible(path) && redirect_path(path, ROOT, strlen(ROOT), place, device) ? place : NULL;
}

static void paths_of_the_kernel_are_replaced(void **state)
{
    static const char *const cases[][2] = {
        {"/sys/class/infiniband", ROOT "/class/infiniband"},
        {"/sys/class/infiniband/", ROOT "/class/infiniband/"},
        {"/sys/class/infiniband/soft0/ports", ROOT "/class/infiniband/soft0/ports"},
        {"/sys/class/infiniband_verbs", ROOT "/class/infiniband_verbs"},
        {"/sys/class/infiniband_verbs/uverbs0/dev", ROOT "/class/infiniband_verbs/uverbs0/dev"},
        {"/sys/class/misc/rdma_cm/abi_version", ROOT "/class/misc/rdma_cm/abi_version"},
        {"/dev/infiniband/rdma_cm", ROOT "/dev/infiniband/rdma_cm"},
        {"/sys/devices/softverbs/soft0", ROOT "/devices/softverbs/soft0"},
        {"/dev/infiniband", ROOT "/dev/infiniband"},
        {"/dev/infiniband/uverbs0", ROOT "/dev/infiniband/uverbs0"},
        {"//sys///class//infiniband//soft0", ROOT "/class/infiniband//soft0"},
    };
    bool device;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(replaced(cases[i][0], &device), cases[i][1]);
}

static void other_paths_are_not(void **state)
{
    static const char *const cases[] = {
        "",
        "/",
        "/s",
        "/sys",
        "/d",
        "/sys/class/infinibandx",
        "/dev",
        "//",
        "/sys/class/infiniban",
        "/sys/class/misc",
        "/sys/class/misc/rdma",
        "/dev/",
        "sys",
        "/sys/class/infiniband_verbsx",
        "/dev/infinibandx",
        "x/sys/class/infiniband",
        "/sysclass/infiniband",
        "/sys/class/infiniband.d/x",
        "/sys/devices/softverb",
        "/dev/infinib/and",
    };
    bool device;
    assert_null(replaced(NULL, &device));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_null(replaced(cases[i], &device));
}

static void nothing_outside_is_reached_by_dots(void **state)
{
    bool device;
    assert_null(replaced("/sys/class/infiniband/../../../name", &device));
    assert_null(replaced("/sys/class/infiniband//soft0/.//..//../../x", &device));
    assert_null(replaced("/dev/infiniband/../../../x", &device));
    assert_string_equal(replaced("/sys/class/infiniband/..", &device), ROOT "/class/infiniband/..");
    assert_null(replaced("/sys/class/infiniband/soft0/device/infiniband/soft0/device/../../../../../x", &device));
    assert_string_equal(replaced("/sys/class/infiniband/soft0/..", &device), ROOT "/class/infiniband/soft0/..");
    assert_string_equal(replaced("/sys/class/infiniband/soft0/device/../a", &device),
                        ROOT "/class/infiniband/soft0/device/../a");
    assert_non_null(replaced("/sys/class/infiniband/...", &device));
    assert_non_null(replaced("/sys/class/infiniband/..x/..", &device));
}

static void only_what_lies_in_dev_is_a_device(void **state)
{
    bool device;
    assert_non_null(replaced("/dev/infiniband/uverbs0", &device));
    assert_true(device);
    assert_non_null(replaced("/dev/infiniband//", &device));
    assert_false(device);
    assert_non_null(replaced("/dev/infiniband", &device));
    assert_false(device);
    assert_non_null(replaced("/sys/class/infiniband/soft0", &device));
    assert_false(device);
}

static void a_path_that_does_not_fit_stays(void **state)
{
    enum { PREFIX = sizeof "/sys/class/infiniband" - 1, REPLACED = sizeof ROOT "/class/infiniband" - 1 };
    char path[PLACE_MAX + 64] = "/sys/class/infiniband/";
    bool device;
    memset(path + PREFIX + 1, 'x', sizeof path - PREFIX - 2);
    path[PREFIX + PLACE_MAX - REPLACED] = 0; /* one byte too long */
    assert_null(replaced(path, &device));
    path[PREFIX + PLACE_MAX - REPLACED - 1] = 0;
    assert_int_equal(strlen(replaced(path, &device)), PLACE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_the_kernel_are_replaced),   cmocka_unit_test(other_paths_are_not),
        cmocka_unit_test(nothing_outside_is_reached_by_dots), cmocka_unit_test(only_what_lies_in_dev_is_a_device),
        cmocka_unit_test(a_path_that_does_not_fit_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
