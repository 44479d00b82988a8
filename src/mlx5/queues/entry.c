#include "mlx5/queues/entry.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "wire/bytes.h"

/* Offsets in an entry; the last two are of an error. */
enum {
    PATH = 17,
    SLID = 22,
    FLAGS_SOURCE = 24,
    CHECKED = 28,
    IMMEDIATE = 36,
    APPLICATION = 40,
    OPERATION = 41,
    PLACE = 42,
    LENGTH = 44,
    STAMP = 48,
    OPCODE_NUMBER = 56,
    COUNTER = 60,
    VENDOR = 54,
    SYNDROME = 55,
};

enum {
    REQUEST = 0,
    WRITE_IMMEDIATE = 1,
    SEND = 2,
    SEND_IMMEDIATE = 3,
    SEND_INVALIDATE = 4,
    FAILED_REQUEST = 13,
    FAILED_RESPONSE = 14
};

static uint8_t syndrome_of(uint8_t status)
{
    static const uint8_t syndromes[] = {
        [IBV_WC_LOC_LEN_ERR] = 0x01,    [IBV_WC_LOC_QP_OP_ERR] = 0x02,   [IBV_WC_LOC_PROT_ERR] = 0x04,
        [IBV_WC_WR_FLUSH_ERR] = 0x05,   [IBV_WC_MW_BIND_ERR] = 0x06,     [IBV_WC_BAD_RESP_ERR] = 0x10,
        [IBV_WC_LOC_ACCESS_ERR] = 0x11, [IBV_WC_REM_INV_REQ_ERR] = 0x12, [IBV_WC_REM_ACCESS_ERR] = 0x13,
        [IBV_WC_REM_OP_ERR] = 0x14,     [IBV_WC_RETRY_EXC_ERR] = 0x15,   [IBV_WC_RNR_RETRY_EXC_ERR] = 0x16,
        [IBV_WC_REM_ABORT_ERR] = 0x22,
    };
    enum { OTHER = 0x02 };
    return status < sizeof syndromes && syndromes[status] ? syndromes[status] : OTHER;
}

/* The operation of the work that has ended, as the adapter calls it. */
static uint8_t operation_of(uint8_t opcode)
{
    static const uint8_t operations[] = {
        [IBV_WC_SEND] = 0x0a,      [IBV_WC_RDMA_WRITE] = 0x08, [IBV_WC_RDMA_READ] = 0x10, [IBV_WC_COMP_SWAP] = 0x11,
        [IBV_WC_FETCH_ADD] = 0x12, [IBV_WC_BIND_MW] = 0x25,    [IBV_WC_LOCAL_INV] = 0x25, [IBV_WC_TSO] = 0x0e,
    };
    return opcode < sizeof operations ? operations[opcode] : 0;
}

static bool is_receive(const struct completion *entry)
{
    return entry->opcode == IBV_WC_RECV || entry->opcode == IBV_WC_RECV_RDMA_WITH_IMM ||
           entry->opcode == IBV_WC_TM_RECV || entry->opcode == IBV_WC_TM_NO_TAG;
}

static uint8_t opcode_of(const struct completion *entry)
{
    if (!is_receive(entry))
        return REQUEST;
    if (entry->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        return WRITE_IMMEDIATE;
    return entry->flags & IBV_WC_WITH_INV ? SEND_INVALIDATE : entry->flags & IBV_WC_WITH_IMM ? SEND_IMMEDIATE : SEND;
}

static void write_arrival(uint8_t *to, const struct completion *entry)
{
    enum { IN_DATA = 1u << 28, LEVEL = 24, NETWORK_AND_TRANSPORT = 0x6 };
    bytes_put16(to + SLID, entry->slid);
    to[PATH] = entry->path_bits & 0x7f;
    bytes_put32(to + FLAGS_SOURCE, (entry->flags & IBV_WC_GRH ? IN_DATA : 0) | (uint32_t)(entry->sl & 0xf) << LEVEL |
                                       (entry->source & 0xffffff));
    to[CHECKED] = NETWORK_AND_TRANSPORT;
    if (entry->flags & IBV_WC_WITH_INV)
        bytes_put32(to + IMMEDIATE, entry->immediate_or_key);
    else
        memcpy(to + IMMEDIATE, &entry->immediate_or_key, sizeof entry->immediate_or_key);
}

/* --- tag matching */

/* The reports of the list of tags, with the numbers of the adapter. */
enum {
    TAG_CONSUMED = 1,
    TAG_EXPECTED = 2,
    TAG_UNEXPECTED = 3,
    TAG_NONE = 4,
    TAG_ADDED = 5,
    TAG_REMOVED = 6,
    TAG_NOTHING = 7,
    TAG_CONSUMED_WHOLE = 10,
    TAG_INCOMPLETE = 11, /* software has to read the data */
};

enum { NO_PACKET = 6 }; /* the opcode of the end of an operation */

/* An entry of a message with a tag says by its flags what it reports: the match, the data, both, or that no buffer
 * matched. */
static uint8_t report_of_message(const struct completion *entry)
{
    switch (entry->flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)) {
    case IBV_WC_TM_MATCH:
        return entry->status == IBV_WC_TM_RNDV_INCOMPLETE ? TAG_INCOMPLETE : TAG_CONSUMED;
    case IBV_WC_TM_DATA_VALID:
        return TAG_EXPECTED;
    case IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID:
        return TAG_CONSUMED_WHOLE;
    default:
        return TAG_UNEXPECTED;
    }
}

