#include "redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"

#define ROOT "/tree"

/* The replacement, or NULL. */
static const char *replaced(const char *path, enum redirect_kind *kind)
{
    static char place[PLACE_MAX];
    return redirect_plausible(path) && redirect_path(path, ROOT, strlen(ROOT), place, kind) ? place : NULL;
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
    enum redirect_kind kind;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(replaced(cases[i][0], &kind), cases[i][1]);
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
    enum redirect_kind kind;
    assert_null(replaced(NULL, &kind));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_null(replaced(cases[i], &kind));
}

static void nothing_outside_is_reached_by_dots(void **state)
{
    enum redirect_kind kind;
    assert_null(replaced("/sys/class/infiniband/../../../name", &kind));
    assert_null(replaced("/sys/class/infiniband//soft0/.//..//../../x", &kind));
    assert_null(replaced("/dev/infiniband/../../../x", &kind));
    assert_string_equal(replaced("/sys/class/infiniband/..", &kind), ROOT "/class/infiniband/..");
    assert_null(replaced("/sys/class/infiniband/soft0/device/infiniband/soft0/device/../../../../../x", &kind));
    assert_string_equal(replaced("/sys/class/infiniband/soft0/..", &kind), ROOT "/class/infiniband/soft0/..");
    assert_string_equal(replaced("/sys/class/infiniband/soft0/device/../a", &kind),
                        ROOT "/class/infiniband/soft0/device/../a");
    assert_non_null(replaced("/sys/class/infiniband/...", &kind));
    assert_non_null(replaced("/sys/class/infiniband/..x/..", &kind));
}

static void only_what_lies_in_dev_is_a_device(void **state)
{
    enum redirect_kind kind;
    assert_non_null(replaced("/dev/infiniband/uverbs0", &kind));
    assert_int_equal(kind, REDIRECT_DEVICE);
    assert_non_null(replaced("/dev/infiniband//", &kind));
    assert_int_equal(kind, REDIRECT_WHOLE);
    assert_non_null(replaced("/dev/infiniband", &kind));
    assert_int_equal(kind, REDIRECT_WHOLE);
    assert_non_null(replaced("/sys/class/infiniband/soft0", &kind));
    assert_int_equal(kind, REDIRECT_WHOLE);
}

static void a_path_that_does_not_fit_stays(void **state)
{
    enum { PREFIX = sizeof "/sys/class/infiniband" - 1, REPLACED = sizeof ROOT "/class/infiniband" - 1 };
    char path[PLACE_MAX + 64] = "/sys/class/infiniband/";
    enum redirect_kind kind;
    memset(path + PREFIX + 1, 'x', sizeof path - PREFIX - 2);
    path[PREFIX + PLACE_MAX - REPLACED] = 0; /* one byte too long */
    assert_null(replaced(path, &kind));
    path[PREFIX + PLACE_MAX - REPLACED - 1] = 0;
    assert_int_equal(strlen(replaced(path, &kind)), PLACE_MAX - 1);
}

static void pci_paths_lie_among_those_of_the_machine(void **state)
{
    static const struct {
        const char *path, *place;
        enum redirect_kind kind;
    } cases[] = {
        {"/sys/devices/pci0000:18/0000:18:00.0/class", ROOT "/devices/pci0000:18/0000:18:00.0/class", REDIRECT_AMONG},
        {"/sys//devices//pci0000:18", ROOT "/devices//pci0000:18", REDIRECT_AMONG},
        {"/sys/bus/pci/devices", ROOT "/bus/pci/devices", REDIRECT_LIST},
        {"/sys/bus/pci/devices/", ROOT "/bus/pci/devices/", REDIRECT_LIST},
        {"/sys/bus/pci/devices/0000:18:00.0", ROOT "/bus/pci/devices/0000:18:00.0", REDIRECT_AMONG},
        {"/sys/bus/pci/drivers", ROOT "/bus/pci/drivers", REDIRECT_LIST},
        {"/sys/bus/pci/drivers/efa/0000:18:00.0", ROOT "/bus/pci/drivers/efa/0000:18:00.0", REDIRECT_AMONG},
        {"/sys/class/pci_bus", ROOT "/class/pci_bus", REDIRECT_LIST},
        {"/sys/class/pci_bus/0000:18/../../0000:18:00.0", ROOT "/class/pci_bus/0000:18/../../0000:18:00.0",
         REDIRECT_AMONG},
    };
    enum redirect_kind kind;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(replaced(cases[i].path, &kind), cases[i].place);
        assert_int_equal(kind, cases[i].kind);
    }
    assert_null(replaced("/sys/devices", &kind));
    assert_null(replaced("/sys/devices/system/cpu", &kind));
    assert_null(replaced("/sys/bus/pci", &kind));
    assert_null(replaced("/sys/bus/pci/slots", &kind));
    assert_null(replaced("/sys/devices/pci0000:18/../../../etc", &kind));
}

TESTS(paths_of_the_kernel_are_replaced,
      other_paths_are_not,
      nothing_outside_is_reached_by_dots,
      only_what_lies_in_dev_is_a_device,
      a_path_that_does_not_fit_stays,
      pci_paths_lie_among_those_of_the_machine)
