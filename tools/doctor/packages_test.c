/* The sentences about packages, on made-up systems. */
#include "packages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"

static bool nothing_is_here(enum packages_kind kind, const char *what)
{
    return false;
}

static bool all_is_here(enum packages_kind kind, const char *what)
{
    return true;
}

static bool all_but_rping(enum packages_kind kind, const char *what)
{
    return strcmp(what, "rping");
}

static bool all_but_perftest(enum packages_kind kind, const char *what)
{
    return strcmp(what, "ib_send_bw");
}

/* The sentence on a system with this os-release. */
static const char *say_on(const char *os_release, packages_present *present)
{
    static char say[1024];
    char name[] = "/tmp/softverbs-os-release-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0 && write(fd, os_release, strlen(os_release)) == (ssize_t)strlen(os_release));
    close(fd);
    packages_lacking(name, present, say, sizeof say);
    unlink(name);
    return say;
}

static void each_package_manager_has_its_line(void **state)
{
    static const struct {
        const char *os_release, *line;
    } systems[] = {
        {"NAME=\"Debian GNU/Linux\"\nID=debian\n",
         "As root: apt install ibverbs-utils rdmacm-utils perftest gdb tshark libibverbs-dev librdmacm1 libdw1."},
        {"ID_LIKE=debian\nID=ubuntu\n", "As root: apt install ibverbs-utils "},
        {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "As root: apt install ibverbs-utils "},
        {"ID=fedora\n", "As root: dnf install libibverbs-utils librdmacm-utils perftest gdb wireshark-cli "},
        {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "As root: dnf install libibverbs-utils "},
        {"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", "As root: zypper install libibverbs-utils "},
        {"ID=alpine\n",
         "As root: apk add cmd:ibv_devinfo cmd:rping gdb tshark rdma-core-dev so:librdmacm.so.1 so:libdw.so.1."},
        {"ID=arch\n", "As root: pacman -S rdma-core gdb wireshark-cli elfutils."},
        {"ID='manjaro'\nID_LIKE=arch\n", "As root: pacman -S rdma-core "},
    };
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        const char *say = say_on(systems[i].os_release, nothing_is_here);
        if (!strstr(say, systems[i].line))
            fail_msg("%s: %s", systems[i].os_release, say);
    }
}

static void only_what_is_missing_is_named(void **state)
{
    assert_string_equal(say_on("ID=debian\n", all_but_rping),
                        "Not installed, and not needed by softverbs itself: rping. As root: apt install rdmacm-utils.");
    assert_non_null(strstr(say_on("ID=debian\n", all_is_here), "are installed"));
}

static void what_a_distribution_lacks_is_said(void **state)
{
    const char *say = say_on("ID=alpine\n", all_but_perftest);
    assert_non_null(strstr(say, "This distribution has no package of ib_send_bw."));
    assert_null(strstr(say, "apk add"));
}

static void an_unknown_system_gets_the_names_of_debian(void **state)
{
    static const char *const systems[] = {"ID=plan9\n", "", "ID=\nID_LIKE=\n", "ID=deb\n", "ID=\"\xff\xfe\"\n"};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        assert_non_null(strstr(say_on(systems[i], all_but_rping), "is not known; Debian's packages are rdmacm-utils."));
    char say[1024];
    assert_int_equal(packages_lacking("/no/such/file", all_but_rping, say, sizeof say), 1);
    assert_non_null(strstr(say, "is not known"));
}

/* Whatever the size, it stays within it and ends with a zero. */
static void a_short_buffer_is_kept(void **state)
{
    char say[256];
    for (size_t size = 1; size < sizeof say; size++) {
        memset(say, 'x', sizeof say);
        packages_lacking("/etc/os-release", nothing_is_here, say, size);
        assert_true(strlen(say) < size && say[size] == 'x');
    }
}

static void a_library_has_its_line(void **state)
{
    char name[] = "/tmp/softverbs-os-release-XXXXXX", line[128];
    int fd = mkstemp(name);
    assert_true(fd >= 0 && write(fd, "ID=fedora\n", 10) == 10);
    close(fd);
    packages_of_library(name, "librdmacm.so.1", line, sizeof line);
    assert_string_equal(line, "dnf install librdmacm");
    packages_of_library(name, "libgone.so.1", line, sizeof line);
    assert_string_equal(line, "");
    packages_of_library(name, "rping", line, sizeof line);
    assert_string_equal(line, "");
    unlink(name);
}

static void this_system_is_looked_at(void **state)
{
    setenv("PATH", "/nowhere::/bin:/usr/bin", 1);
    assert_true(packages_are_here(PACKAGES_PROGRAM, "sh"));
    assert_false(packages_are_here(PACKAGES_PROGRAM, "no-such-program"));
    assert_true(packages_are_here(PACKAGES_HEADER, "stdio.h"));
    assert_false(packages_are_here(PACKAGES_HEADER, "no/such.h"));
    assert_true(packages_are_here(PACKAGES_LIBRARY, "libm.so.6"));
    assert_false(packages_are_here(PACKAGES_LIBRARY, "libgone.so.1"));
}

TESTS(each_package_manager_has_its_line,
      only_what_is_missing_is_named,
      what_a_distribution_lacks_is_said,
      an_unknown_system_gets_the_names_of_debian,
      a_short_buffer_is_kept,
      a_library_has_its_line,
      this_system_is_looked_at)
