/* Files of each format, byte order and link type: built here byte by byte, around one known datagram. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "dissect.h"

/* An RC acknowledgement over IPv4; after the UDP header: BTH, AETH, ICRC (not looked at here). */
static const uint8_t ip_packet[] = {0x45, 0, 0, 48, 0x12, 0x34, 0x40, 0,    64, 17, 0, 0, 192, 0, 2, 1,
                                    192,  0, 2, 2,  0xc0, 0,    0x12, 0xb7, 0,  28, 0, 0, 17,  0, 0, 0,
                                    0,    0, 0, 1,  0,    0,    0,    2,    0,  0,  0, 3, 1,   2, 3, 4};

enum { ROOM = 65536 };

struct file {
    uint8_t *bytes;
    size_t length;
    bool swapped;
};

static struct file begin(bool swapped)
{
    return (struct file){calloc(1, ROOM), 0, swapped};
}

static void put(struct file *file, const void *bytes, size_t length)
{
    memcpy(file->bytes + file->length, bytes, length);
    file->length += length;
}

static void put32(struct file *file, uint32_t value)
{
    value = file->swapped ? __builtin_bswap32(value) : value;
    put(file, &value, sizeof value);
}

static void put16(struct file *file, uint16_t value)
{
    value = file->swapped ? __builtin_bswap16(value) : value;
    put(file, &value, sizeof value);
}

static void put_classic(struct file *file, uint32_t magic, uint32_t link, const uint8_t *packet, uint32_t length)
{
    put32(file, magic);
    put16(file, 2);
    put16(file, 4);
    put(file, (uint64_t[]){0}, 8);
    put32(file, 65535);
    put32(file, link);
    for (uint32_t i = 0; i < 2; i++) {
        put32(file, 1000 + i);
        put32(file, 7);
        put32(file, length);
        put32(file, length + 5 * i);
        put(file, packet, length);
    }
}

static void put_block(struct file *file, uint32_t type, const struct file *body)
{
    uint32_t total = (uint32_t)((body->length + 3) & ~(size_t)3) + 12;
    put32(file, type);
    put32(file, total);
    put(file, body->bytes, total - 12);
    put32(file, total);
    free(body->bytes);
}

static void put_section(struct file *file)
{
    struct file body = begin(file->swapped);
    put32(&body, 0x1a2b3c4d);
    put16(&body, 1);
    put16(&body, 0);
    put32(&body, UINT32_MAX);
    put32(&body, UINT32_MAX);
    put_block(file, 0x0a0d0d0a, &body);
}

static void put_interface(struct file *file, uint16_t link, uint8_t resolution)
{
    struct file body = begin(file->swapped);
    put16(&body, link);
    put16(&body, 0);
    put32(&body, 0);
    put16(&body, 2); /* its name, a padded option */
    put16(&body, 1);
    put(&body, "x\0\0\0", 4);
    put16(&body, 9);
    put16(&body, 1);
    put(&body, (uint8_t[4]){resolution}, 4);
    put32(&body, 0);
    put_block(file, 1, &body);
}

static void put_enhanced(struct file *file, uint32_t interface, uint64_t time, const uint8_t *packet, uint32_t length)
{
    struct file body = begin(file->swapped);
    put32(&body, interface);
    put32(&body, (uint32_t)(time >> 32));
    put32(&body, (uint32_t)time);
    put32(&body, length);
    put32(&body, length);
    put(&body, packet, length);
    put_block(file, 6, &body);
}

static void expect_datagram(const struct pcap_record *record)
{
    struct dissection found;
    assert_int_equal(dissect(record, &found), DISSECTED_ROCE);
    assert_int_equal(found.length, 20);
    assert_ptr_equal(found.bytes + 20, record->bytes + record->length);
    assert_int_equal(found.route.identification, 0x1234);
    assert_int_equal(found.route.fragment, 0x4000);
    assert_int_equal(found.route.source_port, 0xc000);
    assert_int_equal(found.route.source[15], 1);
    assert_int_equal(found.route.destination[15], 2);
}

