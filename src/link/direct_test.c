/* Publishing by a process, and accesses by a peer that race with withdrawing it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/patience.h"
#include "link/direct.h"
#include "link/testing/dawdle.h"
#include "link/testing/process_vm.h"

enum { KEY = 0x1234501, NUMBER = 0x777, PEER = 0x888, DOMAIN = 5, LENGTH = 4096, READS = 4 };

static const struct published_queue_pair queue_pair = {.peer = PEER,
                                                       .access = PUBLISHED_WRITE | PUBLISHED_READ,
                                                       .first_psn = 3,
                                                       .peer_psn = 4,
                                                       .max_dest_rd_atomic = READS,
                                                       .domain = DOMAIN};

static struct published_key key_of(const void *memory)
{
    return (struct published_key){.access = PUBLISHED_WRITE | PUBLISHED_READ,
                                  .domain = DOMAIN,
                                  .base = 0x10000,
                                  .length = LENGTH,
                                  .memory = (uintptr_t)memory};
}

static struct published_question question_of(bool write)
{
    return (struct published_question){.write = write,
                                       .number = NUMBER,
                                       .own_number = PEER,
                                       .first_psn = 3,
                                       .own_psn = 4,
                                       .key = KEY,
                                       .address = 0x10000,
                                       .length = 8,
                                       .max_rd_atomic = write ? 0 : READS};
}

static struct published own;
static char memory[LENGTH];

static int publish_all(void **state)
{
    struct published_key key = key_of(memory);
    assert_int_equal(published_create(&own), 0);
    published_open(&own, true);
    published_vouch(&own);
    assert_true(published_key(&own, KEY, &key));
    assert_true(published_queue_pair(&own, NUMBER, &queue_pair));
    return 0;
}

static int close_all(void **state)
{
    published_retract(&own); /* the kernel's list of the thread leads to the file */
    published_close(&own);
    return 0;
}

static bool permits(const struct published_question *question)
{
    uint64_t at;
    return published_permits(&own, question, &at) && at == (uintptr_t)memory + question->address - 0x10000;
}

static void what_is_published_is_permitted(void **state)
{
    struct published_question question = question_of(true);
    assert_true(permits(&question));
    question.write = false;
    assert_true(permits(&question));
    question.address += LENGTH - 8;
    assert_true(permits(&question));
}

