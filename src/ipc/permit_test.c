/* Other processes of the user may read this one's memory (Yama's PR_SET_PTRACER) while it has peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/testing/group.h"
#include "base/testing/patience.h"
#include "ipc/testing/node_rig.h"

static unsigned calls;
static unsigned long last;

int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

/* The value that the library asks for, as this kernel may lack Yama. */
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    if (option != PR_SET_PTRACER)
        return __real_prctl(option, a, b, c, d);
    calls++;
    last = a;
    return 0;
}

static unsigned long has_more_rights;

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);

/* AT_SECURE: the kernel's mark of a set-uid program. */
unsigned long __wrap_getauxval(unsigned long type)
{
    return type == AT_SECURE ? has_more_rights : __real_getauxval(type);
}

struct crowd {
    _Atomic uint32_t numbers[2];
    atomic_bool over;
};

static void take_nothing(void *context, struct peer *peer, const struct frame *frame)
{
}

static int listen_to_us(const char *directory, void *context)
{
    struct crowd *crowd = context;
    struct node *node = rig_open(directory);
    uint32_t number;
    calls = 0;
    if (node_claim_numbers(node, NODE_NUMBERS, &number))
        return 1;
    atomic_store(&crowd->numbers[atomic_load(&crowd->numbers[0]) != 0], number);
    PATIENTLY_WHILE (!atomic_load(&crowd->over))
        rig_sleep_and_turn(node, take_nothing, NULL, 10);
    return (int)calls; /* a process that only receives permits nothing */
}

static uint32_t await(const _Atomic uint32_t *number)
{
    PATIENTLY_WHILE (!atomic_load(number))
        usleep(100);
    return atomic_load(number);
}

static void nobody_may_before_there_is_a_peer(void **state)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    uint32_t number;
    calls = 0;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    assert_int_equal(node_claim_numbers(node, NODE_NUMBERS, &number), 0);
    rig_close(node);
    assert_int_equal(calls, 0);
    rig_remove(directory);
}

/* A frame with no kind that anybody takes: the ring is handed over for it, and nothing else happens. */
static void attach_to(struct node *node, uint32_t number)
{
    static const uint8_t headers[12];
    struct peer *peer = node_find(node, number);
    struct frame frame = {.kind = FRAME_ROCE, .headers_length = sizeof headers, .headers = headers};
    peer->link->operations->begin(peer->link);
    peer->link->operations->send(peer->link, &frame);
    peer->link->operations->end(peer->link);
    node_put(node, peer);
}

/* How often it was asked for while there were two peers, and in all. */
static void meet_two(unsigned *while_open, unsigned *in_all)
{
    char directory[NODE_DIRECTORY_MAX + 1];
    struct crowd *crowd = rig_share(sizeof *crowd);
    pid_t peers[2];
    calls = 0;
    rig_directory(directory);
    struct node *node = rig_open(directory);
    for (int i = 0; i < 2; i++) {
        peers[i] = rig_start(listen_to_us, directory, crowd);
        attach_to(node, await(&crowd->numbers[i]));
        rig_turn(node, take_nothing, NULL);
    }
    *while_open = calls;
    rig_close(node);
    *in_all = calls;
    atomic_store(&crowd->over, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig_wait(peers[i], 10), 0);
    rig_unshare(crowd, sizeof *crowd);
    rig_remove(directory);
}

static void peers_may_until_the_last_device_closes(void **state)
{
    unsigned while_open, in_all;
    meet_two(&while_open, &in_all);
    assert_int_equal(while_open, 1);
    assert_int_equal(in_all, 2);
    assert_int_equal(last, 0);
}

static void nobody_may_where_the_user_forbids_it(void **state)
{
    unsigned while_open, in_all;
    setenv("SOFTVERBS_NO_PULL", "1", 1);
    meet_two(&while_open, &in_all);
    unsetenv("SOFTVERBS_NO_PULL");
    assert_int_equal(in_all, 0);
}

static void nobody_may_where_the_program_has_more_rights_than_its_user(void **state)
{
    unsigned while_open, in_all;
    has_more_rights = 1;
    meet_two(&while_open, &in_all);
    has_more_rights = 0;
    assert_int_equal(in_all, 0);
}

TESTS(nobody_may_before_there_is_a_peer,
      peers_may_until_the_last_device_closes,
      nobody_may_where_the_user_forbids_it,
      nobody_may_where_the_program_has_more_rights_than_its_user)
