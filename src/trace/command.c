#include "trace/command.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "events/words.h"
#include "ring/trace_ring.h"

/* --- forms of values; `at` has no alignment */

typedef void value_form(struct trace_line *, const uint8_t *at);

static void add_word(struct trace_line *line, const char *const *words, size_t count, uint32_t number)
{
    if (number < count && words[number])
        text_add(line, words[number]);
    else
        text_add_number(line, number);
}

#define ADD_WORD(line, words, number) add_word(line, words, sizeof(words) / sizeof *(words), number)

static uint32_t read_number(const uint8_t *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

/* Defines a form of one statement. */
#define FORM(name, statement)                                                                                          \
    static void form_##name(struct trace_line *line, const uint8_t *at)                                                \
    {                                                                                                                  \
        statement;                                                                                                     \
    }
FORM(u32, text_add_number(line, read_number(at)))
FORM(hex32, text_add_hex(line, read_number(at)))
FORM(u8, text_add_number(line, *at))
FORM(signed, text_add_signed(line, (int32_t)read_number(at)))
FORM(state, text_add(line, words_state(read_number(at))))

static void form_hex16(struct trace_line *line, const uint8_t *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof number);
    text_add_hex(line, number);
}

/* Writes the port space of rdma_create_id: the numbers are RDMA_PS_IPOIB, _TCP, _UDP and _IB. */
static void form_space(struct trace_line *line, const uint8_t *at)
{
    static const struct {
        uint16_t space;
        const char *word;
    } spaces[] = {{0x0002, "RDMA_PS_IPOIB"}, {0x0106, "RDMA_PS_TCP"}, {0x0111, "RDMA_PS_UDP"}, {0x013f, "RDMA_PS_IB"}};
    uint16_t space;
    memcpy(&space, at, sizeof space);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (spaces[i].space == space) {
            text_add(line, spaces[i].word);
            return;
        }
    text_add_hex(line, space);
}

/* Defines a form that writes the word of a number. */
#define WORDS(name, number, ...)                                                                                       \
    static void form_##name(struct trace_line *line, const uint8_t *at)                                                \
    {                                                                                                                  \
        static const char *const words[] = {__VA_ARGS__};                                                              \
        ADD_WORD(line, words, number);                                                                                 \
    }
WORDS(type, *at, [2] = "RC", [3] = "UC", [4] = "UD", [8] = "RAW_PACKET", [9] = "XRC_SEND", [10] = "XRC_RECV")
WORDS(query, read_number(at), "ADDR", "PATH", "GID")
WORDS(level, read_number(at), "RDMA_OPTION_ID", "RDMA_OPTION_IB")

/* Writes the name of an option, whose level is in the member before it. */
static void form_option(struct trace_line *line, const uint8_t *at)
{
    static const char *const of_id[] = {"TOS", "REUSEADDR", "AFONLY", "ACK_TIMEOUT"};
    static const char *const of_ib[] = {[1] = "PATH"};
    uint32_t level = read_number(at - sizeof(uint32_t)), name = read_number(at);
    if (level == 1)
        ADD_WORD(line, of_ib, name);
    else
        ADD_WORD(line, of_id, name);
}

static void form_event(struct trace_line *line, const uint8_t *at)
{
    static const char *const words[] = {
        "ADDR_RESOLVED",  "ADDR_ERROR",      "ROUTE_RESOLVED", "ROUTE_ERROR",   "CONNECT_REQUEST",   "CONNECT_RESPONSE",
        "CONNECT_ERROR",  "UNREACHABLE",     "REJECTED",       "ESTABLISHED",   "DISCONNECTED",      "DEVICE_REMOVAL",
        "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE",    "TIMEWAIT_EXIT", "ADDRINFO_RESOLVED", "ADDRINFO_ERROR",
        "USER",           "INTERNAL",
    };
    uint32_t event = read_number(at);
    if (event < sizeof words / sizeof *words)
        text_add(line, "RDMA_CM_EVENT_");
    ADD_WORD(line, words, event);
}

/* Writes a struct sockaddr as "[::1]:7471"; for another family than IP the number of the family. */
static void form_address(struct trace_line *line, const uint8_t *at)
{
    char text[INET6_ADDRSTRLEN];
    uint16_t family, port;
    memcpy(&family, at, sizeof family);
    memcpy(&port, at + 2, sizeof port);
    bool ipv6 = family == AF_INET6;
    if (family != AF_INET && !ipv6) {
        text_add(line, family ? "family " : "NULL");
        if (family)
            text_add_number(line, family);
        return;
    }
    inet_ntop(family, at + (ipv6 ? 8 : 4), text, sizeof text);
    text_add(line, ipv6 ? "[" : "");
    text_add(line, text);
    text_add(line, ipv6 ? "]:" : ":");
    text_add_number(line, ntohs(port));
}

/* --- arguments, in the order in which they are shown */

#define AT(command, layout, name, member, form)                                                                        \
    {                                                                                                                  \
        UCMA_##command, name, form, offsetof(struct layout, member)                                                    \
    }
#define PARAMETERS(command, layout)                                                                                    \
    AT(command, layout, "qp_num", parameters.qpn, form_hex32),                                                         \
        AT(command, layout, "private_data_len", parameters.private_length, form_u8),                                   \
        AT(command, layout, "responder_resources", parameters.responder_resources, form_u8),                           \
        AT(command, layout, "initiator_depth", parameters.initiator_depth, form_u8),                                   \
        AT(command, layout, "flow_control", parameters.flow_control, form_u8),                                         \
        AT(command, layout, "retry_count", parameters.retry_count, form_u8),                                           \
        AT(command, layout, "rnr_retry_count", parameters.rnr_retry_count, form_u8),                                   \
        AT(command, layout, "srq", parameters.srq, form_u8)

