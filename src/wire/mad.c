#include "wire/mad.h"

#include <string.h>

#include "wire/bytes.h"

/* The common header (IBA 13.4.3): base version 8 | class 8 | class version 8 | R 1, method 7 | status 16 | class
 * specific 16 | transaction 64 | attribute 16 | reserved 16 | attribute modifier 32. */
enum { BASE_VERSION = 1, CLASS = 0x07, CLASS_VERSION = 2, METHOD_SEND = 0x03 };
enum { TRANSACTION_AT = 8, ATTRIBUTE_AT = 16, DATA_AT = 24 };

/* Both messages begin with the RequestID; all places are counted from the end of the header (IBA 12.11.1, 12.11.2). */
enum { REQ_PKEY_AT = 4, REQ_SERVICE_AT = 8, REQ_PRIVATE_AT = 16 };
enum {
    REP_STATUS_AT = 4,
    REP_LENGTH_AT = 5,
    REP_QP_AT = 8,
    REP_SERVICE_AT = 12,
    REP_QKEY_AT = 20,
    REP_INFORMATION_AT = 24,
    REP_PRIVATE_AT = 96
};

static const uint8_t head[] = {BASE_VERSION, CLASS, CLASS_VERSION, METHOD_SEND};

static void encode_request(const struct mad *mad, uint8_t *data)
{
    bytes_put16(data + REQ_PKEY_AT, mad->sidr_req.pkey);
    bytes_put64(data + REQ_SERVICE_AT, mad->service);
    memcpy(data + REQ_PRIVATE_AT, mad->sidr_req.private_data, MAD_REQUEST_PRIVATE);
}

static void encode_reply(const struct mad *mad, uint8_t *data)
{
    data[REP_STATUS_AT] = mad->sidr_rep.status;
    data[REP_LENGTH_AT] = mad->sidr_rep.information_length;
    bytes_put32(data + REP_QP_AT, mad->sidr_rep.qp << 8);
    bytes_put64(data + REP_SERVICE_AT, mad->service);
    bytes_put32(data + REP_QKEY_AT, mad->sidr_rep.qkey);
    memcpy(data + REP_INFORMATION_AT, mad->sidr_rep.information, MAD_REPLY_INFORMATION);
    memcpy(data + REP_PRIVATE_AT, mad->sidr_rep.private_data, MAD_REPLY_PRIVATE);
}

void mad_encode(const struct mad *mad, uint8_t to[MAD_BYTES])
{
    memset(to, 0, MAD_BYTES);
    memcpy(to, head, sizeof head);
    bytes_put64(to + TRANSACTION_AT, mad->transaction);
    bytes_put16(to + ATTRIBUTE_AT, (uint16_t)mad->message);
    bytes_put32(to + DATA_AT, mad->request);
    if (mad->message == MAD_SIDR_REQ)
        encode_request(mad, to + DATA_AT);
    else
        encode_reply(mad, to + DATA_AT);
}

static enum mad_fault decode_request(const uint8_t *data, struct mad *mad)
{
    mad->sidr_req.pkey = bytes_get16(data + REQ_PKEY_AT);
    mad->service = bytes_get64(data + REQ_SERVICE_AT);
    memcpy(mad->sidr_req.private_data, data + REQ_PRIVATE_AT, MAD_REQUEST_PRIVATE);
    return MAD_FINE;
}

static enum mad_fault decode_reply(const uint8_t *data, struct mad *mad)
{
    if (data[REP_LENGTH_AT] > MAD_REPLY_INFORMATION)
        return MAD_TRUNCATED;
    mad->sidr_rep.status = data[REP_STATUS_AT];
    mad->sidr_rep.information_length = data[REP_LENGTH_AT];
    mad->sidr_rep.qp = bytes_get32(data + REP_QP_AT) >> 8;
    mad->service = bytes_get64(data + REP_SERVICE_AT);
    mad->sidr_rep.qkey = bytes_get32(data + REP_QKEY_AT);
    memcpy(mad->sidr_rep.information, data + REP_INFORMATION_AT, MAD_REPLY_INFORMATION);
    memcpy(mad->sidr_rep.private_data, data + REP_PRIVATE_AT, MAD_REPLY_PRIVATE);
    return MAD_FINE;
}

enum mad_fault mad_decode(const uint8_t *bytes, size_t length, struct mad *mad)
{
    memset(mad, 0, sizeof *mad);
    if (length < MAD_BYTES)
        return MAD_TRUNCATED;
    if (memcmp(bytes, head, sizeof head))
        return MAD_CLASS;
    mad->message = bytes_get16(bytes + ATTRIBUTE_AT);
    mad->transaction = bytes_get64(bytes + TRANSACTION_AT);
    mad->request = bytes_get32(bytes + DATA_AT);
    if (mad->message == MAD_SIDR_REQ)
        return decode_request(bytes + DATA_AT, mad);
    return mad->message == MAD_SIDR_REP ? decode_reply(bytes + DATA_AT, mad) : MAD_MESSAGE;
}
