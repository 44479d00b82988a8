/* The owners of messages, sockets and directories, where the kernel shows several users by one number, and in a program
 * that has more rights than its user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/nobody.h"
#include "base/testing/patience.h"
#include "diag/log.h"
#include "ipc/place/directory.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { STRANGER = 12345 };

static unsigned long has_more_rights;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

/* AT_SECURE: the kernel's mark of a set-uid program. */
unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_SECURE ? has_more_rights : __real_getauxval(type);
}

/* --- requests */

static void count_request(void *context, const char *request, int fd)
{
    ++*(unsigned *)context;
}

static int waits = -1; /* receives the last answer: a request whose asker has gone is not answered */

/* How many requests the node has answered now. */
static unsigned answered(struct node *node)
{
    unsigned count = 0;
    node_service(node, count_request, &count);
    return count;
}

static bool request(const char *directory, unsigned slot)
{
    const struct control_message message = {.magic = CONTROL_MAGIC, .layout = CONTROL_LAYOUT, .kind = CONTROL_REPORT};
    char name[CONTROL_NAME_MAX];
    int ends[2], letters = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    table_socket_name(directory, slot, name);
    bool sent = letters >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) &&
                send(ends[0], "show", 4, 0) == 4 && !control_send(letters, name, &message, ends[1]);
    close(ends[1]);
    close(letters);
    if (waits >= 0)
        close(waits);
    waits = ends[0];
    return sent;
}

/* Another user asks as soon as there is a slot to ask, in an open directory. */
struct asker {
    char directory[NODE_DIRECTORY_MAX + 1];
    atomic_uint slot, asked, over; /* the slot + 1 */
};

static bool await(atomic_uint *number)
{
    for (int i = 0; i < PATIENCE && !atomic_load(number); i++)
        usleep(1000);
    return atomic_load(number);
}

static int ask_as_stranger(const char *directory, void *context)
{
    struct asker *asker = context;
    if (setgid(STRANGER) || setuid(STRANGER) || !await(&asker->slot) || !request(directory, asker->slot - 1))
        return 1;
    atomic_store(&asker->asked, 1);
    return await(&asker->over) ? 0 : 2;
}

static int answer_own_alone(void *context)
{
    struct asker *asker = context;
    struct node *node = rig_open(asker->directory);
    if (!request(asker->directory, node_slot(node)) || answered(node) != 1)
        return 1;
    atomic_store(&asker->slot, node_slot(node) + 1);
    if (!await(&asker->asked))
        return 2;
    unsigned count = answered(node);
    atomic_store(&asker->over, 1);
    rig_close(node);
    return count ? 3 : 0;
}

static int open_directory(void **state)
{
    struct asker *asker = rig_share(sizeof *asker);
    *state = asker;
    rig_directory(asker->directory);
    return chmod(asker->directory, 0777) || setenv("SOFTVERBS_DIR", asker->directory, 1);
}

static int close_directory(void **state)
{
    struct asker *asker = *state;
    unsetenv("SOFTVERBS_DIR");
    rig_remove(asker->directory);
    rig_unshare(asker, sizeof *asker);
    return 0;
}

static void nobody_answers_its_own_requests_and_no_others(void **state)
{
    struct asker *asker = *state;
    if (geteuid())
        skip(); /* only root can become another user */
    pid_t stranger = rig_start(ask_as_stranger, asker->directory, asker);
    int status = nobody_run(answer_own_alone, asker);
    if (status == NOBODY_SKIPPED) {
        kill(stranger, SIGKILL);
        rig_wait(stranger, 10);
        skip();
    }
    assert_int_equal(status, 0);
    assert_int_equal(rig_wait(stranger, 10), 0);
}

/* Whether the log, which is the process's standard error, has a line of this reason. */
static bool has_logged(FILE *log, const char *reason)
{
    char line[512];
    bool found = false;
    rewind(log);
    while (!found && fgets(line, sizeof line, log))
        found = strstr(line, reason);
    return found;
}

static int refuse_own(const char *directory, void *context)
{
    FILE *log = tmpfile();
    setenv("SOFTVERBS_LOG", "warn", 1);
    if (!log || dup2(fileno(log), STDERR_FILENO) < 0)
        return 3;
    log_start();
    struct node *node = rig_open(directory);
    has_more_rights = 1;
    if (!request(directory, node_slot(node)) || answered(node) || !has_logged(log, "(reason 503)"))
        return 1;
    has_more_rights = 0;
    if (!request(directory, node_slot(node)) || answered(node) != 1)
        return 2;
    rig_close(node);
    return 0;
}

static int refuse_own_as_user(const char *directory, void *context)
{
    if (!geteuid() && (setgid(STRANGER) || setuid(STRANGER)))
        return 1;
    return refuse_own(directory, context);
}

/* The user of a program with more rights may not read its memory either. */
static void who_has_more_rights_than_its_user_answers_none_of_its_requests(void **state)
{
    struct asker *asker = *state;
    assert_int_equal(rig_wait(rig_start(refuse_own_as_user, asker->directory, NULL), 10), 0);
}

static int answer_root(const char *directory, void *context)
{
    struct node *node = rig_open(directory);
    has_more_rights = 1;
    return request(directory, node_slot(node)) && answered(node) == 1 ? 0 : 1;
}

