/* Every packet of recorded sessions decodes, has the ICRC that its sender computed, and encodes to the same bytes; so
 * do the connection manager's messages in them. The argument is the directory of the recordings. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dissect.h"
#include "wire/cm/cm.h"
#include "wire/cm/cm_ip.h"
#include "wire/op.h"

static const char *directory;

static void each_packet(void (*check)(struct dissection *, const char *name))
{
    DIR *listing = opendir(directory);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));) {
        char path[1024];
        if (!strstr(entry->d_name, ".pcap"))
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        struct pcap pcap;
        struct pcap_record record;
        assert_int_equal(pcap_open(&pcap, path), 0);
        while (pcap_next(&pcap, &record)) {
            struct dissection datagram;
            assert_int_equal(dissect(&record, &datagram), DISSECTED_ROCE);
            check(&datagram, entry->d_name);
        }
        assert_false(pcap.broken);
        pcap_close(&pcap);
    }
    closedir(listing);
}

static unsigned packets, of_ipv6, of_opcode[256];

static void check_bytes(struct dissection *datagram, const char *name)
{
    uint8_t again[8192];
    struct packet packet;
    struct iovec piece;
    enum wire_fault fault = datagram_decode(&datagram->route, datagram->bytes, datagram->length, &packet, &piece);
    if (fault != WIRE_FINE)
        fail_msg("%s: %s", name, wire_fault_text(fault));
    assert_int_equal(datagram_encode(&datagram->route, &packet, again, sizeof(again)), datagram->length);
    assert_memory_equal(again, datagram->bytes, datagram->length);
    packets++;
    of_opcode[packet.opcode]++;
    of_ipv6 += datagram->route.destination[10] != 0xff;
}

static void every_packet_encodes_to_the_same_bytes(void **state)
{
    each_packet(check_bytes);
    assert_int_equal(packets, 663);
    assert_int_equal(of_ipv6, 12);
}

/* All that RC has but SEND_LAST_INVALIDATE (and ATOMIC_WRITE, which this peer lacks), most of UC, all of UD. */
static void the_recordings_cover_the_operations(void **state)
{
    unsigned distinct[8] = {0};
    for (unsigned opcode = 0; opcode < 256; opcode++)
        distinct[op_service((uint8_t)opcode)] += of_opcode[opcode] > 0;
    assert_int_equal(distinct[SERVICE_RC], 22);
    assert_int_equal(distinct[SERVICE_UC], 9);
    assert_int_equal(distinct[SERVICE_UD], 2);
}

static void check_identification(struct dissection *datagram, const char *name)
{
    struct datagram_route route = datagram->route;
    struct packet packet;
    struct iovec piece;
    route.identification_unknown = true;
    route.identification ^= 0x5555;
    assert_int_equal(datagram_decode(&route, datagram->bytes, datagram->length, &packet, &piece), WIRE_FINE);
    if (route.destination[10] == 0xff)
        assert_int_equal(route.identification, datagram->route.identification);
}

static void every_identification_follows_from_the_icrc(void **state)
{
    each_packet(check_identification);
}

static unsigned of_attribute[CM_APR + 1], with_ip;

static void check_ip(const struct cm_message *message)
{
    struct cm_ip ip;
    uint8_t again[CM_IP_BYTES];
    if (cm_ip_decode(message->private_data, &ip) != CM_IP_FINE)
        return;
    cm_ip_encode(&ip, again);
    assert_memory_equal(again, message->private_data, sizeof again);
    with_ip++;
}

static void check_message(struct dissection *datagram, const char *name)
{
    uint8_t bytes[MAD_BYTES], again[MAD_BYTES];
    struct packet packet;
    struct iovec piece;
    struct cm_message message;
    assert_int_equal(datagram_decode(&datagram->route, datagram->bytes, datagram->length, &packet, &piece), WIRE_FINE);
    if (packet.destination != MAD_QP)
        return;
    assert_int_equal(packet.qkey, MAD_QKEY);
    assert_int_equal(packet.payload.length, MAD_BYTES);
    payload_copy(&packet.payload, 0, &(struct iovec){bytes, sizeof bytes}, 1);
    assert_int_equal(cm_decode(bytes, sizeof bytes, &message), CM_FINE);
    cm_encode(&message, again);
    assert_memory_equal(again, bytes, sizeof bytes);
    of_attribute[message.attribute]++;
    if (!cm_is_reply(message.attribute))
        check_ip(&message);
}

static void every_cm_message_encodes_to_the_same_bytes(void **state)
{
    static const unsigned seen[CM_APR + 1] = {[CM_REQ] = 5,  [CM_REP] = 4, [CM_RTU] = 4,      [CM_DREQ] = 4,
                                              [CM_DREP] = 4, [CM_REJ] = 1, [CM_SIDR_REQ] = 1, [CM_SIDR_REP] = 1};
    each_packet(check_message);
    for (unsigned i = 0; i <= CM_APR; i++)
        assert_int_equal(of_attribute[i], seen[i]);
    assert_int_equal(with_ip, seen[CM_REQ] + seen[CM_SIDR_REQ]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packet_encodes_to_the_same_bytes),
        cmocka_unit_test(the_recordings_cover_the_operations),
        cmocka_unit_test(every_identification_follows_from_the_icrc),
        cmocka_unit_test(every_cm_message_encodes_to_the_same_bytes),
    };
    directory = argc > 1 ? argv[1] : "tests/golden";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
