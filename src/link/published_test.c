/* The file of a process's publications, as a peer that has its descriptor sees it: to be read, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "link/published.h"
#include "link/testing/process_vm.h"

enum { FUTURE_WRITE = 0x10 /* F_SEAL_FUTURE_WRITE */ };

static off_t size_of(int descriptor)
{
    struct stat status;
    assert_int_equal(fstat(descriptor, &status), 0);
    return status.st_size;
}

static bool is_mapped(int descriptor, int protection, int flags)
{
    size_t size = (size_t)size_of(descriptor);
    void *at = mmap(NULL, size, protection, flags, descriptor, 0);
    if (at != MAP_FAILED)
        munmap(at, size);
    return at != MAP_FAILED;
}

static int open_again(int descriptor)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void expect_read_only(int descriptor)
{
    size_t size = (size_t)size_of(descriptor);
    assert_false(is_mapped(descriptor, PROT_READ | PROT_WRITE, MAP_SHARED));
    assert_false(is_mapped(descriptor, PROT_WRITE, MAP_SHARED));
    void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_true(at != MAP_FAILED);
    assert_int_not_equal(mprotect(at, size, PROT_READ | PROT_WRITE), 0);
    assert_int_not_equal(madvise(at, size, MADV_REMOVE), 0);
    munmap(at, size);
    assert_int_equal(pwrite(descriptor, "x", 1, 64), -1);
    assert_int_not_equal(ftruncate(descriptor, 0), 0);
    assert_int_not_equal(fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

static void a_peer_can_only_read_it(void **state)
{
    struct published own, peer;
    assert_int_equal(published_create(&own), 0);
    expect_read_only(own.descriptor);
    int again = open_again(own.descriptor);
    assert_true(again >= 0);
    expect_read_only(again);
    close(again);
    assert_int_equal(published_map(&peer, own.descriptor), 0);
    published_close(&peer);
    published_close(&own);
}

static void its_seals_stay_as_they_are(void **state)
{
    struct published own;
    assert_int_equal(published_create(&own), 0);
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | FUTURE_WRITE;
    assert_int_equal(fcntl(own.descriptor, F_GET_SEALS) & seals, seals);
    assert_int_not_equal(fcntl(own.descriptor, F_ADD_SEALS, F_SEAL_WRITE), 0);
    published_close(&own);
}

static void the_owner_goes_on_writing_it(void **state)
{
    struct published own, peer;
    struct published_key key = {.access = PUBLISHED_READ, .length = 8};
    struct published_queue_pair queue_pair = {.access = PUBLISHED_READ};
    struct published_question question = {.number = 1, .key = 0x100, .length = 8};
    uint64_t memory;
    assert_int_equal(published_create(&own), 0);
    assert_int_equal(published_map(&peer, own.descriptor), 0);
    assert_true(published_key(&own, 0x100, &key));
    assert_true(published_queue_pair(&own, 1, &queue_pair));
    published_open(&own, true);
    assert_false(published_permits(&peer, &question, &memory)); /* no thread vouches */
    if (!has_robust_lists())
        skip();
    published_vouch(&own);
    assert_true(published_permits(&peer, &question, &memory));
    published_retract(&own);
    assert_false(published_permits(&peer, &question, &memory));
    published_close(&peer);
    published_close(&own);
}

static void a_queue_pair_answers_who_has_no_more_READs_than_it_keeps(void **state)
{
    struct published own;
    struct published_key key = {.access = PUBLISHED_READ | PUBLISHED_WRITE, .length = 8};
    struct published_queue_pair queue_pair = {.access = PUBLISHED_READ | PUBLISHED_WRITE, .max_dest_rd_atomic = 4};
    struct published_question read = {.number = 1, .key = 0x100, .length = 8, .max_rd_atomic = 4};
    const struct published_question write = {.write = true, .number = 1, .key = 0x100, .length = 8};
    uint64_t memory;
    if (!has_robust_lists())
        skip();
    assert_int_equal(published_create(&own), 0);
    published_vouch(&own);
    published_open(&own, true);
    assert_true(published_key(&own, 0x100, &key));
    assert_true(published_queue_pair(&own, 1, &queue_pair));
    assert_true(published_permits(&own, &read, &memory));
    read.max_rd_atomic = 5;
    assert_false(published_permits(&own, &read, &memory));
    assert_true(published_permits(&own, &write, &memory));
    published_retract(&own);
    published_close(&own);
}

/* Sealed as files of this layout were before: a peer could have written where the owner's memory is. */
static void a_file_that_others_may_write_is_not_read(void **state)
{
    struct published own, peer;
    assert_int_equal(published_create(&own), 0);
    off_t size = size_of(own.descriptor);
    int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    char *from = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, own.descriptor, 0);
    assert_true(from != MAP_FAILED);
    assert_int_equal(ftruncate(other, size), 0);
    assert_int_equal(pwrite(other, from, 4096, 0), 4096);
    assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    assert_int_equal(published_map(&peer, other), EINVAL);
    assert_int_equal(fcntl(other, F_ADD_SEALS, FUTURE_WRITE | F_SEAL_SEAL), 0);
    assert_int_equal(published_map(&peer, other), 0);
    published_close(&peer);
    munmap(from, (size_t)size);
    close(other);
    published_close(&own);
}

#define ARGUMENT(number) ((uint32_t)offsetof(struct seccomp_data, args[number]))

/* Answers as a kernel before 5.1. */
static void refuse_the_seal(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(1)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FUTURE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        _exit(77);
}

static void without_the_seal_nothing_is_published(void **state)
{
    int status;
    pid_t child = fork();
    if (!child) {
        struct published own;
        struct published_key key = {.access = PUBLISHED_READ, .length = 8};
        refuse_the_seal();
        bool none = published_create(&own) == EINVAL && own.descriptor < 0 && !published_key(&own, 0x100, &key);
        published_vouch(&own);
        published_retract(&own);
        published_close(&own);
        _exit(none ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- vouching */

static atomic_uint word;

static void *vouch_and_hold(void *argument)
{
    static struct voucher voucher; /* the kernel looks at it when the thread has returned from here */
    assert_int_equal(voucher_take(&voucher, &word), 0);
    assert_true(voucher_holds(&word));
    if (argument)
        voucher_give_back(&voucher);
    return NULL;
}

static void in_a_thread(void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, vouch_and_hold, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_voucher_ends_with_its_thread(void **state)
{
    if (!has_robust_lists())
        skip();
    atomic_store(&word, 0);
    in_a_thread(NULL);
    assert_int_equal(atomic_load(&word), FUTEX_OWNER_DIED);
    assert_false(voucher_holds(&word));
}

static void what_was_given_back_is_nobodys(void **state)
{
    if (!has_robust_lists())
        skip();
    atomic_store(&word, 0);
    in_a_thread(&word);
    assert_int_equal(atomic_load(&word), 0);
}

/* Robust mutexes of pthread work again in a thread that has given its voucher back. */
static void *die_with_a_mutex(void *mutex)
{
    struct voucher voucher = {0};
    voucher_take(&voucher, &word);
    voucher_give_back(&voucher);
    pthread_mutex_lock(mutex);
    return NULL;
}

static void the_list_of_pthread_comes_back(void **state)
{
    pthread_t thread;
    pthread_mutexattr_t attributes;
    static pthread_mutex_t mutex;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&thread, NULL, die_with_a_mutex, &mutex);
    pthread_join(thread, NULL);
    assert_int_equal(pthread_mutex_lock(&mutex), EOWNERDEAD);
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_destroy(&mutex);
}

TESTS(a_peer_can_only_read_it,
      its_seals_stay_as_they_are,
      the_owner_goes_on_writing_it,
      a_queue_pair_answers_who_has_no_more_READs_than_it_keeps,
      a_file_that_others_may_write_is_not_read,
      without_the_seal_nothing_is_published,
      a_voucher_ends_with_its_thread,
      what_was_given_back_is_nobodys,
      the_list_of_pthread_comes_back)
