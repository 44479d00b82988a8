/* libFuzzer: bytes as a message of the connection manager, as they are, and with the head of each message that exists,
 * which would take long to guess. Bytes that decode must describe themselves, and encode to bytes that decode to the
 * same. Its private data is read as IP addressing, which must encode to the same, too. */
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/cm/cm.h"
#include "wire/cm/cm_ip.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_ip(const uint8_t *private_data)
{
    struct cm_ip ip, again;
    uint8_t bytes[CM_IP_BYTES];
    if (cm_ip_decode(private_data, &ip) != CM_IP_FINE)
        return;
    cm_ip_encode(&ip, bytes);
    require(cm_ip_decode(bytes, &again) == CM_IP_FINE && !memcmp(&ip, &again, sizeof ip));
}

static void check_message(const struct cm_message *message)
{
    static char line[4096];
    uint8_t bytes[MAD_BYTES];
    struct cm_message again;
    cm_encode(message, bytes);
    require(cm_decode(bytes, sizeof bytes, &again) == CM_FINE);
    require(!memcmp(message, &again, sizeof again));
    require(strlen(cm_describe(message, line, sizeof line)) < sizeof line - 1);
    check_ip(message->private_data);
}

static void fuzz(const uint8_t *bytes, size_t length)
{
    struct cm_message message;
    enum cm_fault fault = cm_decode(bytes, length, &message);
    require((length < MAD_BYTES) == (fault == CM_TRUNCATED));
    if (fault == CM_FINE)
        check_message(&message);
}

/* Input: which message, and the rest of it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    uint8_t whole[MAD_BYTES] = {0};
    fuzz(bytes, length);
    if (!length)
        return 0;
    memcpy(whole, bytes + 1, length - 1 < MAD_BYTES ? length - 1 : MAD_BYTES);
    memcpy(whole, "\1\7\2\3", 4);
    bytes_put16(whole + 16, (uint16_t)(CM_REQ + bytes[0] % (CM_APR - CM_REQ + 1)));
    fuzz(whole, sizeof whole);
    return 0;
}
