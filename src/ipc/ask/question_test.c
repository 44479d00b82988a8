/* A question to another process: the process asked, the parts of its answer that are taken, and that no thread waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/ask/other_directories.h"
#include "ipc/ask/question.h"
#include "ipc/state.h"
#include "ipc/testing/node_rig.h"

enum { SIZE = 64 };

struct pair {
    _Atomic uint32_t number;
    atomic_uint answers, done; /* how many bytes the other answers with; when it is to end */
    atomic_bool deaf, silent;  /* it is to service nothing; it does so */
};

static void answer(void *context, const char *request, int fd)
{
    const struct pair *pair = context;
    char bytes[2 * SIZE];
    memset(bytes, request[3], sizeof bytes);
    if (write(fd, bytes, pair->answers) < 0)
        _exit(1);
}

static int other(const char *directory, void *context)
{
    struct pair *pair = context;
    struct node *node = rig_open(directory);
    uint32_t number;
    if (node_claim_numbers(node, NODE_NUMBERS, &number))
        return 1;
    atomic_store(&pair->number, number);
    PATIENTLY_WHILE (!atomic_load(&pair->done)) {
        if (!atomic_load(&pair->deaf))
            node_service(node, answer, pair);
        else
            atomic_store(&pair->silent, true);
        usleep(100);
    }
    rig_close(node);
    return 0;
}

struct room {
    char directory[NODE_DIRECTORY_MAX + 1];
    struct pair *pair;
    pid_t process;
    struct node *node;
    struct peer *peer;
};

static void enter(struct room *room, unsigned answers)
{
    rig_directory(room->directory);
    room->pair = rig_share(sizeof *room->pair);
    atomic_store(&room->pair->answers, answers);
    room->process = rig_start(other, room->directory, room->pair);
    PATIENTLY_WHILE (!atomic_load(&room->pair->number))
        usleep(100);
    room->node = rig_open(room->directory);
    room->peer = node_find(room->node, atomic_load(&room->pair->number));
    assert_non_null(room->peer);
}

static void leave(struct room *room, int status)
{
    atomic_store(&room->pair->done, 1);
    assert_int_equal(rig_wait(room->process, (int)PATIENCE_SECONDS), status);
    node_put(room->node, room->peer);
    rig_close(room->node);
    rig_unshare(room->pair, sizeof *room->pair);
    rig_remove(room->directory);
}

static int await(struct question *question, char bytes[SIZE])
{
    int error = EAGAIN;
    for (int i = 0; error == EAGAIN && i < PATIENCE; i++, usleep(1000)) {
        errno = EDOM;
        error = question_look(question, bytes, SIZE);
        assert_int_equal(errno, EDOM);
    }
    return error;
}

static int ask_and_await(struct room *room, char bytes[SIZE])
{
    struct question question;
    assert_int_equal(question_ask(room->node, room->peer, "qp 7", &question), 0);
    int error = await(&question, bytes);
    question_end(&question);
    question_end(&question);
    return error;
}

static void an_answer_of_the_right_size_is_taken(void **state)
{
    struct room room;
    char bytes[SIZE] = "";
    enter(&room, SIZE);
    assert_int_equal(ask_and_await(&room, bytes), 0);
    assert_int_equal(bytes[0], '7');
    assert_int_equal(bytes[SIZE - 1], '7');
    leave(&room, 0);
}

static void one_of_another_size_is_not(void **state)
{
    struct room room;
    char bytes[SIZE];
    enter(&room, SIZE - 1);
    assert_int_equal(ask_and_await(&room, bytes), EPROTO);
    atomic_store(&room.pair->answers, SIZE + 1);
    assert_int_equal(ask_and_await(&room, bytes), EPROTO);
    atomic_store(&room.pair->answers, 0);
    assert_int_equal(ask_and_await(&room, bytes), EPROTO);
    leave(&room, 0);
}

static void errno_of_the_program_stays(void **state)
{
    struct room room;
    struct question question;
    struct rlimit before, none;
    enter(&room, SIZE);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    errno = EDOM;
    int error = question_ask(room.node, room.peer, "qp 7", &question);
    assert_int_equal(errno, EDOM);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(error, EMFILE);
    leave(&room, 0);
}

static void make_deaf(struct room *room)
{
    atomic_store(&room->pair->deaf, true);
    for (int i = 0; i < PATIENCE && !atomic_load(&room->pair->silent); i++)
        usleep(1000);
    assert_true(atomic_load(&room->pair->silent));
}

static void who_does_not_look_keeps_nobody_waiting(void **state)
{
    struct room room;
    struct question question;
    char bytes[SIZE];
    enter(&room, SIZE);
    make_deaf(&room);
    assert_int_equal(question_ask(room.node, room.peer, "qp 7", &question), 0);
    assert_int_equal(question_look(&question, bytes, SIZE), EAGAIN);
    question_end(&question);
    leave(&room, 0);
}