static void nothing_else_is_permitted(void **state)
{
    struct {
        size_t offset;
        uint32_t value;
    } wrong[] = {
        {offsetof(struct published_question, number), NUMBER + 1},
        {offsetof(struct published_question, number), NUMBER + PUBLISHED_QUEUE_PAIRS},
        {offsetof(struct published_question, number), 0},
        {offsetof(struct published_question, own_number), PEER + 1},
        {offsetof(struct published_question, first_psn), 4},
        {offsetof(struct published_question, own_psn), 3},
        {offsetof(struct published_question, key), KEY + 1},
        {offsetof(struct published_question, key), KEY + PUBLISHED_KEYS * 256},
        {offsetof(struct published_question, key), 0},
        {offsetof(struct published_question, address), 0xffff},
        {offsetof(struct published_question, address), 0x10000 + LENGTH - 7},
        {offsetof(struct published_question, length), LENGTH + 1},
        {offsetof(struct published_question, length), UINT32_MAX},
        {offsetof(struct published_question, max_rd_atomic), READS + 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct published_question question = question_of(true);
        memcpy((char *)&question + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
        assert_false(permits(&question));
    }
}

static void access_is_what_key_and_queue_pair_allow(void **state)
{
    struct published_key key = key_of(memory);
    struct published_queue_pair other = queue_pair;
    struct published_question write = question_of(true), read = question_of(false);
    assert_true(published_withdraw_key(&own, KEY));
    key.access = PUBLISHED_READ;
    assert_true(published_key(&own, KEY, &key));
    assert_true(permits(&read) && !permits(&write));
    assert_true(published_withdraw_queue_pair(&own, NUMBER));
    other.access = PUBLISHED_WRITE;
    assert_true(published_queue_pair(&own, NUMBER, &other));
    assert_true(!permits(&read) && !permits(&write));
}

static void another_domain_is_not_permitted(void **state)
{
    struct published_key key = key_of(memory);
    struct published_question question = question_of(true);
    published_withdraw_key(&own, KEY);
    key.domain = DOMAIN + 1;
    published_key(&own, KEY, &key);
    assert_false(permits(&question));
}

static void what_is_withdrawn_or_closed_is_not_permitted(void **state)
{
    struct published_question question = question_of(true);
    published_open(&own, false);
    assert_false(permits(&question));
    published_open(&own, true);
    assert_true(permits(&question));
    published_retract(&own);
    assert_false(permits(&question));
    published_vouch(&own);
    assert_true(published_withdraw_key(&own, KEY));
    assert_false(published_withdraw_key(&own, KEY));
    assert_false(permits(&question));
}

static void a_place_that_is_taken_is_left_alone(void **state)
{
    struct published_key key = key_of(NULL);
    struct published_question question = question_of(true);
    assert_false(published_key(&own, KEY + PUBLISHED_KEYS * 256, &key));
    assert_false(published_queue_pair(&own, NUMBER + PUBLISHED_QUEUE_PAIRS, &queue_pair));
    assert_false(published_withdraw_key(&own, KEY + PUBLISHED_KEYS * 256));
    assert_true(permits(&question));
}

/* A process with many would have some asked for with packets, a sleeping one ten times as slow
 * (docs/evidence/costs.md). */
static void sixty_thousand_regions_and_queue_pairs_have_places(void **state)
{
    struct published_key key = key_of(memory);
    for (uint32_t i = 1; i < 60000; i++) {
        assert_true(published_key(&own, KEY + i * 256, &key));
        assert_true(published_queue_pair(&own, NUMBER + i, &queue_pair));
    }
}

static void no_other_file_is_mapped(void **state)
{
    struct published peer;
    int plain = memfd_create("plain", MFD_CLOEXEC), sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(sealed, 4096), 0);
    fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    assert_int_equal(published_map(&peer, plain), EINVAL);
    assert_int_equal(published_map(&peer, sealed), EINVAL);
    assert_int_equal(published_map(&peer, own.descriptor), 0);
    published_close(&peer);
    close(plain);
    close(sealed);
}

/* --- two processes */

/* Shared by both: the owner's child writes into the owner's memory for as long as it may. */
struct stage {
    struct direct_seats seats;
    atomic_uint rounds, done, declined;
    atomic_bool stop;
};

static void write_again_and_again(struct stage *stage, pid_t owner, int descriptor)
{
    struct published published;
    struct direct_desk desk = {0};
    uint64_t value = ~0ull;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1};
    if (published_map(&published, descriptor))
        _exit(1);
    while (!atomic_load(&stage->stop)) {
        bool done = direct_do(&desk, &stage->seats, &published, owner, &access) == DIRECT_DONE;
        atomic_fetch_add(done ? &stage->done : &stage->declined, 1);
    }
    _exit(0);
}

static pid_t start_writer(struct stage **stage)
{
    pid_t owner = getpid();
    *stage = mmap(NULL, sizeof **stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t writer = fork();
    if (!writer) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dawdles = true;
        write_again_and_again(*stage, owner, own.descriptor);
    }
    return writer;
}

static void end_writer(struct stage *stage, pid_t writer)
{
    int status;
    atomic_store(&stage->stop, true);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    munmap(stage, sizeof *stage);
}

static void wait_for_more(atomic_uint *count)
{
    unsigned before = atomic_load(count);
    PATIENTLY_WHILE (atomic_load(count) == before)
        sched_yield();
}

