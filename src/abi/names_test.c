/* Names, rates and the helpers for sysfs, against the distribution's library: ours returns the same. */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/sysfs.h"

static void *stock;

static void *stock_symbol(const char *name)
{
    if (!stock)
        skip();
    void *symbol = dlsym(stock, name);
    assert_non_null(symbol);
    return symbol;
}

typedef const char *name_function(int);
typedef int number_function(int);

enum { LEAST = -3, MOST = 100 };

/* A value that is newer than the installed release has its name here already. */
static bool names_is_newer(const char *function, int value)
{
    return RELEASE < 44 || (!strcmp(function, "ibv_event_type_str") && value == NEWER_EVENT_DEVICE_SPEED_CHANGE);
}

static void compare_names(const char *function, name_function *ours)
{
    name_function *theirs = (name_function *)stock_symbol(function);
    for (int value = LEAST; value < MOST; value++)
        if (!names_is_newer(function, value) || strcmp(theirs(value), "unknown") != 0)
            assert_string_equal(ours(value), theirs(value));
}

static bool is_unknown(int number)
{
    return number == -1 || number == IBV_RATE_MAX;
}

static void compare_numbers(const char *function, number_function *ours, int least, int most)
{
    number_function *theirs = (number_function *)stock_symbol(function);
    for (int value = least; value < most; value++)
        if (ours(value) != theirs(value) &&
            !(RELEASE < 39 && is_unknown(theirs(value)))) /* 39 has the rates 23 and 24 */
            fail_msg("%s(%d) is %d instead of %d", function, value, ours(value), theirs(value));
}

#define NAMES(function) compare_names(#function, (name_function *)(void (*)(void))(function))
#define NUMBERS(function, most) compare_numbers(#function, (number_function *)(void (*)(void))(function), LEAST, most)

static void every_name_is_the_distributions(void **unused)
{
    NAMES(ibv_node_type_str);
    NAMES(ibv_port_state_str);
    NAMES(ibv_event_type_str);
    NAMES(ibv_wc_status_str);
}

static void every_rate_is_the_distributions(void **unused)
{
    NUMBERS(ibv_rate_to_mult, 1000);
    NUMBERS(mult_to_ibv_rate, 1000);
    NUMBERS(ibv_rate_to_mbps, 1000);
    NUMBERS(mbps_to_ibv_rate, 2000000);
}

static void names_are_words_also_without_the_distribution(void **unused)
{
    assert_string_equal(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
    assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)1000), "unknown");
    assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
    assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
    assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
}

static char directory[] = "/tmp/softverbs-names-XXXXXX";

static void write_file(const char *text)
{
    char path[sizeof directory + 8];
    snprintf(path, sizeof path, "%s/file", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

typedef int read_function(const char *, const char *, char *, size_t);

static void reads_as(const char *text, size_t size, int length, const char *expected)
{
    read_function *theirs = stock ? (read_function *)stock_symbol("ibv_read_sysfs_file") : NULL;
    char ours[16] = "untouched", other[16] = "untouched";
    write_file(text);
    assert_int_equal(ibv_read_sysfs_file(directory, "file", ours, size), length);
    if (expected)
        assert_string_equal(ours, expected);
    if (theirs) {
        assert_int_equal(theirs(directory, "file", other, size), length);
        assert_memory_equal(ours, other, sizeof ours);
    }
}

static void a_file_of_sysfs_is_read_without_its_line_end(void **unused)
{
    reads_as("0x1234\n", 16, 6, "0x1234");
    reads_as("0x1234", 16, 6, "0x1234");
    reads_as("0x1234\n", 7, 6, "0x1234");
    reads_as("0x1234", 6, -1, NULL);
    reads_as("0x1234 and more", 6, -1, NULL);
    reads_as("\n", 16, 0, "");
    reads_as("", 16, 0, "untouched");
    char buffer[16];
    assert_int_equal(ibv_read_sysfs_file(directory, "nothing", buffer, sizeof buffer), -1);
}

static void the_path_of_sysfs_loses_its_last_slashes(void **unused)
{
    const char *path = ibv_get_sysfs_path();
    assert_string_equal(path, "/some/where");
    setenv("SYSFS_PATH", "/else/where", 1);
    assert_ptr_equal(ibv_get_sysfs_path(), path);
}

static int start(void **unused)
{
    setenv("SYSFS_PATH", "/some/where//", 1);
    stock = dlopen(STOCK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    return mkdtemp(directory) ? 0 : -1;
}

static int finish(void **unused)
{
    char path[sizeof directory + 8];
    snprintf(path, sizeof path, "%s/file", directory);
    unlink(path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_the_distributions),
        cmocka_unit_test(every_rate_is_the_distributions),
        cmocka_unit_test(names_are_words_also_without_the_distribution),
        cmocka_unit_test(a_file_of_sysfs_is_read_without_its_line_end),
        cmocka_unit_test(the_path_of_sysfs_loses_its_last_slashes),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