static uint8_t report_of(const struct completion *entry)
{
    switch (entry->opcode) {
    case IBV_WC_TM_ADD:
        return TAG_ADDED;
    case IBV_WC_TM_DEL:
        return TAG_REMOVED;
    case IBV_WC_TM_SYNC:
        return TAG_NOTHING;
    case IBV_WC_TM_RECV:
        return report_of_message(entry);
    default:
        return TAG_NONE;
    }
}

static bool is_operation_on_tags(const struct completion *entry)
{
    return entry->opcode == IBV_WC_TM_ADD || entry->opcode == IBV_WC_TM_DEL || entry->opcode == IBV_WC_TM_SYNC;
}

/* The end of an operation says whether it succeeded, and how many unexpected messages there were, modulo 2^16. */
static void write_operation(uint8_t *to, const struct completion *entry)
{
    enum { SUCCESS = 1u << 31, DELIVERED = 4 };
    bytes_put32(to, entry->status == IBV_WC_SUCCESS ? SUCCESS : 0);
    bytes_put16(to + DELIVERED, (uint16_t)entry->flow_tag);
}

/* A match shows the header of the message. */
static void write_match(uint8_t *to, const struct completion *entry)
{
    enum { PRIVATE = 4, TAG = 8, EAGER = 3 };
    to[0] = EAGER;
    bytes_put32(to + PRIVATE, entry->tag_private);
    bytes_put64(to + TAG, entry->tag);
}

static void write_report(uint8_t *to, const struct completion *entry)
{
    to[APPLICATION] = 1;
    to[OPERATION] = report_of(entry);
    bytes_put16(to + PLACE, (uint16_t)entry->id);
    if (is_operation_on_tags(entry))
        write_operation(to, entry);
    else if (entry->flags & IBV_WC_TM_MATCH)
        write_match(to, entry);
}

/* --- all */

/* Returns true if the entry has the form of an error. The end of an operation on tags, and a rendezvous that software
 * has to finish, have not. */
static bool is_error(const struct completion *entry)
{
    return entry->status != IBV_WC_SUCCESS && entry->status != IBV_WC_TM_RNDV_INCOMPLETE &&
           !is_operation_on_tags(entry);
}

uint8_t entry_write(uint8_t *to, const struct completion *entry, bool tags)
{
    bool failed = is_error(entry), receive = is_receive(entry);
    memset(to, 0, ENTRY_BYTES - 1);
    if (tags)
        write_report(to, entry);
    bytes_put32(to + OPCODE_NUMBER, (uint32_t)(receive ? 0 : operation_of(entry->opcode)) << 24 | entry->qp_number);
    bytes_put16(to + COUNTER, (uint16_t)entry->id);
    if (failed) {
        to[SYNDROME] = syndrome_of(entry->status);
        return (uint8_t)((receive ? FAILED_RESPONSE : FAILED_REQUEST) << 4);
    }
    bytes_put32(to + LENGTH, entry->length);
    bytes_put64(to + STAMP, entry->timestamp);
    if (receive)
        write_arrival(to, entry);
    return (uint8_t)((is_operation_on_tags(entry) ? NO_PACKET : opcode_of(entry)) << 4);
}
