/* The reader of symbols, on the C library and on what is left of it. */
#include "symbols.h"

#include <errno.h>
#include <gnu/lib-names.h>
#include <link.h>
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

struct seen {
    const char *symbol;
    unsigned count, found;
};

static void see(void *context, const char *symbol, const char *version)
{
    struct seen *seen = context;
    seen->count++;
    seen->found += !strcmp(symbol, seen->symbol) && !strncmp(version, "GLIBC_", 6);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
    return strstr(info->dlpi_name, "/" LIBC_SO) ? snprintf(context, 512, "%s", info->dlpi_name) : 0;
}

static void the_library_and_the_program_agree(void **state)
{
    char libc[512] = "";
    struct seen defined = {"getpid", 0, 0}, wanted = {"rand", 0, 0}, none = {"getpid", 0, 0};
    assert_true(dl_iterate_phdr(find_libc, libc) > 0);
    assert_int_equal(symbols_defined(libc, see, &defined), 0);
    assert_true(defined.found >= 1 && defined.count > 1000);
    assert_int_equal(symbols_wanted("/proc/self/exe", LIBC_SO, see, &wanted), 0);
    assert_true(wanted.found == 1);
    assert_int_equal(symbols_wanted("/proc/self/exe", "libibverbs.so.1", see, &none), 0);
    assert_int_equal(none.count, 0);
}

static void what_is_no_library_is_refused(void **state)
{
    struct seen seen = {"", 0, 0};
    assert_int_equal(symbols_defined("/no/such/file", see, &seen), ENOENT);
    assert_int_equal(symbols_defined("/etc/passwd", see, &seen), ENOEXEC);
    assert_int_equal(symbols_defined("/dev/null", see, &seen), ENOEXEC);
    assert_int_equal(seen.count, 0);
}

/* Cut off anywhere and with any bytes wrong it gives an answer or ENOEXEC, and reads nothing that is not there. */
static void a_damaged_file_does_no_harm(void **state)
{
    char name[] = "/tmp/softverbs-symbols-XXXXXX";
    int fd = mkstemp(name);
    FILE *self = fopen("/proc/self/exe", "re");
    static char bytes[1 << 20], damaged[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, self);
    struct seen seen = {"", 0, 0};
    fclose(self);
    srand(7);
    for (int round = 0; round < 600; round++) {
        size_t kept = round % 3 ? size : (size_t)rand() % size;
        memcpy(damaged, bytes, kept);
        for (int flips = 0; flips < 400 && kept;
             flips++) /* headers, and the tables at the end, more often than the rest */
            damaged[flips % 4   ? (size_t)rand() % kept
                    : flips % 8 ? (size_t)rand() % 64 % kept
                                : kept - 1 - (size_t)rand() % 4000 % kept] = (char)rand();
        memcpy(damaged, bytes, kept < 20 ? kept : 20);
        if (ftruncate(fd, 0) || pwrite(fd, damaged, kept, 0) != (ssize_t)kept)
            fail();
        int error = symbols_defined(name, see, &seen);
        assert_true(error == 0 || error == ENOEXEC);
        error = symbols_wanted(name, LIBC_SO, see, &seen);
        assert_true(error == 0 || error == ENOEXEC);
    }
    close(fd);
    unlink(name);
}

TESTS(the_library_and_the_program_agree,
      what_is_no_library_is_refused,
      a_damaged_file_does_no_harm)