static void classic_files_are_read_in_either_order(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        struct file file = begin(i & 1);
        put_classic(&file, i & 2 ? 0xa1b23c4d : 0xa1b2c3d4, PCAP_RAW, ip_packet, sizeof ip_packet);
        struct pcap pcap;
        struct pcap_record record;
        assert_int_equal(pcap_adopt(&pcap, file.bytes, file.length), 0);
        assert_true(pcap_next(&pcap, &record));
        expect_datagram(&record);
        assert_int_equal(record.nanoseconds, 1000000000000 + (i & 2 ? 7 : 7000));
        assert_true(pcap_next(&pcap, &record));
        assert_int_equal(record.original, sizeof ip_packet + 5);
        assert_false(pcap_next(&pcap, &record));
        assert_false(pcap.broken);
        pcap_close(&pcap);
    }
}

static void next_generation_files_are_read_in_either_order(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        struct file file = begin(i);
        put_section(&file);
        put_interface(&file, 147, 6);
        put_interface(&file, PCAP_RAW, 9);
        put_enhanced(&file, 1, 5000000123, ip_packet, sizeof ip_packet);
        file.swapped = !file.swapped;
        put_section(&file); /* its interfaces count anew */
        put_interface(&file, PCAP_RAW, 0x80 | 1);
        put_enhanced(&file, 0, 3, ip_packet, sizeof ip_packet);
        struct pcap pcap;
        struct pcap_record record;
        assert_int_equal(pcap_adopt(&pcap, file.bytes, file.length), 0);
        assert_true(pcap_next(&pcap, &record));
        expect_datagram(&record);
        assert_int_equal(record.nanoseconds, 5000000123);
        assert_true(pcap_next(&pcap, &record));
        expect_datagram(&record);
        assert_int_equal(record.nanoseconds, 1500000000);
        assert_false(pcap_next(&pcap, &record));
        assert_false(pcap.broken);
        pcap_close(&pcap);
    }
}

static void expect_behind(uint32_t link, const void *header, size_t length, enum dissected expected)
{
    uint8_t bytes[128];
    struct pcap_record record = {.bytes = bytes, .length = length + sizeof ip_packet, .link = link};
    memcpy(bytes, header, length);
    memcpy(bytes + length, ip_packet, sizeof ip_packet);
    struct dissection found;
    if (expected == DISSECTED_ROCE)
        expect_datagram(&record);
    else
        assert_int_equal(dissect(&record, &found), expected);
    while (record.length--)
        assert_int_not_equal(dissect(&record, &found), DISSECTED_ROCE);
}

static void datagrams_are_found_behind_every_link(void **state)
{
    expect_behind(PCAP_RAW, "", 0, DISSECTED_ROCE);
    expect_behind(PCAP_IPV4, "", 0, DISSECTED_ROCE);
    expect_behind(PCAP_NULL, "\2\0\0\0", 4, DISSECTED_ROCE);
    expect_behind(PCAP_ETHERNET, "aaaaaabbbbbb\x08\x00", 14, DISSECTED_ROCE);
    expect_behind(PCAP_ETHERNET, "aaaaaabbbbbb\x08\x06", 14, DISSECTED_OTHER);
    expect_behind(PCAP_ETHERNET, "aaaaaabbbbbb\x81\0\0\7\x08\0", 18, DISSECTED_ROCE);
    expect_behind(PCAP_ETHERNET, "aaaaaabbbbbb\x88\xa8\0\7\x81\0\0\7\x08\0", 22, DISSECTED_ROCE);
    expect_behind(PCAP_LINUX_COOKED, "cccccccccccccc\x08\0", 16, DISSECTED_ROCE);
    expect_behind(PCAP_LINUX_COOKED_2, "\x08\0dddddddddddddddddd", 20, DISSECTED_ROCE);
    expect_behind(147, "", 0, DISSECTED_OTHER);
}

/* Dissects the known packet with a byte changed. */
static enum dissected dissect_changed(size_t at, uint8_t value)
{
    uint8_t bytes[sizeof ip_packet];
    struct pcap_record record = {.bytes = bytes, .length = sizeof bytes, .link = PCAP_RAW};
    struct dissection found;
    memcpy(bytes, ip_packet, sizeof bytes);
    bytes[at] = value;
    return dissect(&record, &found);
}

