/* Messages of the kernel about interfaces, whole and damaged. */
#include "config/interface_news.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/group.h"

/* A message about a link, with its name, or about an address. */
static size_t put_link(uint8_t *to, uint16_t type, int index, const char *name)
{
    struct rtattr other = {.rta_len = sizeof other + 3, .rta_type = IFLA_MTU},
                  attribute = {.rta_len = (unsigned short)(sizeof attribute + strlen(name) + 1),
                               .rta_type = IFLA_IFNAME};
    struct ifinfomsg link = {.ifi_index = index};
    size_t length = NLMSG_HDRLEN + sizeof link;
    memcpy(to + NLMSG_HDRLEN, &link, sizeof link);
    memset(to + length, 0, 8);
    memcpy(to + length, &other, sizeof other);
    length += 8;
    memcpy(to + length, &attribute, sizeof attribute);
    memcpy(to + length + sizeof attribute, name, strlen(name) + 1);
    length += attribute.rta_len;
    struct nlmsghdr header = {.nlmsg_len = (uint32_t)length, .nlmsg_type = type};
    memcpy(to, &header, sizeof header);
    return length;
}

static size_t put_address(uint8_t *to, uint16_t type, unsigned index)
{
    struct ifaddrmsg address = {.ifa_family = 2, .ifa_index = index};
    struct nlmsghdr header = {.nlmsg_len = NLMSG_HDRLEN + sizeof address, .nlmsg_type = type};
    memcpy(to, &header, sizeof header);
    memcpy(to + NLMSG_HDRLEN, &address, sizeof address);
    return header.nlmsg_len;
}

/* Copies the messages to memory of exactly this length, so that sanitizers see a read past it. */
static bool concern(const uint8_t *messages, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, messages, length);
    bool answer = interface_news_concern(copy, length, "eth0", 7);
    free(copy);
    return answer;
}

static void a_link_is_known_by_its_index_or_its_name(void **unused)
{
    uint8_t bytes[256];
    assert_true(concern(bytes, put_link(bytes, RTM_NEWLINK, 7, "eth0")));
    assert_true(concern(bytes, put_link(bytes, RTM_NEWLINK, 7, "renamed")));
    assert_true(concern(bytes, put_link(bytes, RTM_NEWLINK, 8, "eth0"))); /* deleted and made anew */
    assert_true(concern(bytes, put_link(bytes, RTM_DELLINK, 7, "eth0")));
    assert_false(concern(bytes, put_link(bytes, RTM_NEWLINK, 8, "eth01")));
    assert_false(concern(bytes, put_link(bytes, RTM_NEWLINK, 8, "eth")));
    assert_false(concern(bytes, put_link(bytes, RTM_NEWROUTE, 7, "eth0")));
}

static void an_address_is_known_by_its_interface(void **unused)
{
    uint8_t bytes[256];
    assert_true(concern(bytes, put_address(bytes, RTM_NEWADDR, 7)));
    assert_true(concern(bytes, put_address(bytes, RTM_DELADDR, 7)));
    assert_false(concern(bytes, put_address(bytes, RTM_NEWADDR, 8)));
    assert_false(interface_news_concern(bytes, put_address(bytes, RTM_NEWADDR, 0), "eth0", 0)); /* it is not there */
}

static void each_message_of_a_datagram_counts(void **unused)
{
    uint8_t bytes[512];
    size_t length = (put_link(bytes, RTM_NEWLINK, 8, "other") + 3) & ~(size_t)3;
    assert_true(concern(bytes, length + put_address(bytes + length, RTM_NEWADDR, 7)));
}

static void what_is_cut_off_is_about_nothing(void **unused)
{
    uint8_t bytes[256];
    size_t length = put_link(bytes, RTM_NEWLINK, 8, "eth0");
    for (size_t i = 0; i < length; i++)
        assert_false(concern(bytes, i));
    length = put_address(bytes, RTM_NEWADDR, 7);
    for (size_t i = 0; i < length; i++)
        assert_false(concern(bytes, i));
}

static void put_length(uint8_t *message, uint32_t length)
{
    memcpy(message, &length, sizeof length);
}

static void a_length_that_is_no_length_ends_the_search(void **unused)
{
    static const uint32_t lengths[] = {0, 1, 15, 16, 17, 31, 32, 1 << 16, INT32_MAX, UINT32_MAX - 3, UINT32_MAX};
    uint8_t bytes[512];
    size_t length = put_link(bytes, RTM_NEWLINK, 8, "eth0");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put_length(bytes, lengths[i]);
        assert_false(concern(bytes, length));
    }
}

static void an_attribute_of_a_hostile_length_names_nothing(void **unused)
{
    uint8_t bytes[512];
    size_t length = put_link(bytes, RTM_NEWLINK, 8, "eth0"), at = NLMSG_HDRLEN + sizeof(struct ifinfomsg);
    for (unsigned size = 0; size <= UINT16_MAX; size++) {
        uint16_t hostile = (uint16_t)size;
        memcpy(bytes + at, &hostile, sizeof hostile);
        bool right = size > 4 && size <= 8; /* of the attribute before the name, with its pad or without */
        assert_int_equal(concern(bytes, length), right);
    }
}

static void nothing_that_changes_by_chance_is_read_beyond_its_end(void **unused)
{
    uint8_t bytes[512];
    uint64_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        size_t length = put_link(bytes, RTM_NEWLINK, 8, "eth0");
        for (unsigned i = 0; i < 3; i++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            bytes[(random >> 33) % length] = (uint8_t)(random >> 56);
        }
        concern(bytes, (random >> 40) % (length + 1));
    }
}

TESTS(a_link_is_known_by_its_index_or_its_name,
      an_address_is_known_by_its_interface,
      each_message_of_a_datagram_counts,
      what_is_cut_off_is_about_nothing,
      a_length_that_is_no_length_ends_the_search,
      an_attribute_of_a_hostile_length_names_nothing,
      nothing_that_changes_by_chance_is_read_beyond_its_end)