/* Waits for the announced accesses as node_quiesce does. */
static void quiesce(struct stage *stage)
{
    uint32_t seen[DIRECT_SEATS];
    direct_look(&stage->seats, seen);
    PATIENTLY_WHILE (direct_is_under_way(&stage->seats, seen))
        sched_yield();
}

static unsigned rounds(void)
{
    const char *long_form = getenv("DIRECT_TEST_ROUNDS");
    return long_form ? (unsigned)atoi(long_form) : 2000;
}

/* The word is set back after withdrawing, and must stay so until it is published again; with mutants of direct_do that
 * judge before they are announced, or of the owner that does not wait, it does not. */
static void race(bool withdraws_key)
{
    struct stage *stage;
    struct published_key key = key_of(memory);
    volatile uint64_t *word = (uint64_t *)(void *)memory;
    pid_t writer = start_writer(&stage);
    for (unsigned i = 0; i < rounds(); i++) {
        wait_for_more(&stage->done);
        withdraws_key ? published_withdraw_key(&own, KEY) : published_withdraw_queue_pair(&own, NUMBER);
        quiesce(stage);
        *word = 0;
        for (int look = 0; look < 300; look++)
            assert_int_equal(*word, 0);
        if (i % 16 == 0)
            wait_for_more(&stage->declined);
        assert_int_equal(*word, 0);
        assert_true(withdraws_key ? published_key(&own, KEY, &key) : published_queue_pair(&own, NUMBER, &queue_pair));
    }
    end_writer(stage, writer);
}

static void nothing_is_written_after_a_key_was_withdrawn(void **state)
{
    need_process_vm();
    race(true);
}

static void nothing_is_written_after_a_queue_pair_was_withdrawn(void **state)
{
    need_process_vm();
    race(false);
}

/* A writer dies at any instruction; its announcement stays, and the owner learns of the death by other means. */
static void a_killed_writer_leaves_whole_words(void **state)
{
    need_process_vm();
    uint64_t *word = (uint64_t *)(void *)memory;
    for (int i = 0; i < 30; i++) {
        struct stage *stage;
        *word = 0;
        pid_t writer = start_writer(&stage);
        wait_for_more(&stage->done);
        nanosleep(&(struct timespec){.tv_nsec = i * 7000}, NULL);
        kill(writer, SIGKILL);
        assert_int_equal(waitpid(writer, NULL, 0), writer);
        assert_true(*word == ~0ull);
        munmap(stage, sizeof *stage);
    }
}

static void stop_here(void)
{
    raise(SIGSTOP);
}

/* A requester that is stopped between judging and its call writes nothing when it continues, although the owner did
 * not wait. Its later accesses are not affected. */
static void a_stopped_writer_is_forbidden(void **state)
{
    need_process_vm();
    struct stage *stage;
    volatile uint64_t *word = (uint64_t *)(void *)memory;
    struct published_key key = key_of(memory);
    uint32_t seen[DIRECT_SEATS];
    int status;
    *word = 0;
    meanwhile_at = 2; /* it looks once before it is announced */
    meanwhile = stop_here;
    pid_t writer = start_writer(&stage);
    meanwhile = NULL;
    assert_int_equal(waitpid(writer, &status, WUNTRACED), writer);
    assert_true(WIFSTOPPED(status));
    published_withdraw_key(&own, KEY);
    direct_look(&stage->seats, seen);
    assert_int_equal(seen[0] % 2, 1);
    direct_forbid(&stage->seats, seen);
    kill(writer, SIGCONT);
    wait_for_more(&stage->declined);
    assert_int_equal(*word, 0);
    assert_int_equal(atomic_load(&stage->done), 0);
    assert_true(published_key(&own, KEY, &key));
    wait_for_more(&stage->done);
    assert_true(*word == ~0ull);
    end_writer(stage, writer);
}

static void withdraw_all(void)
{
    published_withdraw_key(&own, KEY);
}