static void what_is_not_roce_is_left_alone(void **state)
{
    assert_int_equal(dissect_changed(0, 0x46), DISSECTED_OTHER);  /* options */
    assert_int_equal(dissect_changed(6, 0x20), DISSECTED_OTHER);  /* more fragments */
    assert_int_equal(dissect_changed(7, 1), DISSECTED_OTHER);     /* a later fragment */
    assert_int_equal(dissect_changed(9, 6), DISSECTED_OTHER);     /* TCP */
    assert_int_equal(dissect_changed(3, 19), DISSECTED_OTHER);    /* shorter than its header */
    assert_int_equal(dissect_changed(3, 47), DISSECTED_OTHER);    /* shorter than the UDP datagram */
    assert_int_equal(dissect_changed(23, 0xb6), DISSECTED_OTHER); /* another port */
    assert_int_equal(dissect_changed(25, 7), DISSECTED_OTHER);    /* shorter than its header */
    assert_int_equal(dissect_changed(20, 1), DISSECTED_ROCE);
}

static void files_that_end_too_early_are_broken(void **state)
{
    for (unsigned next_generation = 0; next_generation < 2; next_generation++) {
        struct file file = begin(false);
        if (next_generation) {
            put_section(&file);
            put_interface(&file, PCAP_RAW, 9);
            put_enhanced(&file, 0, 1, ip_packet, sizeof ip_packet);
        } else {
            put_classic(&file, 0xa1b2c3d4, PCAP_RAW, ip_packet, sizeof ip_packet);
        }
        for (size_t length = 0; length <= file.length; length++) {
            struct pcap pcap;
            struct pcap_record record;
            uint8_t *part = malloc(length ? length : 1);
            memcpy(part, file.bytes, length);
            unsigned found = 0;
            if (pcap_adopt(&pcap, part, length) == 0)
                while (pcap_next(&pcap, &record))
                    found++;
            assert_true(found <= 2);
            assert_int_equal(found + pcap.broken > 0 && !pcap.broken && length == file.length, length == file.length);
            pcap_close(&pcap);
        }
        free(file.bytes);
    }
}

static void random_files_are_survived(void **state)
{
    uint32_t random = 1;
    for (unsigned i = 0; i < 20000; i++) {
        struct file file = begin(i & 2);
        if (i & 1) {
            put_section(&file);
            put_interface(&file, PCAP_RAW, 9);
            put_enhanced(&file, 0, 1, ip_packet, sizeof ip_packet);
            put_enhanced(&file, 0, 1, ip_packet, sizeof ip_packet);
        } else {
            put_classic(&file, 0xa1b2c3d4, PCAP_ETHERNET, ip_packet, sizeof ip_packet);
        }
        for (unsigned change = 0; change < 4; change++) {
            random = random * 1664525 + 1013904223;
            file.bytes[(random >> 8) % file.length] = (uint8_t)(random >> 24);
        }
        file.bytes = realloc(file.bytes, file.length);
        struct pcap pcap;
        struct pcap_record record;
        struct dissection found;
        if (pcap_adopt(&pcap, file.bytes, file.length) == 0)
            while (pcap_next(&pcap, &record)) {
                size_t start = (size_t)(record.bytes - file.bytes);
                assert_true(start <= file.length && record.length <= file.length - start);
                dissect(&record, &found);
            }
        pcap_close(&pcap);
    }
}

static void what_is_no_capture_is_refused(void **state)
{
    struct pcap pcap;
    assert_int_equal(pcap_open(&pcap, "/dev/null/nowhere"), ENOTDIR);
    assert_int_equal(pcap_open(&pcap, "/no/such/file"), ENOENT);
    assert_int_equal(pcap_open(&pcap, "/dev/null"), EILSEQ);
    assert_int_equal(pcap_adopt(&pcap, calloc(1, 100), 100), EILSEQ);
    pcap_close(&pcap);
}

TESTS(classic_files_are_read_in_either_order,
      next_generation_files_are_read_in_either_order,
      datagrams_are_found_behind_every_link,
      what_is_not_roce_is_left_alone,
      files_that_end_too_early_are_broken,
      random_files_are_survived,
      what_is_no_capture_is_refused)
