#include "tap/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/testing/group.h"
#include "dissect.h"
#include "wire/op.h"

enum { LONGEST = 1 << 20 };

static char path[64], why[512];
static uint8_t content[LONGEST];

static const struct datagram_route ipv4 = {.source = {[10] = 0xff, 0xff, 192, 0, 2, 1},
                                           .destination = {[10] = 0xff, 0xff, 192, 0, 2, 2},
                                           .source_port = 0xc123,
                                           .destination_port = DATAGRAM_PORT,
                                           .fragment = DATAGRAM_DONT_FRAGMENT};
static const struct datagram_route ipv6 = {.source = {0xfe, 0x80, [15] = 1},
                                           .destination = {0xfe, 0x80, [15] = 2},
                                           .source_port = 0xc123,
                                           .destination_port = DATAGRAM_PORT};

static struct capture *begin(void)
{
    strcpy(path, "/tmp/capture-test-XXXXXX");
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (uint8_t)(i * 7 + i / 256);
    struct capture *capture = capture_open(path, false, why, sizeof why);
    assert_non_null(capture);
    return capture;
}

static void write_packet(struct capture *capture, const struct datagram_route *route, uint32_t length)
{
    uint8_t headers[WIRE_HEADERS_MAX];
    struct iovec piece = {content, length};
    struct packet packet = {
        .opcode = op_code(SERVICE_RC, OPERATION_SEND_ONLY), .destination = 17, .psn = length & 0xffff};
    packet.payload = (struct payload){.length = length, .count = length != 0, .pieces = &piece};
    struct capture_way way = {.sent = true, .route = *route, .hop_limit = 64};
    capture_roce(capture, &way, headers, wire_encode(&packet, headers), &packet.payload);
}

/* The next record is this packet, with a right ICRC and as many bytes of the payload. */
static void expect_packet(struct pcap *pcap, const struct datagram_route *route, uint32_t length)
{
    struct pcap_record record;
    struct dissection datagram;
    struct packet packet;
    struct iovec piece;
    assert_true(pcap_next(pcap, &record));
    assert_int_equal(record.length, record.original);
    assert_int_equal(dissect(&record, &datagram), DISSECTED_ROCE);
    assert_memory_equal(datagram.route.source, route->source, 16);
    assert_memory_equal(datagram.route.destination, route->destination, 16);
    assert_int_equal(datagram_decode(&datagram.route, datagram.bytes, datagram.length, &packet, &piece), WIRE_FINE);
    assert_int_equal(packet.payload.length, length);
    if (length)
        assert_memory_equal(piece.iov_base, content, length);
}

static void expect_end(struct pcap *pcap)
{
    struct pcap_record record;
    assert_false(pcap_next(pcap, &record));
    assert_false(pcap->broken);
    pcap_close(pcap);
    unlink(path);
}

static void packets_of_all_lengths_are_read_back(void **state)
{
    static const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, 4096, CAPTURE_PAYLOAD_MAX - 1, CAPTURE_PAYLOAD_MAX};
    struct capture *capture = begin();
    struct pcap pcap;
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        write_packet(capture, i & 1 ? &ipv6 : &ipv4, lengths[i / 2]);
    capture_close(capture);
    assert_int_equal(pcap_open(&pcap, path), 0);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        expect_packet(&pcap, i & 1 ? &ipv6 : &ipv4, lengths[i / 2]);
    expect_end(&pcap);
}

static void what_no_ip_packet_holds_is_cut(void **state)
{
    struct capture *capture = begin();
    struct pcap pcap;
    write_packet(capture, &ipv4, CAPTURE_PAYLOAD_MAX + 1);
    write_packet(capture, &ipv6, LONGEST);
    capture_close(capture);
    assert_int_equal(pcap_open(&pcap, path), 0);
    expect_packet(&pcap, &ipv4, CAPTURE_PAYLOAD_MAX);
    expect_packet(&pcap, &ipv6, CAPTURE_PAYLOAD_MAX);
    expect_end(&pcap);
}