/* Cuts `length` consecutive bytes into pieces, some of them empty, the last not; returns how many. */
static unsigned cut_anyhow(uint8_t *bytes, uint32_t length, struct iovec *pieces)
{
    unsigned count = 0, most = 1 + (unsigned)rand() % 4;
    while (count + 1 < most && length > 1) {
        uint32_t part = (uint32_t)rand() % length;
        pieces[count++] = (struct iovec){bytes, part};
        bytes += part;
        length -= part;
    }
    pieces[count] = (struct iovec){bytes, length};
    return count + 1;
}

/* A WRITE, or several in one call, whose memory is in pieces that end anywhere, even within the last word. */
static void pieces_arrive_where_they_belong(void **state)
{
    need_process_vm();
    static uint8_t source[LENGTH], expected[LENGTH];
    static struct direct_desk desk;
    static struct direct_seats seats;
    srand(1);
    memcpy(expected, memory, LENGTH);
    for (int round = 0; round < 2000; round++) {
        struct published_question questions[1 + 7];
        struct iovec pieces[4 * 8];
        unsigned works = 1 + (unsigned)rand() % 8;
        struct direct_access access = {.pieces = pieces, .more = questions + 1, .more_count = works - 1};
        for (unsigned i = 0; i < LENGTH; i++)
            source[i] = (uint8_t)rand();
        for (unsigned i = 0; i < works; i++) {
            uint32_t at = i * 512 + (uint32_t)rand() % 64, length = 1 + (uint32_t)rand() % (rand() % 2 ? 16 : 440);
            questions[i] = question_of(true);
            questions[i].address += at;
            questions[i].length = length;
            access.count += cut_anyhow(source + at, length, pieces + access.count);
            memcpy(expected + at, source + at, length);
        }
        access.question = questions[0];
        assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DONE);
        assert_memory_equal(memory, expected, LENGTH);
    }
}

/* The owner does not wait for it, so it may have read newer content: it does not count. */
static void a_READ_whose_key_is_withdrawn_meanwhile_is_declined(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    uint64_t value = 1;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(false), &piece, 1};
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DONE);
    meanwhile_at = 1;
    meanwhile = withdraw_all;
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DECLINED);
    assert_int_equal(seats.at[0].reads, 1);
    assert_int_equal(seats.at[0].taken, 0);
}

static char others_memory[LENGTH];

static void publish_another(void)
{
    struct published_key key = key_of(others_memory);
    published_withdraw_key(&own, KEY);
    assert_true(published_key(&own, KEY, &key));
}

/* ibv_rereg_mr: the key is as it was, and speaks of other memory. Nothing is written to either. */
static void a_WRITE_whose_key_comes_to_speak_of_other_memory_is_declined(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    uint64_t value = ~0ull;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1};
    memset(memory, 0, sizeof memory);
    meanwhile_at = 1;
    meanwhile = publish_another;
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DECLINED);
    assert_int_equal(*(uint64_t *)(void *)memory, 0);
    assert_int_equal(*(uint64_t *)(void *)others_memory, 0);
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DONE);
    assert_true(*(uint64_t *)(void *)others_memory == ~0ull);
}

static struct direct_seats shut_seats;

static void shut_them(void)
{
    direct_shut(&shut_seats);
}

/* Shut before it is announced, after it, and from then on. */
static void no_WRITE_is_done_from_a_seat_that_is_shut(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    uint64_t value = 1;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1};
    memset(memory, 0, sizeof memory);
    for (unsigned i = 1; i <= 2; i++) {
        memset(&shut_seats, 0, sizeof shut_seats);
        meanwhile_at = i;
        meanwhile = shut_them;
        assert_int_equal(direct_do(&desk, &shut_seats, &own, getpid(), &access), DIRECT_DECLINED);
        assert_int_equal(direct_do(&desk, &shut_seats, &own, getpid(), &access), DIRECT_DECLINED);
        assert_int_equal(*(uint64_t *)(void *)memory, 0);
    }
    memset(&shut_seats, 0, sizeof shut_seats);
    assert_int_equal(direct_do(&desk, &shut_seats, &own, getpid(), &access), DIRECT_DONE);
}

