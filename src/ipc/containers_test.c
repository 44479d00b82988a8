/* Processes of one host in other namespaces than ours, and a directory that is open to other users. */
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { SKIPPED = 77, CROWD = 8 };

struct stage {
    int (*body)(const char *, struct stage *);
    atomic_uint joined, looked;
    _Atomic uint32_t numbers[2]; /* of the process inside, and of the one outside */
    int seen;                    /* inside: the pid of the peer outside */
};

static struct stage *open_stage(char *directory)
{
    rig_directory(directory);
    return rig_share(sizeof(struct stage));
}

static void close_stage(struct stage *stage, const char *directory)
{
    unsetenv("SOFTVERBS_DIR");
    rig_remove(directory);
    rig_unshare(stage, sizeof *stage);
}

static bool await(_Atomic uint32_t *value, unsigned least)
{
    for (int i = 0; i < PATIENCE && atomic_load(value) < least; i++)
        usleep(1000);
    return atomic_load(value) >= least;
}

/* ------------------------------------------------------------------ namespaces of processes */

static int wait_for(pid_t process)
{
    int status;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs the stage's body as process 1 of a new namespace. */
static int run_apart(const char *directory, void *context)
{
    struct stage *stage = context;
    if (unshare(CLONE_NEWPID | (geteuid() ? CLONE_NEWUSER : 0)))
        return SKIPPED;
    pid_t inside = fork();
    if (inside)
        return inside < 0 ? SKIPPED : wait_for(inside);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(stage->body(directory, stage));
}

static pid_t start_apart(int (*body)(const char *, struct stage *), const char *directory, struct stage *stage)
{
    stage->body = body;
    return rig_start(run_apart, directory, stage);
}

/* False: the process has ended, as such namespaces are not allowed here. */
static bool has_number(struct stage *stage, unsigned which, pid_t process)
{
    siginfo_t end = {0};
    for (int i = 0; i < PATIENCE && !atomic_load(&stage->numbers[which]) && !end.si_pid; i++) {
        usleep(1000);
        waitid(P_PID, (id_t)process, &end, WEXITED | WNOHANG | WNOWAIT);
    }
    return atomic_load(&stage->numbers[which]);
}

static int look_out(const char *directory, struct stage *stage)
{
    struct node *node = rig_open(directory);
    uint32_t first;
    if (node_claim_numbers(node, NODE_NUMBERS, &first))
        return 1;
    atomic_store(&stage->numbers[0], first);
    if (!await(&stage->numbers[1], 1))
        return 2;
    struct peer *peer = node_find(node, atomic_load(&stage->numbers[1]));
    if (!peer)
        return 3;
    stage->seen = peer->pid;
    atomic_store(&stage->looked, 1);
    for (;;)
        pause();
}

/* A process outside sees the one inside, by another number than the one it has inside; a process inside does not see
 * those outside. */
static void a_process_is_known_by_the_number_that_it_has_here_and_its_end_is_seen(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct stage *stage = open_stage(directory);
    stage->seen = -1;
    pid_t inside = start_apart(look_out, directory, stage);
    if (!has_number(stage, 0, inside)) {
        assert_int_equal(rig_wait(inside, 10), SKIPPED);
        close_stage(stage, directory);
        skip();
    }
    struct node *node = rig_open(directory);
    uint32_t first;
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &first), 0);
    struct peer *peer = node_find(node, atomic_load(&stage->numbers[0]));
    assert_non_null(peer);
    atomic_store(&stage->numbers[1], first);
    assert_true(await(&stage->looked, 1));
    assert_int_equal(stage->seen, 0);
    assert_true(peer->pid > 1 && node_alive(node, peer));
    assert_int_equal(kill(peer->pid, SIGKILL), 0);
    assert_int_equal(rig_wait(inside, 10), 128 + SIGKILL);
    assert_false(node_alive(node, peer));
    node_put(node, peer);
    rig_close(node);
    close_stage(stage, directory);
}

static void count_entry(const struct node_entry *entry, void *context)
{
    ++*(unsigned *)context;
}

static int join_and_count(const char *directory, struct stage *stage)
{
    struct node *node;
    char why[256];
    unsigned count = 0;
    atomic_fetch_add(&stage->looked, 1);
    PATIENTLY_WHILE (atomic_load(&stage->looked) < CROWD)
        ;
    if (node_open(&node, directory, why, sizeof why))
        return 1;
    atomic_fetch_add(&stage->joined, 1);
    if (!await(&stage->joined, CROWD))
        return 2;
    node_list(directory, count_entry, &count, why, sizeof why);
    atomic_fetch_add(&stage->looked, 1);
    await(&stage->looked, 2 * CROWD);
    node_close(node);
    return count == CROWD ? 0 : 3;
}

/* All of them are process 1. */
static void many_of_one_process_id_may_make_the_table_at_once(void **state)
{
    enum { ROUNDS = 10 };
    bool skipped = false;
    for (unsigned round = 0; !skipped && round < ROUNDS; round++) {
        char directory[NODE_DIRECTORY_MAX + 1];
        struct stage *stage = open_stage(directory);
        pid_t processes[CROWD];
        for (unsigned i = 0; i < CROWD; i++)
            processes[i] = start_apart(join_and_count, directory, stage);
        for (unsigned i = 0; i < CROWD; i++) {
            int status = rig_wait(processes[i], 60);
            skipped |= status == SKIPPED;
            assert_true(status == 0 || status == SKIPPED);
        }
        close_stage(stage, directory);
    }
    if (skipped)
        skip();
}

/* ------------------------------------------------------------------ an open directory */