static void datagrams_of_any_bytes_are_read_back(void **state)
{
    static const uint32_t lengths[] = {0, 1, 15, 16, 4099, UINT16_MAX - 28};
    struct capture *capture = begin();
    struct pcap pcap;
    struct pcap_record record;
    struct dissection datagram;
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        capture_datagram(capture, &(struct capture_way){.route = i & 1 ? ipv6 : ipv4, .note = "noise"}, content,
                         lengths[i / 2]);
    capture_datagram(capture, &(struct capture_way){.route = ipv4}, content, UINT16_MAX); /* more than IPv4 holds */
    capture_close(capture);
    assert_int_equal(pcap_open(&pcap, path), 0);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        assert_true(pcap_next(&pcap, &record));
        assert_int_equal(dissect(&record, &datagram), DISSECTED_ROCE);
        assert_int_equal(datagram.length, lengths[i / 2]);
        assert_memory_equal(datagram.bytes, content, datagram.length);
    }
    expect_end(&pcap);
}

static void writers_take_turns_and_go_on_later(void **state)
{
    struct capture *one = begin(), *other = capture_open(path, false, why, sizeof why);
    struct pcap pcap;
    assert_non_null(other);
    write_packet(one, &ipv4, 1);
    write_packet(other, &ipv4, 2);
    write_packet(one, &ipv4, 3);
    capture_close(one);
    assert_int_equal(capture_begin(path), 0); /* the other still writes, so nothing is emptied */
    capture_close(other);
    one = capture_open(path, false, why, sizeof why);
    assert_non_null(one);
    write_packet(one, &ipv4, 4);
    capture_close(one);
    assert_int_equal(pcap_open(&pcap, path), 0);
    for (uint32_t length = 1; length <= 4; length++)
        expect_packet(&pcap, &ipv4, length);
    pcap_close(&pcap);
    assert_int_equal(capture_begin(path), 0);
    assert_int_equal(pcap_open(&pcap, path), EILSEQ); /* empty */
    unlink(path);
}

static off_t size_of_file(void)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

/* Writes a packet and cuts it to `left` bytes, as when its writer was killed. */
static void write_part(uint32_t length, off_t left)
{
    struct capture *capture = capture_open(path, false, why, sizeof why);
    off_t begin = size_of_file();
    assert_non_null(capture);
    write_packet(capture, &ipv4, length);
    capture_close(capture);
    assert_true(size_of_file() > begin + left);
    assert_int_equal(truncate(path, begin + left), 0);
}

static void write_whole(uint32_t length)
{
    struct capture *capture = capture_open(path, false, why, sizeof why);
    assert_non_null(capture);
    write_packet(capture, &ipv4, length);
    capture_close(capture);
}

/* The kernel ends a write between two pages, and a block begins at a multiple of 16. */
static void what_killed_writers_left_is_made_a_block_that_is_skipped(void **state)
{
    static const off_t left[] = {16, 32, 64, 4096, 40000};
    struct pcap pcap;
    capture_close(begin());
    write_whole(1);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        write_part(50000, left[i]);
        write_whole(2);
    }
    write_part(50000, 8192);
    write_part(50000, 16);
    write_whole(3);
    assert_int_equal(pcap_open(&pcap, path), 0);
    expect_packet(&pcap, &ipv4, 1);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        expect_packet(&pcap, &ipv4, 2);
    expect_packet(&pcap, &ipv4, 3);
    assert_int_equal(pcap.skipped, 0);
    assert_int_equal(pcap.lost, 16 + 32 + 64 + 4096 + 40000 + 8192 + 16);
    expect_end(&pcap);
}

/* Two writers were killed one after the other, and together they left more than one block has. */
static void long_parts_in_a_row_are_made_one_block(void **state)
{
    static char part[40000];
    struct pcap pcap;
    capture_close(begin());
    write_whole(1);
    off_t from = size_of_file();
    write_part(50000, sizeof part);
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, from, SEEK_SET), 0);
    assert_int_equal(fread(part, 1, sizeof part, file), sizeof part);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(fwrite(part, 1, sizeof part, file), sizeof part);
    fclose(file);
    write_whole(2);
    assert_int_equal(pcap_open(&pcap, path), 0);
    expect_packet(&pcap, &ipv4, 1);
    expect_packet(&pcap, &ipv4, 2);
    assert_int_equal(pcap.skipped, 0);
    assert_int_equal(pcap.lost, 2 * sizeof part);
    expect_end(&pcap);
}

