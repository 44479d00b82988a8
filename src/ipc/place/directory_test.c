/* Faults of the directory and the table, and the sentence for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { SKIPPED = 77 };

/* A sentence: starts with a capital message or a path, ends with a full stop. */
static bool is_sentence(const char *why)
{
    size_t length = strlen(why);
    return length > 20 && why[length - 1] == '.';
}

static int open_result(const char *directory, char *why)
{
    struct node *node;
    why[0] = 0;
    int error = node_open(&node, directory, why, 256);
    if (!error)
        node_close(node);
    return error;
}

static void check_refused(const char *directory, int expected, const char *phrase)
{
    char why[256];
    assert_int_equal(open_result(directory, why), expected);
    assert_true(is_sentence(why));
    assert_non_null(strstr(why, phrase));
}

static void a_missing_directory_is_made(void **state)
{
    char parent[NODE_DIRECTORY_MAX + 1], directory[128], why[256];
    struct stat status;
    rig_directory(parent);
    snprintf(directory, sizeof directory, "%.80s/d", parent);
    assert_int_equal(open_result(directory, why), 0);
    assert_int_equal(stat(directory, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(open_result(directory, why), 0);
    rig_remove(directory);
    rig_remove(parent);
}

static void a_directory_that_cannot_be_made_is_named(void **state)
{
    check_refused("/proc/softverbs-test", ENOENT, "/proc/softverbs-test");
}

static void a_directory_that_others_may_enter_is_refused(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    chmod(directory, 0755);
    check_refused(directory, EACCES, "mode 755");
    rig_remove(directory);
}

static void a_directory_of_another_user_is_refused(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    if (chown(directory, 12345, (gid_t)-1)) {
        rig_remove(directory);
        skip(); /* only root can give it away */
    }
    check_refused(directory, EACCES, "user 12345");
    rig_remove(directory);
}

static void a_symbolic_link_is_refused(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], name[128];
    rig_directory(directory);
    snprintf(name, sizeof name, "%.80s-link", directory);
    assert_int_equal(symlink(directory, name), 0);
    check_refused(name, ENOTDIR, "symbolic link");
    unlink(name);
    rig_remove(directory);
}

static int open_as_nobody(const char *directory, void *context)
{
    char why[256];
    if (setuid(12345))
        return SKIPPED;
    return open_result(directory, why) == EACCES && is_sentence(why) ? 0 : 1;
}

static void a_directory_that_we_may_not_write_is_refused(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], inside[128];
    rig_directory(directory);
    snprintf(inside, sizeof inside, "%.80s/d", directory);
    int status = rig_wait(rig_start(open_as_nobody, inside, NULL), 10);
    rig_remove(directory);
    if (status == SKIPPED)
        skip(); /* only root can become another user */
    assert_int_equal(status, 0);
}

static int open_with_file_limit(const char *directory, void *context)
{
    char why[256];
    struct rlimit limit = {64 << 10, 64 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    return open_result(directory, why) == EFBIG && is_sentence(why) ? 0 : 1;
}

static void a_file_size_limit_is_an_error_and_not_a_signal(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    assert_int_equal(rig_wait(rig_start(open_with_file_limit, directory, NULL), 10), 0);
    assert_int_equal(rig_count(directory, ""), 0);
    rig_remove(directory);
}

static int open_on_small_disk(const char *directory, void *context)
{
    char why[256], inside[128];
    if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("softverbs", directory, "tmpfs", 0, "size=64k,mode=0700"))
        return SKIPPED;
    snprintf(inside, sizeof inside, "%.80s/d", directory);
    if (open_result(inside, why) != ENOSPC || !is_sentence(why) || rig_count(inside, ""))
        return 1;
    return 0;
}

static void a_full_disk_is_an_error(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    int status = rig_wait(rig_start(open_on_small_disk, directory, NULL), 10);
    rig_remove(directory);
    if (status == SKIPPED)
        skip(); /* no mounting allowed here */
    assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------ other versions */

static void write_foreign_table(const char *directory)
{
    char path[128];
    snprintf(path, sizeof path, "%.80s/table", directory);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(file, "a table of next year", 20), 20);
    close(file);
}

static void a_foreign_table_that_nobody_uses_is_replaced(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    rig_directory(directory);
    write_foreign_table(directory);
    assert_int_equal(open_result(directory, why), 0);
    assert_int_equal(rig_count(directory, ""), 1);
    rig_remove(directory);
}