static void who_ends_meanwhile_is_noticed(void **state)
{
    struct room room;
    struct question question;
    char bytes[SIZE];
    enter(&room, SIZE);
    make_deaf(&room);
    assert_int_equal(question_ask(room.node, room.peer, "qp 7", &question), 0);
    kill(room.process, SIGKILL);
    int error = await(&question, bytes);
    assert_true(error && error != EAGAIN);
    question_end(&question);
    leave(&room, 128 + SIGKILL);
}

static void its_program_has_a_name(void **state)
{
    struct room room;
    char program[QUESTION_PROGRAM];
    enter(&room, SIZE);
    assert_int_equal(question_of(room.node, room.peer, program), room.process);
    assert_string_equal(program, "question_test");
    leave(&room, 0);
}

static unsigned opened;
FILE *__real_fopen64(const char *, const char *);
FILE *__wrap_fopen64(const char *, const char *);
static const char *made_up; /* the lines of the kernel's list; NULL: as they are */
FILE *__wrap_fopen64(const char *name, const char *mode)
{
    if (strcmp(name, "/proc/net/unix"))
        return __real_fopen64(name, mode);
    opened++;
    return made_up ? fmemopen((void *)(uintptr_t)made_up, strlen(made_up), "r") : __real_fopen64(name, mode);
}

static void the_list_of_the_kernel_is_read_once_in_a_second(void **state)
{
    char words[256];
    time_t begin = time(NULL);
    opened = 0;
    for (unsigned i = 0; i < 100; i++)
        other_directories_find("/softverbs-nowhere", words, sizeof words);
    assert_in_range(opened, 1, time(NULL) - begin + 2);
}

#define OF_TESTS                                                                                                       \
    "0: 2 0 0 1 1 7 /dev/shm/softverbs-tool-x1/node/0.sock\n0: 2 0 0 1 1 7 /dev/shm/softverbs-tool-x1/node/1.sock\n"
#define OTHERS "0: 2 0 0 1 1 7 /dev/shm/softverbs-%u-4026531840-4026531837/3.sock\n"

/* The words for a list of these lines; the directory makes each question a new one. */
static const char *said_with(const char *lines)
{
    static char words[256], directory[32];
    static unsigned asked;
    snprintf(directory, sizeof directory, "/softverbs-asks-%u", asked++);
    made_up = lines;
    bool found = other_directories_find(directory, words, sizeof words);
    made_up = NULL;
    return found ? words : "";
}

static void another_user_is_named_before_directories_of_a_third(void **state)
{
    char lines[512];
    snprintf(lines, sizeof lines, OF_TESTS OTHERS, geteuid() + 1234);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "user %u runs softverbs", geteuid() + 1234);
    assert_non_null(strstr(said_with(lines), wanted));
    snprintf(lines, sizeof lines, OF_TESTS OTHERS, geteuid());
    snprintf(wanted, sizeof wanted, "processes meet in /dev/shm/softverbs-%u-", geteuid());
    assert_non_null(strstr(said_with(lines), wanted));
}

static void one_directory_of_several_is_an_example(void **state)
{
    assert_non_null(strstr(said_with(OF_TESTS), "processes meet in /dev/shm/softverbs-tool-x1/node, too"));
    assert_non_null(strstr(said_with(OF_TESTS "0: 2 0 0 1 1 7 /tmp/softverbs-test-2/0.sock\n"),
                           "processes meet in other directories, such as /dev/shm/softverbs-tool-x1/node, too"));
    assert_string_equal(said_with("0: 2 0 0 1 1 7 /run/other/0.sock\n"), "");
}

static void who_meets_elsewhere_is_found(void **state)
{
    struct room room;
    char words[256], elsewhere[NODE_DIRECTORY_MAX + 1];
    enter(&room, SIZE);
    rig_directory(elsewhere);
    assert_true(other_directories_find(elsewhere, words, sizeof words));
    assert_non_null(strstr(words, " meet in ") ? words : strstr(words, "runs softverbs on this host"));
    rig_remove(elsewhere);
    leave(&room, 0);
}

TESTS(an_answer_of_the_right_size_is_taken,
      one_of_another_size_is_not,
      errno_of_the_program_stays,
      who_does_not_look_keeps_nobody_waiting,
      who_ends_meanwhile_is_noticed,
      its_program_has_a_name,
      the_list_of_the_kernel_is_read_once_in_a_second,
      another_user_is_named_before_directories_of_a_third,
      one_directory_of_several_is_an_example,
      who_meets_elsewhere_is_found)
