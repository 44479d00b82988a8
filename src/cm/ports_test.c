/* Port numbers: the rules of the kernel's rdma_cm, case by case. */
#include "cm/ports.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"

enum { REUSE = 1, ONLY = 2, SIX = 4 };

/* An address by its last byte, 0 the wildcard. */
static struct port_claim claim(uint8_t last, unsigned flags)
{
    struct port_claim claim = {.reuse = flags & REUSE, .only_family = flags & ONLY};
    claim.source = cm_any(flags & SIX ? AF_INET6 : AF_INET);
    claim.source.gid[15] = last;
    if (last && !(flags & SIX))
        claim.source.gid[12] = 10;
    return claim;
}

static const struct {
    uint8_t other, wanted;
    unsigned other_flags, wanted_flags;
    int error, error_without_reuse;
} cases[] = {
    {1, 1, 0, 0, EADDRINUSE, EADDRINUSE},
    {1, 2, 0, 0, 0, 0},
    {1, 0, 0, 0, EADDRNOTAVAIL, EADDRNOTAVAIL},
    {0, 1, 0, 0, EADDRNOTAVAIL, EADDRNOTAVAIL},
    {0, 0, 0, 0, EADDRNOTAVAIL, EADDRNOTAVAIL},
    {1, 1, REUSE, REUSE, 0, EADDRINUSE},
    {1, 1, REUSE, 0, EADDRINUSE, EADDRINUSE},
    {1, 1, 0, REUSE, EADDRINUSE, EADDRINUSE},
    {0, 1, REUSE, REUSE, 0, EADDRNOTAVAIL},
    {0, 0, ONLY, ONLY | SIX, 0, 0},
    {0, 0, ONLY, SIX, EADDRNOTAVAIL, EADDRNOTAVAIL},
    {0, 0, ONLY, ONLY, EADDRNOTAVAIL, EADDRNOTAVAIL},
    {1, 1, 0, SIX, 0, 0},
};

static void conflicts(void **state)
{
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct port_claim other = claim(cases[i].other, cases[i].other_flags);
        struct port_claim wanted = claim(cases[i].wanted, cases[i].wanted_flags);
        const struct port_claim *others[] = {&other};
        if (ports_conflict(others, 1, &wanted, true) != cases[i].error ||
            ports_conflict(others, 1, &wanted, false) != cases[i].error_without_reuse)
            fail_msg("case %u", i);
    }
}

static void one_conflict_among_many_is_one(void **state)
{
    struct port_claim a = claim(1, 0), b = claim(2, 0), c = claim(3, 0), wanted = claim(3, 0);
    const struct port_claim *others[] = {&a, &b, &c};
    assert_int_equal(ports_conflict(others, 2, &wanted, true), 0);
    assert_int_equal(ports_conflict(others, 3, &wanted, true), EADDRINUSE);
    assert_int_equal(ports_conflict(others, 0, &wanted, true), 0);
    others[0] = &c; /* whatever follows it */
    others[2] = &a;
    assert_int_equal(ports_conflict(others, 3, &wanted, true), EADDRINUSE);
}

static void a_port_is_shared_where_no_peer_is_the_same(void **state)
{
    struct port_claim other = claim(1, 0), wanted = claim(1, 0);
    const struct port_claim *others[] = {&other};
    other.destination = claim(5, 0).source;
    wanted.destination = claim(6, 0).source;
    assert_true(ports_are_distinct(others, 1, &wanted));
    wanted.destination = other.destination;
    assert_false(ports_are_distinct(others, 1, &wanted));
    wanted.destination.port = 9;
    assert_true(ports_are_distinct(others, 1, &wanted));
    wanted.destination = claim(0, 0).source;
    assert_false(ports_are_distinct(others, 1, &wanted));
    wanted.source = claim(2, 0).source;
    assert_true(ports_are_distinct(others, 1, &wanted));
}

static void every_port_of_the_range_is_a_candidate_once(void **state)
{
    struct ports_range range = {65500, 65535};
    bool seen[36] = {false};
    for (uint32_t attempt = 0; attempt < 36; attempt++) {
        uint16_t port = ports_candidate(&range, UINT64_MAX - 3, attempt);
        assert_true(port >= 65500 && !seen[port - 65500]);
        seen[port - 65500] = true;
    }
}

TESTS(conflicts,
      one_conflict_among_many_is_one,
      a_port_is_shared_where_no_peer_is_the_same,
      every_port_of_the_range_is_a_candidate_once)