static int open_result(const char *directory, const char *phrase)
{
    struct node *node;
    char why[256] = "";
    int error = node_open(&node, directory, why, sizeof why);
    if (!error)
        node_close(node);
    assert_true(!error || strstr(why, phrase));
    return error;
}

static mode_t mode_of(const char *directory, const char *name)
{
    char path[160];
    struct stat status;
    snprintf(path, sizeof path, "%.90s/%s", directory, name);
    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 0777;
}

static void a_directory_is_open_when_its_mode_says_so_and_it_is_named(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    assert_int_equal(chmod(directory, 0777), 0);
    assert_int_equal(open_result(directory, "mode 777"), EACCES);
    setenv("SOFTVERBS_DIR", "/tmp", 1);
    assert_int_equal(open_result(directory, "mode 777"), EACCES);
    setenv("SOFTVERBS_DIR", directory, 1);
    assert_int_equal(open_result(directory, ""), 0);
    chmod(directory, 01777);
    assert_int_equal(open_result(directory, "mode 1777"), EACCES);
    chmod(directory, 0755);
    assert_int_equal(open_result(directory, "mode 755"), EACCES);
    unsetenv("SOFTVERBS_DIR");
    rig_remove(directory);
}

static void what_is_made_in_an_open_directory_is_for_those_who_may_enter_it(void **state)
{
    static const struct {
        mode_t directory, files;
    } cases[] = {{0700, 0600}, {0770, 0660}, {0777, 0666}};
    mode_t before = umask(077);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char directory[NODE_DIRECTORY_MAX + 1];
        rig_directory(directory);
        chmod(directory, cases[i].directory);
        setenv("SOFTVERBS_DIR", directory, 1);
        struct node *node = rig_open(directory);
        char name[32];
        snprintf(name, sizeof name, "%u.sock", node_slot(node));
        assert_int_equal(mode_of(directory, "table"), cases[i].files);
        assert_int_equal(mode_of(directory, name), cases[i].files);
        rig_close(node);
        unsetenv("SOFTVERBS_DIR");
        rig_remove(directory);
    }
    umask(before);
}

static void a_table_from_before_the_directory_was_opened_is_opened_by_its_owner(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    rig_directory(directory);
    assert_int_equal(open_result(directory, ""), 0);
    assert_int_equal(mode_of(directory, "table"), 0600);
    chmod(directory, 0777);
    setenv("SOFTVERBS_DIR", directory, 1);
    assert_int_equal(open_result(directory, ""), 0);
    assert_int_equal(mode_of(directory, "table"), 0666);
    unsetenv("SOFTVERBS_DIR");
    rig_remove(directory);
}

/* A process with access to the directory can put a second name of another file there, where the kernel allows that
 * (fs.protected_hardlinks). */
static void another_file_under_the_tables_name_is_not_opened_to_others(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1], aside[NODE_DIRECTORY_MAX + 1], secret[160], name[160];
    rig_directory(directory);
    rig_directory(aside);
    chmod(directory, 0777);
    snprintf(secret, sizeof secret, "%s/secret", aside);
    snprintf(name, sizeof name, "%s/table", directory);
    int file = open(secret, O_WRONLY | O_CREAT, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(link(secret, name), 0);
    setenv("SOFTVERBS_DIR", directory, 1);
    assert_int_equal(open_result(directory, ""), 0);
    assert_int_equal(mode_of(aside, "secret"), 0600);
    unsetenv("SOFTVERBS_DIR");
    rig_remove(directory);
    rig_remove(aside);
}

/* ------------------------------------------------------------------ other users in it */

static void take_frame(void *context, struct peer *peer, const struct frame *frame)
{
    atomic_fetch_add((_Atomic uint32_t *)context, 1);
}

static int send_as_another(const char *directory, void *context)
{
    struct stage *stage = context;
    struct node *node;
    char why[256];
    if (setgid(12345) || setuid(12345) || node_open(&node, directory, why, sizeof why))
        return 1;
    if (!rig_send(node, atomic_load(&stage->numbers[1]), "x", 2, false, NULL, NULL) || !await(&stage->looked, 1))
        return 2;
    struct peer *peer = node_find(node, atomic_load(&stage->numbers[1]));
    return peer->link->operations->can_reference(peer->link) ? 3 : 0;
}

/* Root could read it. A message could name a process, though, that a third user would have us read. */
static void the_memory_of_another_user_is_not_read(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint32_t first;
    if (geteuid())
        skip(); /* only root can become another user */
    struct stage *stage = open_stage(directory);
    chmod(directory, 0777);
    setenv("SOFTVERBS_DIR", directory, 1);
    struct node *node = rig_open(directory);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &first), 0);
    atomic_store(&stage->numbers[1], first);
    pid_t other = rig_start(send_as_another, directory, stage);
    for (int i = 0; i < PATIENCE / 10 && !atomic_load(&stage->looked); i++)
        rig_sleep_and_turn(node, take_frame, &stage->looked, 10);
    assert_int_equal(rig_wait(other, 10), 0);
    rig_close(node);
    close_stage(stage, directory);
}

TESTS(a_process_is_known_by_the_number_that_it_has_here_and_its_end_is_seen,
      many_of_one_process_id_may_make_the_table_at_once,
      a_directory_is_open_when_its_mode_says_so_and_it_is_named,
      what_is_made_in_an_open_directory_is_for_those_who_may_enter_it,
      a_table_from_before_the_directory_was_opened_is_opened_by_its_owner,
      another_file_under_the_tables_name_is_not_opened_to_others,
      the_memory_of_another_user_is_not_read)