static void it_answers_root(void **state)
{
    struct asker *asker = *state;
    if (geteuid())
        skip(); /* only root is root */
    assert_int_equal(rig_wait(rig_start(answer_root, asker->directory, NULL), 10), 0);
}

/* --- sockets that are asked, and what they answer with */

/* Makes a socket in the place of another process's, from which an impostor answers. */
static int take_name(const char *directory, unsigned slot, uid_t user)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    table_socket_name(directory, slot, address.sun_path);
    unlink(address.sun_path);
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) ||
        bind(fd, (struct sockaddr *)&address, sizeof address) || chmod(address.sun_path, 0666) ||
        (!geteuid() && chown(address.sun_path, user, user)))
        return -1;
    return fd;
}

/* Answers one request with this file. */
static int answer_with(int socket, const char *path)
{
    struct control_message message;
    int descriptor = -1, file = open(path, O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < PATIENCE && descriptor < 0; i++) {
        control_take(socket, &message, &descriptor, NULL);
        usleep(descriptor < 0 ? 1000 : 0);
    }
    return descriptor < 0 || control_send_descriptor(descriptor, file);
}

static int ask(const char *directory, unsigned slot)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int error = node_ask(directory, slot, "show", nothing, PATIENCE);
    close(nothing);
    return error;
}

/* Another user of an open directory would otherwise answer in the name of our process. */
static void a_socket_of_another_user_is_not_asked(void **state)
{
    struct asker *asker = *state;
    if (geteuid())
        skip(); /* only root can give files away */
    struct node *node = rig_open(asker->directory);
    int socket = take_name(asker->directory, node_slot(node), STRANGER);
    assert_true(socket >= 0);
    assert_int_equal(ask(asker->directory, node_slot(node)), EPERM);
    close(socket);
    rig_close(node);
}

/* A file of FUSE is a regular file, too, and its reader waits for as long as another user likes. */
static void a_report_that_is_no_memory_is_not_read(void **state)
{
    struct asker *asker = *state;
    struct node *node = rig_open(asker->directory);
    int socket = take_name(asker->directory, node_slot(node), geteuid());
    assert_true(socket >= 0);
    pid_t child = fork();
    if (!child)
        _exit(answer_with(socket, "/proc/self/exe"));
    assert_int_equal(ask(asker->directory, node_slot(node)), EPROTO);
    assert_int_equal(rig_wait(child, 10), 0);
    close(socket);
    rig_close(node);
}

static int know_sockets(void *context)
{
    const struct asker *asker = context;
    char own[CONTROL_NAME_MAX], others[CONTROL_NAME_MAX];
    int socket = take_name(asker->directory, 1, 0);
    table_socket_name(asker->directory, 1, own);
    table_socket_name(asker->directory, 2, others);
    if (socket < 0 || directory_owns_socket(own))
        return 1;
    return directory_owns_socket(others) == EPERM ? 0 : 2;
}

static void nobody_knows_its_own_sockets(void **state)
{
    struct asker *asker = *state;
    if (geteuid())
        skip(); /* only root can give files away */
    int socket = take_name(asker->directory, 2, STRANGER), status = nobody_run(know_sockets, asker);
    close(socket);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* --- directories */

/* The sentence is right, too: it does not say that the directory is of 65534. */
static int refuse_directory(void *context)
{
    const struct asker *asker = context;
    char why[256] = "";
    unsetenv("SOFTVERBS_DIR");
    if (directory_check(asker->directory, false, why, sizeof why) != EACCES)
        return 1;
    return strstr(why, "no number in this user namespace") ? 0 : 2;
}

static void a_directory_of_a_user_without_a_number_is_refused(void **state)
{
    struct asker *asker = *state;
    if (geteuid())
        skip(); /* only root can give files away */
    assert_int_equal(chmod(asker->directory, 0700) || chown(asker->directory, STRANGER, STRANGER), 0);
    int status = nobody_run(refuse_directory, asker);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

static int use_directory(void *context)
{
    const struct asker *asker = context;
    struct node *node;
    char why[256];
    unsetenv("SOFTVERBS_DIR");
    if (node_open(&node, asker->directory, why, sizeof why))
        return 1;
    bool fine = request(asker->directory, node_slot(node)) && answered(node) == 1;
    node_close(node);
    return fine ? 0 : 2;
}

static void nobody_meets_in_its_own_directory(void **state)
{
    struct asker *asker = *state;
    assert_int_equal(chmod(asker->directory, 0700), 0);
    assert_true(geteuid() || !chown(asker->directory, NOBODY_OUTSIDE, NOBODY_OUTSIDE));
    int status = nobody_run(use_directory, asker);
    if (status == NOBODY_SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

#define OPEN_TEST(test) cmocka_unit_test_setup_teardown(test, open_directory, close_directory)

TESTS_OF(OPEN_TEST, nobody_answers_its_own_requests_and_no_others,
                    who_has_more_rights_than_its_user_answers_none_of_its_requests,
                    it_answers_root,
                    a_socket_of_another_user_is_not_asked,
                    a_report_that_is_no_memory_is_not_read,
                    nobody_knows_its_own_sockets,
                    a_directory_of_a_user_without_a_number_is_refused,
                    nobody_meets_in_its_own_directory)