static const struct argument {
    enum ucma_command_number command;
    const char *name;
    value_form *form;
    size_t at;
} arguments[] = {
    AT(CREATE_ID, ucma_create_id, "ps", space, form_space),
    AT(CREATE_ID, ucma_create_id, "qp_type", qp_type, form_type),
    AT(BIND_IP, ucma_bind_ip, "addr", address, form_address),
    AT(BIND, ucma_bind, "addr", address, form_address),
    AT(RESOLVE_IP, ucma_resolve_ip, "src_addr", source, form_address),
    AT(RESOLVE_IP, ucma_resolve_ip, "dst_addr", destination, form_address),
    AT(RESOLVE_IP, ucma_resolve_ip, "timeout_ms", milliseconds, form_u32),
    AT(RESOLVE_ADDR, ucma_resolve_addr, "src_addr", source, form_address),
    AT(RESOLVE_ADDR, ucma_resolve_addr, "dst_addr", destination, form_address),
    AT(RESOLVE_ADDR, ucma_resolve_addr, "timeout_ms", milliseconds, form_u32),
    AT(RESOLVE_ROUTE, ucma_valued, "timeout_ms", value, form_u32),
    AT(LISTEN, ucma_valued, "backlog", value, form_signed),
    AT(NOTIFY, ucma_valued, "event", value, form_u32),
    AT(QUERY, ucma_named, "query", value, form_query),
    AT(INIT_QP_ATTR, ucma_named, "qp_state", value, form_state),
    AT(MIGRATE_ID, ucma_named, "channel", value, form_u32),
    PARAMETERS(CONNECT, ucma_connect),
    PARAMETERS(ACCEPT, ucma_accept),
    AT(REJECT, ucma_reject, "reason", reason, form_u8),
    AT(REJECT, ucma_reject, "private_data_len", private_length, form_u8),
    AT(SET_OPTION, ucma_set_option, "level", level, form_level),
    AT(SET_OPTION, ucma_set_option, "optname", name, form_option),
    AT(SET_OPTION, ucma_set_option, "optlen", length, form_u32),
    AT(JOIN_IP_MCAST, ucma_join_ip, "addr", address, form_address),
    AT(JOIN_MCAST, ucma_join, "addr", address, form_address),
    AT(JOIN_MCAST, ucma_join, "join_flags", flags, form_hex16),
    AT(WRITE_CM_EVENT, ucma_write_event, "event", event, form_event),
    AT(WRITE_CM_EVENT, ucma_write_event, "status", status, form_signed),
};

static void add_identifier(struct trace_line *line, uint32_t number)
{
    text_add(line, "identifier ");
    text_add_number(line, number);
}

void command_arguments(struct trace_line *line, const struct ucma_call *call, enum ucma_command_number command)
{
    static const bool names_identifier[UCMA_COMMANDS] = {
#define COMMAND(number, page, how, serve, layout, least, answer, object) [UCMA_##number] = (object) != UCMA_NO_OBJECT,
#include "calls/ucma.def"
    };
    if (names_identifier[command]) {
        text_add_name(line, "id");
        add_identifier(line, call->object);
    }
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (arguments[i].command == command) {
            text_add_name(line, arguments[i].name);
            arguments[i].form(line, (const uint8_t *)call->in + arguments[i].at);
        }
}

/* --- answers */

static void answer_identifier(struct trace_line *line, const void *answer)
{
    text_add_character(line, ' ');
    add_identifier(line, read_number(answer));
}

static void answer_event(struct trace_line *line, const void *answer)
{
    const uint8_t *event = answer;
    text_add_character(line, ' ');
    form_event(line, event + offsetof(struct ucma_event_response, event));
    text_add(line, " of ");
    add_identifier(line, read_number(event + offsetof(struct ucma_event_response, id)));
    text_add(line, ", status ");
    form_signed(line, event + offsetof(struct ucma_event_response, status));
}

static void answer_reported(struct trace_line *line, const void *answer)
{
    text_add(line, " events ");
    text_add_number(line, read_number(answer));
}

#define ANSWERED(command, layout, answer)                                                                              \
    {                                                                                                                  \
        UCMA_##command, offsetof(struct layout, response), answer                                                      \
    }

void command_answer(struct trace_line *line, const struct ucma_call *call, enum ucma_command_number command)
{
    static const struct {
        enum ucma_command_number command;
        size_t response; /* where the command has the address of its answer */
        void (*add)(struct trace_line *, const void *answer);
    } answers[] = {
        ANSWERED(CREATE_ID, ucma_create_id, answer_identifier),
        ANSWERED(JOIN_IP_MCAST, ucma_join_ip, answer_identifier),
        ANSWERED(JOIN_MCAST, ucma_join, answer_identifier),
        ANSWERED(GET_EVENT, ucma_get_event, answer_event),
        ANSWERED(DESTROY_ID, ucma_named, answer_reported),
        ANSWERED(LEAVE_MCAST, ucma_named, answer_reported),
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].command == command) {
            uint64_t address;
            memcpy(&address, (const uint8_t *)call->in + answers[i].response, sizeof address);
            answers[i].add(line, (const void *)(uintptr_t)address);
        }
}