/* No writer has turned the part into a block, as in a capture of an older softverbs. */
static void a_reader_finds_the_next_block_by_itself(void **state)
{
    static char rest[1000];
    struct pcap pcap;
    capture_close(begin());
    write_whole(1);
    off_t from = size_of_file();
    write_whole(2);
    size_t size = (size_t)(size_of_file() - from);
    FILE *file = fopen(path, "r+");
    assert_int_equal(fseek(file, from, SEEK_SET), 0);
    assert_int_equal(fread(rest, 1, sizeof rest, file), size);
    assert_int_equal(truncate(path, from), 0);
    write_part(50000, 4100);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal(fwrite(rest, 1, size, file), size);
    fclose(file);
    assert_int_equal(pcap_open(&pcap, path), 0);
    expect_packet(&pcap, &ipv4, 1);
    expect_packet(&pcap, &ipv4, 2);
    assert_int_equal(pcap.skipped, 4100);
    expect_end(&pcap);
}

static pid_t start_writer(void)
{
    enum { MOST = 96 << 20 };
    pid_t child = fork();
    struct capture *capture = child ? NULL : capture_open(path, false, why, sizeof why);
    if (capture)
        capture_limit(capture, MOST);
    while (!child)
        write_packet(capture, &ipv4, CAPTURE_PAYLOAD_MAX);
    return child;
}

static void writers_that_are_killed_at_any_moment_leave_a_file_that_is_read_to_its_end(void **state)
{
    enum { WRITERS = 3, KILLS = 60, PARTS_MOST = 2 };
    pid_t writers[WRITERS];
    struct pcap pcap;
    struct pcap_record record;
    capture_close(begin());
    for (int i = 0; i < WRITERS; i++)
        writers[i] = start_writer();
    for (int i = 0; i < KILLS; i++) {
        usleep(500 + (unsigned)i * 311 % 1500);
        kill(writers[i % WRITERS], SIGKILL);
        waitpid(writers[i % WRITERS], NULL, 0);
        writers[i % WRITERS] = i + WRITERS < KILLS ? start_writer() : -1;
    }
    write_whole(7);
    assert_int_equal(pcap_open(&pcap, path), 0);
    size_t last = 0;
    while (pcap_next(&pcap, &record))
        last = record.length;
    assert_true(last && last < 200);
    /* Writers that are killed faster than they mend may leave a part further back than is looked for. */
    assert_true(pcap.skipped <= PARTS_MOST * CAPTURE_PAYLOAD_MAX);
    print_message("%zu bytes in all, %zu of packets that were not written whole, %zu left to the reader\n", pcap.length,
                  pcap.lost, pcap.skipped);
    expect_end(&pcap);
}

static void another_file_is_left_alone(void **state)
{
    char text[32] = "";
    capture_close(begin());
    FILE *file = fopen(path, "w");
    fputs("my thesis", file);
    fclose(file);
    assert_null(capture_open(path, false, why, sizeof why));
    assert_non_null(strstr(why, "did not write"));
    assert_int_equal(capture_begin(path), EEXIST);
    file = fopen(path, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "my thesis");
    unlink(path);
}

static void a_name_takes_the_process_id(void **state)
{
    char name[32], expected[32];
    snprintf(expected, sizeof expected, "a%db%%", (int)getpid());
    assert_true(capture_name("a%pb%", name, sizeof name));
    assert_string_equal(name, expected);
    assert_true(capture_name("1234567", name, 8));
    assert_false(capture_name("12345678", name, 8));
    assert_false(capture_name("123456%p", name, 8));
}

TESTS(packets_of_all_lengths_are_read_back,
      what_no_ip_packet_holds_is_cut,
      datagrams_of_any_bytes_are_read_back,
      writers_take_turns_and_go_on_later,
      what_killed_writers_left_is_made_a_block_that_is_skipped,
      long_parts_in_a_row_are_made_one_block,
      a_reader_finds_the_next_block_by_itself,
      writers_that_are_killed_at_any_moment_leave_a_file_that_is_read_to_its_end,
      another_file_is_left_alone,
      a_name_takes_the_process_id)