/* The begin of a table as each release has it: "stvtable" and the layout. */
static void write_table_of_layout(const char *directory, uint32_t layout)
{
    char path[128];
    snprintf(path, sizeof path, "%.80s/table", directory);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(file, "stvtable", 8), 8);
    assert_int_equal(write(file, &layout, sizeof layout), sizeof layout);
    assert_int_equal(write(file, "size and the rest", 16), 16);
    close(file);
}

static int use_foreign_table(const char *directory, void *context)
{
    char path[128];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
    snprintf(path, sizeof path, "%.80s/table", directory);
    int file = open(path, O_RDWR);
    if (fcntl(file, F_SETLK, &lock))
        return 1;
    atomic_store((atomic_uint *)context, 1);
    pause();
    return 0;
}

static void see_process(const struct node_entry *entry, void *context)
{
    fail_msg("process %d uses it", (int)entry->pid);
}

static void a_foreign_table_in_use_is_left_alone(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    atomic_uint *ready = rig_share(sizeof *ready);
    rig_directory(directory);
    write_foreign_table(directory);
    pid_t user = rig_start(use_foreign_table, directory, ready);
    PATIENTLY_WHILE (!atomic_load(ready))
        usleep(100);
    check_refused(directory, EBUSY, "another version");
    char layout[64];
    write_table_of_layout(directory, node_layout() + 1);
    snprintf(layout, sizeof layout, "has layout %u, of another version", node_layout() + 1);
    check_refused(directory, EBUSY, layout);
    snprintf(layout, sizeof layout, "this one has layout %u", node_layout());
    check_refused(directory, EBUSY, layout);
    assert_int_equal(node_list(directory, see_process, NULL, why, sizeof why), EBUSY);
    assert_non_null(strstr(why, layout));
    assert_int_equal(node_sweep(directory), -EBUSY);
    kill(user, SIGKILL);
    rig_wait(user, 10);
    assert_int_equal(node_list(directory, see_process, NULL, why, sizeof why), 0);
    assert_int_equal(node_sweep(directory), 0);
    assert_int_equal(open_result(directory, why), 0);
    rig_remove(directory);
    rig_unshare(ready, sizeof *ready);
}

static void a_table_that_was_replaced_meanwhile_is_stale(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], path[128], aside[128], why[256];
    struct table *table;
    rig_directory(directory);
    assert_int_equal(table_open(&table, directory, true, why, sizeof why), 0);
    assert_int_equal(table_lock(table), 0);
    table_unlock(table);
    snprintf(path, sizeof path, "%.80s/table", directory);
    snprintf(aside, sizeof aside, "%.80s/aside", directory);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(table_lock(table), ESTALE);
    table_close(table);
    assert_int_equal(open_result(directory, why), 0);
    rig_remove(directory);
}

/* --- record locks that the system refuses, as a filter of system calls does */

static int refused_as; /* errno; 0: not refused */

int __real_fcntl64(int, int, ...);
int __wrap_fcntl64(int, int, ...);

int __wrap_fcntl64(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command != F_SETLK || !refused_as)
        return __real_fcntl64(descriptor, command, argument);
    errno = refused_as;
    return -1;
}

static void a_lock_that_is_refused_is_nobodys(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    for (unsigned foreign = 0; foreign < 2; foreign++) {
        if (foreign)
            write_foreign_table(directory);
        refused_as = foreign ? ENOLCK : EPERM;
        time_t before = time(NULL);
        check_refused(directory, refused_as, "can't be locked");
        assert_true(time(NULL) - before < 4); /* with a holder it would be waited for */
        refused_as = 0;
    }
    rig_remove(directory);
}

enum { CROWD = 8 };

struct start {
    atomic_bool go;
    atomic_uint joined, looked;
};

static void count_entry(const struct node_entry *entry, void *context)
{
    ++*(unsigned *)context;
}

/* Processes that join at the same time must meet in the same table. */
static int join_and_count(const char *directory, void *context)
{
    struct start *start = context;
    struct node *node;
    char why[256];
    unsigned count = 0;
    PATIENTLY_WHILE (!atomic_load(&start->go))
        ;
    if (node_open(&node, directory, why, sizeof why))
        return 1;
    atomic_fetch_add(&start->joined, 1);
    PATIENTLY_WHILE (atomic_load(&start->joined) < CROWD)
        usleep(100);
    node_list(directory, count_entry, &count, why, sizeof why);
    atomic_fetch_add(&start->looked, 1);
    PATIENTLY_WHILE (atomic_load(&start->looked) < CROWD)
        usleep(100);
    node_close(node);
    return count == CROWD ? 0 : 2;
}

