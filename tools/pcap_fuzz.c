/* libFuzzer: bytes as a capture file, read as `softverbs decode` reads it. Records are within the file, and what is
 * found in them within the record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dissect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_datagram(const struct pcap_record *record, struct dissection *datagram)
{
    static uint8_t again[65536];
    struct packet packet;
    struct iovec piece;
    require(datagram->bytes >= record->bytes);
    require(datagram->bytes + datagram->length <= record->bytes + record->length);
    if (datagram_decode(&datagram->route, datagram->bytes, datagram->length, &packet, &piece) == WIRE_FINE)
        require(datagram_encode(&datagram->route, &packet, again, sizeof again) == datagram->length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct pcap pcap;
    struct pcap_record record;
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy)
        return 0;
    memcpy(copy, bytes, length);
    int error = pcap_adopt(&pcap, copy, length);
    require(!error || error == EILSEQ);
    while (!error && pcap_next(&pcap, &record)) {
        struct dissection datagram;
        require(record.bytes >= copy && record.length <= length && record.bytes + record.length <= copy + length);
        require(!record.comment || ((const uint8_t *)record.comment >= copy &&
                                    (const uint8_t *)record.comment + record.comment_length <= copy + length));
        if (dissect(&record, &datagram) == DISSECTED_ROCE)
            check_datagram(&record, &datagram);
    }
    require(pcap.at <= length && pcap.skipped + pcap.lost <= length);
    pcap_close(&pcap);
    return 0;
}