static void *vouch_and_end(void *argument)
{
    published_vouch(argument);
    return NULL;
}

static void nobody_vouches_for_the_dead(void **state)
{
    pthread_t thread;
    struct published_question question = question_of(true);
    published_retract(&own);
    pthread_create(&thread, NULL, vouch_and_end, &own);
    pthread_join(thread, NULL);
    assert_false(permits(&question));
}

static void nobody_vouches_after_exec(void **state)
{
    struct published other;
    uint64_t at;
    struct published_question question = question_of(true);
    struct published_key key = key_of(memory);
    int gate[2];
    assert_int_equal(published_create(&other), 0);
    assert_int_equal(pipe(gate), 0);
    pid_t child = fork();
    if (!child) {
        published_open(&other, true);
        published_vouch(&other);
        published_key(&other, KEY, &key);
        published_queue_pair(&other, NUMBER, &queue_pair);
        dup2(gate[0], 0);
        close(gate[1]);
        execl("/bin/cat", "cat", NULL);
        _exit(1);
    }
    for (int i = 0; i < 5000 && !published_permits(&other, &question, &at); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    for (int i = 0; i < 5000 && published_permits(&other, &question, &at); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* it lives, as another program */
    assert_false(published_permits(&other, &question, &at));
    close(gate[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(gate[0]);
    published_close(&other);
}

static void what_was_closed_begins_nothing(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    uint64_t value = 1;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1};
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DONE);
    assert_int_equal(seats.at[0].writes, 1);
    assert_int_equal(seats.at[0].bytes, 8);
    direct_close(&desk);
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DECLINED);
}

static void the_last_word_is_a_piece_of_its_own_and_all_arrive(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    char from[100], back[100] = {0};
    for (int i = 0; i < 100; i++)
        from[i] = (char)(i + 1);
    for (uint32_t length = 1; length <= 100; length++) {
        struct iovec pieces[2] = {{from, length / 2}, {from + length / 2, length - length / 2}};
        struct iovec into[2] = {{back, length / 3}, {back + length / 3, length - length / 3}};
        struct direct_access write = {question_of(true), pieces, 2}, read = {question_of(false), into, 2};
        write.question.length = read.question.length = length;
        write.question.address = read.question.address = 0x10000 + length % 9;
        memset(memory, 0, sizeof memory);
        memset(back, 0, sizeof back);
        assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &write), DIRECT_DONE);
        assert_memory_equal(memory + length % 9, from, length);
        assert_int_equal(memory[length % 9 + length], 0);
        assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &read), DIRECT_DONE);
        assert_memory_equal(back, from, length);
    }
}

static void several_WRITEs_are_all_judged_before_one_is_done(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    struct published_question more[DIRECT_MORE];
    uint64_t value[1 + DIRECT_MORE];
    struct iovec piece = {value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1, more, DIRECT_MORE};
    access.question.length = 8;
    for (unsigned i = 0; i <= DIRECT_MORE; i++)
        value[i] = i + 1;
    for (unsigned i = 0; i < DIRECT_MORE; i++) {
        more[i] = access.question;
        more[i].address += 16 * (i + 1);
    }
    memset(memory, 0, sizeof memory);
    more[DIRECT_MORE - 1].key ^= 0x100;
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DECLINED);
    assert_int_equal(*(uint64_t *)memory, 0);
    more[DIRECT_MORE - 1].key = access.question.key;
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DONE);
    for (unsigned i = 0; i <= DIRECT_MORE; i++)
        assert_int_equal(*(uint64_t *)(memory + access.question.address - 0x10000 + (size_t)16 * i), i + 1);
    assert_int_equal(seats.at[0].writes, 1 + DIRECT_MORE);
    assert_int_equal(seats.at[0].bytes, sizeof value);
}