static void many_may_replace_it_at_once(void **state)
{
    enum { ROUNDS = 20 };
    struct start *start = rig_share(sizeof *start);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char directory[NODE_DIRECTORY_MAX + 1];
        pid_t processes[CROWD];
        rig_directory(directory);
        if (round % 2)
            write_foreign_table(directory);
        *start = (struct start){0};
        for (unsigned i = 0; i < CROWD; i++)
            processes[i] = rig_start(join_and_count, directory, start);
        atomic_store(&start->go, true);
        for (unsigned i = 0; i < CROWD; i++)
            assert_int_equal(rig_wait(processes[i], 20), 0);
        assert_int_equal(rig_count(directory, ""), 1);
        rig_remove(directory);
    }
    rig_unshare(start, sizeof *start);
}

static void the_named_directory_is_the_default(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], longer[NODE_DIRECTORY_MAX + 2];
    setenv("SOFTVERBS_DIR", "/tmp/named", 1);
    assert_true(node_directory(directory));
    assert_string_equal(directory, "/tmp/named");
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = 0;
    setenv("SOFTVERBS_DIR", longer, 1);
    assert_false(node_directory(directory));
    unsetenv("SOFTVERBS_DIR");
    assert_true(node_directory(directory));
    assert_non_null(strstr(directory, "/softverbs-"));
}

static void numbers_that_mean_something_belong_to_nobody(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    struct table *table;
    uint32_t first;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    assert_int_equal(table_open(&table, directory, false, why, sizeof why), 0);
    atomic_store(&table->file->next_block, TABLE_BLOCKS - 1); /* 0xffffff is in it, and 0 and 1 in the next */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &first), 0);
        assert_in_range(first, NODE_BLOCK, 0xfffeff);
    }
    table_close(table);
    rig_close(node);
    rig_remove(directory);
}

/* A process that answers a request for its report with something else. */
static int answer_with(const char *directory, void *context)
{
    struct node *node = rig_open(directory);
    const char *what = context;
    struct control_message message;
    int descriptor, answer = *what == '/' ? open(what, O_RDONLY) : memfd_create("large", 0);
    if (answer < 0 || (*what != '/' && ftruncate(answer, 1ll << 40)))
        return 1;
    PATIENTLY_WHILE (true) {
        if (!control_take(node->socket, &message, &descriptor, NULL))
            usleep(1000);
        else if (message.kind == CONTROL_REPORT)
            return control_send_descriptor(descriptor, answer) ? 2 : 0;
    }
    return 3;
}

static void note_slot(const struct node_entry *entry, void *context)
{
    *(unsigned *)context = entry->slot;
}

/* The reservation is made in /dev/full, so that a request for too much fails soon. */
static int ask_who_answers_with(const char *what)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[256];
    unsigned slot = NODE_SLOTS;
    rig_directory(directory);
    pid_t process = rig_start(answer_with, directory, (void *)what);
    PATIENTLY_WHILE (slot == NODE_SLOTS)
        assert_int_equal(node_list(directory, note_slot, &slot, why, sizeof why), 0);
    int full = open("/dev/full", O_WRONLY);
    int error = node_ask(directory, slot, "", full, 5000);
    close(full);
    assert_int_equal(rig_wait(process, 10), 0);
    rig_remove(directory);
    return error;
}

static void a_report_without_end_is_refused(void **state)
{
    assert_int_equal(ask_who_answers_with("/dev/zero"), EPROTO);
    assert_int_equal(ask_who_answers_with("a terabyte"), EFBIG);
}

TESTS(a_missing_directory_is_made,
      numbers_that_mean_something_belong_to_nobody,
      a_report_without_end_is_refused,
      a_directory_that_cannot_be_made_is_named,
      a_directory_that_others_may_enter_is_refused,
      a_directory_of_another_user_is_refused,
      a_symbolic_link_is_refused,
      a_directory_that_we_may_not_write_is_refused,
      a_file_size_limit_is_an_error_and_not_a_signal,
      a_full_disk_is_an_error,
      a_foreign_table_that_nobody_uses_is_replaced,
      a_foreign_table_in_use_is_left_alone,
      a_table_that_was_replaced_meanwhile_is_stale,
      a_lock_that_is_refused_is_nobodys,
      many_may_replace_it_at_once,
      the_named_directory_is_the_default)
