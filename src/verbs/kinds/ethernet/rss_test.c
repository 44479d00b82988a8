#include "verbs/kinds/ethernet/rss.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "wire/testing/ether_frames.h"

enum { TCP = 6, UDP = 17, ESP = 50 };

/* Microsoft's "Verifying the RSS Hash Calculation": key, addresses, ports, and the hashes of them. */
static uint8_t key[RSS_KEY] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                               0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                               0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

static const struct vector {
    const char *destination;
    uint16_t destination_port;
    const char *source;
    uint16_t source_port;
    uint32_t addresses, all;
} vectors[] = {
    {"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    {"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    {"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    {"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    {"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
    {"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    {"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    {"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985, 0x02d1feef},
};

static struct rss_hash configured(uint64_t fields)
{
    struct rss_hash hash;
    struct ibv_rx_hash_conf configuration = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                                             .rx_hash_key_len = RSS_KEY,
                                             .rx_hash_key = key,
                                             .rx_hash_fields_mask = fields};
    assert_int_equal(rss_configure(&hash, &configuration), REASON_NONE);
    return hash;
}

static void add_packet(struct frame_maker *maker, const struct vector *vector, uint8_t protocol)
{
    uint8_t source[16], destination[16];
    bool six = inet_pton(AF_INET6, vector->source, source) == 1;
    inet_pton(six ? AF_INET6 : AF_INET, vector->destination, destination);
    if (!six)
        inet_pton(AF_INET, vector->source, source);
    frame_ethernet(maker, 1, 2, six ? ETHER_TYPE_IPV6 : ETHER_TYPE_IPV4);
    if (six)
        frame_ipv6(maker, protocol, source, destination);
    else
        frame_ipv4(maker, protocol, bytes_get32(source), bytes_get32(destination));
    if (protocol == TCP)
        frame_tcp(maker, vector->source_port, vector->destination_port);
    else
        frame_udp(maker, vector->source_port, vector->destination_port);
}

static const uint64_t addresses_of[] = {IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
                                        IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6};
static const uint64_t ports_tcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
static const uint64_t ports_udp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

static void frames_hash_to_the_published_values(void **state)
{
    for (unsigned i = 0; i < sizeof vectors / sizeof *vectors; i++)
        for (int tcp = 0; tcp < 2; tcp++) {
            struct frame_maker maker = {0};
            add_packet(&maker, &vectors[i], tcp ? TCP : UDP);
            struct ether ether = frame_finish(&maker);
            uint64_t addresses = addresses_of[i >= 5];
            struct rss_hash less = configured(addresses), all = configured(addresses | (tcp ? ports_tcp : ports_udp));
            assert_int_equal(rss_of(&less, &ether), vectors[i].addresses);
            assert_int_equal(rss_of(&all, &ether), vectors[i].all);
        }
}

static void fields_that_a_frame_lacks_are_left_out(void **state)
{
    struct frame_maker maker = {0};
    add_packet(&maker, &vectors[0], UDP);
    struct ether ether = frame_finish(&maker);
    struct rss_hash tcp = configured(addresses_of[0] | ports_tcp), six = configured(addresses_of[1]);
    assert_int_equal(rss_of(&tcp, &ether), vectors[0].addresses);
    assert_int_equal(rss_of(&six, &ether), 0);
}

static void inner_fields_are_those_of_the_tunnel(void **state)
{
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, UDP, 1, 2);
    frame_udp(&maker, 5, 4789);
    frame_word(&maker, 0x08000000);
    frame_word(&maker, 7 << 8);
    add_packet(&maker, &vectors[1], TCP);
    struct ether ether = frame_finish(&maker);
    struct rss_hash inner = configured(addresses_of[0] | ports_tcp | IBV_RX_HASH_INNER);
    assert_int_equal(rss_of(&inner, &ether), vectors[1].all);
}

static void one_security_parameter_index_is_one_hash(void **state)
{
    uint8_t spi[4] = {1, 2, 3, 4};
    struct frame_maker maker = {0};
    frame_ethernet(&maker, 1, 2, ETHER_TYPE_IPV4);
    frame_ipv4(&maker, ESP, 1, 2);
    frame_word(&maker, 0x01020304);
    frame_word(&maker, 9);
    struct ether ether = frame_finish(&maker);
    struct rss_hash hash = configured(IBV_RX_HASH_IPSEC_SPI);
    assert_int_equal(rss_of(&hash, &ether), rss_toeplitz(key, spi, 4));
}

static void what_cannot_be_hashed_is_refused(void **state)
{
    static const struct ibv_rx_hash_conf bad[] = {
        {0, RSS_KEY, key, 0},
        {2, RSS_KEY, key, 0},
        {IBV_RX_HASH_FUNC_TOEPLITZ, RSS_KEY - 1, key, 0},
        {IBV_RX_HASH_FUNC_TOEPLITZ, RSS_KEY, NULL, 0},
        {IBV_RX_HASH_FUNC_TOEPLITZ, RSS_KEY, key, 1 << 9},
        {IBV_RX_HASH_FUNC_TOEPLITZ, RSS_KEY, key, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV6},
        {IBV_RX_HASH_FUNC_TOEPLITZ, RSS_KEY, key, IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP},
    };
    struct rss_hash hash;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(rss_configure(&hash, &bad[i]), REASON_RSS_HASH);
}

TESTS(frames_hash_to_the_published_values,
      fields_that_a_frame_lacks_are_left_out,
      inner_fields_are_those_of_the_tunnel,
      one_security_parameter_index_is_one_hash,
      what_cannot_be_hashed_is_refused)