static struct direct_seats forbidden_seats;

static void forbid_what_is_seen(void)
{
    uint32_t seen[DIRECT_SEATS];
    direct_look(&forbidden_seats, seen);
    assert_int_equal(seen[0] % 2, 1);
    direct_forbid(&forbidden_seats, seen);
}

static void none_of_several_WRITEs_is_done_when_they_are_forbidden(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    struct published_question questions[1 + DIRECT_MORE];
    uint64_t value[1 + DIRECT_MORE], *words = (uint64_t *)(void *)memory;
    struct iovec piece = {value, sizeof value};
    for (unsigned i = 0; i <= DIRECT_MORE; i++) {
        questions[i] = question_of(true);
        questions[i].address += 8 * i;
        value[i] = i + 1;
    }
    struct direct_access access = {questions[0], &piece, 1, questions + 1, DIRECT_MORE};
    memset(memory, 0, sizeof memory);
    meanwhile_at = 1 + DIRECT_MORE + 1; /* announced by then */
    meanwhile = forbid_what_is_seen;
    assert_int_equal(direct_do(&desk, &forbidden_seats, &own, getpid(), &access), DIRECT_DECLINED);
    for (unsigned i = 0; i <= DIRECT_MORE; i++)
        assert_int_equal(words[i], 0);
    assert_int_equal(direct_do(&desk, &forbidden_seats, &own, getpid(), &access), DIRECT_DONE);
    for (unsigned i = 0; i <= DIRECT_MORE; i++)
        assert_int_equal(words[i], i + 1);
}

static void memory_that_is_gone_is_declined(void **state)
{
    need_process_vm();
    static struct direct_desk desk;
    static struct direct_seats seats;
    uint64_t value = 1;
    struct iovec piece = {&value, sizeof value};
    struct direct_access access = {question_of(true), &piece, 1};
    char *gone = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct published_key key = key_of(gone);
    munmap(gone, LENGTH);
    published_withdraw_key(&own, KEY);
    published_key(&own, KEY, &key);
    assert_int_equal(direct_do(&desk, &seats, &own, getpid(), &access), DIRECT_DECLINED);
    assert_int_equal(seats.at[0].writes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, publish_all, close_all)

int main(void)
{
    enum { SKIPPED = 77 };
    if (!has_robust_lists())
        return SKIPPED;
    const struct CMUnitTest tests[] = {
        TEST(what_is_published_is_permitted),
        TEST(nothing_else_is_permitted),
        TEST(access_is_what_key_and_queue_pair_allow),
        TEST(another_domain_is_not_permitted),
        TEST(what_is_withdrawn_or_closed_is_not_permitted),
        TEST(a_place_that_is_taken_is_left_alone),
        TEST(sixty_thousand_regions_and_queue_pairs_have_places),
        TEST(no_other_file_is_mapped),
        TEST(nothing_is_written_after_a_key_was_withdrawn),
        TEST(nothing_is_written_after_a_queue_pair_was_withdrawn),
        TEST(a_killed_writer_leaves_whole_words),
        TEST(a_stopped_writer_is_forbidden),
        TEST(pieces_arrive_where_they_belong),
        TEST(a_READ_whose_key_is_withdrawn_meanwhile_is_declined),
        TEST(a_WRITE_whose_key_comes_to_speak_of_other_memory_is_declined),
        TEST(no_WRITE_is_done_from_a_seat_that_is_shut),
        TEST(several_WRITEs_are_all_judged_before_one_is_done),
        TEST(nobody_vouches_for_the_dead),
        TEST(nobody_vouches_after_exec),
        TEST(what_was_closed_begins_nothing),
        TEST(the_last_word_is_a_piece_of_its_own_and_all_arrive),
        TEST(none_of_several_WRITEs_is_done_when_they_are_forbidden),
        TEST(memory_that_is_gone_is_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
