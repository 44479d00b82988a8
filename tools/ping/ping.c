/* softverbs ping: shows whether a RoCEv2 endpoint is there, what the path to it carries, and how long an answer takes.
 * docs/how-to/ping.md
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/assembly.h"
#include "base/text/text.h"
#include "command.h"
#include "config/config.h"
#include "config/settings.h"
#include "gsi/gsi.h"
#include "gsi/gsi_client.h"
#include "ipc/ask/claim.h"
#include "ipc/node.h"
#include "ping_path.h"
#include "print/emit.h"
#include "print/screen.h"
#include "runtime/clock.h"
#include "wire/op.h"

enum { WINDOW = 1024, NAME_MAX_SHOWN = 64, QUESTION = SERVICE_UD << 5 | OPERATION_SEND_ONLY };

static const uint32_t about_port = 0x80000000; /* the number of the question about a port, above those of echoes */
static const uint64_t port_services[] = {0x01060000, 0x01110000}; /* service IDs of RDMA_PS_TCP, RDMA_PS_UDP (A11) */

static const nanos least_patience = 200 * NANOS_MILLISECOND; /* the least time for an echo */

struct question {
    uint32_t number;
    nanos sent;
    bool answered;
};

struct ping {
    const char *name, *interface;
    int family;
    uint64_t port;  /* the port of librdmacm that is asked about; 0: no port */
    bool datagrams; /* the port is of RDMA_PS_UDP */
    enum { PORT_UNKNOWN, PORT_FREE, PORT_TAKEN } port_state;
    uint64_t count; /* 0: until interrupted */
    nanos interval, timeout, deadline;

    struct ping_wire wire;
    struct ping_path path;
    struct gsi_client *client;
    int answers; /* a pipe */

    struct question questions[WINDOW]; /* the last, by their number */
    unsigned long sent, answered, repeated, refused;
    nanos next, last, least, most, sum;
    char who[NAME_MAX_SHOWN + 1];
    bool quiet; /* only the end is printed */
    bool as_json;
    int error; /* the last error reported, except EMSGSIZE */
    char error_from[PING_ADDRESS_MAX];
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = 1;
}

/* --- sending */

static void ask(struct ping *ping, uint32_t number, uint32_t length)
{
    static const uint8_t nothing[4096];
    uint8_t bytes[MAD_BYTES];
    struct cm_message question = gsi_client_question(ping->client, number);
    if (number == about_port)
        question.sidr_req.service = port_services[ping->datagrams] | ping->port;
    struct iovec pieces[] = {{bytes, sizeof bytes}, {(void *)nothing, length - MAD_BYTES}};
    cm_encode(&question, bytes);
    ping_wire_send(
        &ping->wire,
        &(struct packet){.opcode = QUESTION,
                         .migrated = true,
                         .pkey = DEVICE_PKEY,
                         .destination = MAD_QP,
                         .psn = number & 0xffff,
                         .qkey = MAD_QKEY,
                         .source = MAD_QP,
                         .payload = {.length = length, .count = length > MAD_BYTES ? 2 : 1, .pieces = pieces}});
}

static void ask_next(struct ping *ping, nanos now)
{
    uint32_t number = (uint32_t)(++ping->sent % PATH_ECHO);
    ping->questions[number % WINDOW] = (struct question){.number = number, .sent = clock_now()};
    ping->last = now;
    ping->next = now + ping->interval;
    ask(ping, number, MAD_BYTES);
    if (ping->port && ping->port_state == PORT_UNKNOWN)
        ask(ping, about_port, MAD_BYTES);
    ping_path_fill(&ping->path, &ping->wire);
}

static void try_path(struct ping *ping, nanos now)
{
    uint32_t number, length;
    nanos patience = 4 * ping->most > least_patience ? 4 * ping->most : least_patience;
    if (ping_path_try(&ping->path, now, patience, &number, &length))
        ask(ping, number, length);
}

/* --- answers */

/* The endpoint that answers writes the private data: only text that is harmless on a terminal is shown. */
static void recognize(struct ping *ping, const uint8_t *text)
{
    size_t length = 0;
    ping->path.echoes = !memcmp(text, GSI_SIGNATURE, strlen(GSI_SIGNATURE));
    while (length < NAME_MAX_SHOWN && text[length] >= ' ' && text[length] < 0x7f)
        length++;
    if (ping->path.echoes)
        snprintf(ping->who, sizeof ping->who, "%.*s", (int)length, (const char *)text);
    else
        snprintf(ping->who, sizeof ping->who, "a RoCEv2 endpoint (its connection manager answers)");
}

static void count_time(struct ping *ping, nanos time)
{
    ping->least = ping->answered == 1 || time < ping->least ? time : ping->least;
    ping->most = time > ping->most ? time : ping->most;
    ping->sum += time;
}

/* The request has no addresses, unlike a program's, so that no listener gets it: the connection manager answers with
 * another status if the port has a listener than if it has no listener. */
static void take_port(struct ping *ping, uint8_t status)
{
    ping->port_state = status == CM_SIDR_UNSUPPORTED ? PORT_FREE : PORT_TAKEN;
    if (!ping->quiet)
        printf("%s: %s listens at port %lu of librdmacm\n", ping->wire.there,
               ping->port_state == PORT_TAKEN ? "a program" : "no program", ping->port);
}

static void take_answer(struct ping *ping, const struct gsi_client_reply *answer)
{
    struct question *question = &ping->questions[answer->number % WINDOW];
    if (answer->number == about_port) {
        if (ping->port && ping->port_state == PORT_UNKNOWN)
            take_port(ping, answer->status);
        return;
    }
    if (answer->number >= PATH_ECHO) {
        ping_path_answered(&ping->path, answer->number, answer->length);
        return;
    }
    if (question->number != answer->number || !question->sent)
        return;
    bool again = question->answered;
    nanos time = answer->at - question->sent;
    question->answered = true;
    ping->answered += !again;
    ping->repeated += again;
    if (!again)
        count_time(ping, time);
    recognize(ping, answer->private_data);
    if (!ping->quiet)
        printf("%s: %s, seq %u, %.3f ms%s\n", ping->wire.there, ping->who, answer->number, (double)time / 1e6,
               again ? " (again)" : "");
}

/* Both a question and the packet that fills the path may be refused; a line for each question is enough. */
static void take_trouble(struct ping *ping, const struct ping_trouble *trouble)
{
    if (trouble->error == EMSGSIZE) {
        if (ping_path_told(&ping->path, trouble->mtu, trouble->from))
            ping_path_fill(&ping->path, &ping->wire);
        return;
    }
    ping->error = trouble->error;
    snprintf(ping->error_from, sizeof ping->error_from, "%s", trouble->from);
    if (ping->refused == ping->sent)
        return;
    ping->refused = ping->sent;
    if (ping->quiet)
        return;
    if (trouble->error == ECONNREFUSED)
        printf("%s: nothing listens on UDP port 4791\n", ping->wire.there);
    else
        printf("%s says: %s\n", *trouble->from ? trouble->from : "this host", strerror(trouble->error));
}

/* --- going on, and ending */

/* The last question still may be answered, and an echo of the path may still be under way. */
static bool is_over(const struct ping *ping, nanos now)
{
    if (interrupted || (ping->deadline && now >= ping->deadline))
        return true;
    if (!ping->count || ping->sent < ping->count)
        return false;
    bool all = ping->answered >= ping->sent && (!ping->port || ping->port_state != PORT_UNKNOWN);
    bool waits = !all && ping->refused < ping->sent && now < ping->last + ping->timeout;
    return !waits && ping_path_due(&ping->path) == NANOS_NEVER;
}

static nanos earlier(nanos a, nanos b)
{
    return a < b ? a : b;
}

static void wait_until(struct ping *ping, nanos until, nanos now)
{
    struct pollfd sockets[] = {{.fd = ping->answers, .events = POLLIN}, {.fd = ping->wire.fd}};
    struct gsi_client_reply answer;
    struct ping_trouble trouble;
    nanos span = nanos_since(now, until);
    struct timespec timeout = {.tv_sec = (time_t)(span / NANOS_SECOND), .tv_nsec = (long)(span % NANOS_SECOND)};
    if (ppoll(sockets, 2, &timeout, NULL) <= 0)
        return;
    while (read(ping->answers, &answer, sizeof answer) == sizeof answer)
        take_answer(ping, &answer);
    while (ping_wire_trouble(&ping->wire, &trouble))
        take_trouble(ping, &trouble);
}

static void go_on(struct ping *ping)
{
    nanos now;
    while (!is_over(ping, now = clock_now())) {
        bool more = !ping->count || ping->sent < ping->count;
        if (more && now >= ping->next)
            ask_next(ping, now);
        else if (now >= ping_path_due(&ping->path))
            try_path(ping, now);
        else {
            nanos until = earlier(more ? ping->next : ping->last + ping->timeout, ping_path_due(&ping->path));
            wait_until(ping, ping->deadline ? earlier(until, ping->deadline) : until, now);
        }
        fflush(stdout);
    }
}

static void explain_silence(const struct ping *ping)
{
    if (ping->error == ECONNREFUSED)
        screen_print(stdout,
                     "The host is there, but nothing listens on UDP port 4791: no RoCE device, and no program that "
                     "\"softverbs run --net\" started.");
    else if (ping->error)
        screen_print(stdout, "%s says: %s.", *ping->error_from ? ping->error_from : "This host", strerror(ping->error));
    else if (!memcmp(ping->wire.route.source, ping->wire.route.destination, 16))
        screen_print(
            stdout,
            "No answer. The address is this host's own, and no program that \"softverbs run --net\" started is "
            "on %s, or its port is down (\"softverbs devices\" shows it, \"softverbs event port-up\" ends it).",
            ping->wire.interface);
    else
        screen_print(stdout,
                     "No answer. The host may be down; a firewall on the way, there or here may drop UDP port 4791, "
                     "to which answers come too; or what is there has no connection manager (Linux: modprobe "
                     "rdma_ucm) or drops what it is sent, as endpoints do when something on the way has changed "
                     "a packet (its ICRC).");
}

static json_t *milliseconds(const struct ping *ping, nanos time)
{
    return ping->answered ? json_real((double)time / 1e6) : json_null();
}

static json_t *port_listens(const struct ping *ping)
{
    return ping->port_state == PORT_UNKNOWN ? json_null() : json_boolean(ping->port_state == PORT_TAKEN);
}

/* EXIT_OK: an endpoint answered and, if a port was asked about, said that a program listens there. */
static int status_of(const struct ping *ping)
{
    return ping->answered && (!ping->port || ping->port_state == PORT_TAKEN) ? EXIT_OK : EXIT_NEGATIVE;
}

static int emit_summary(const struct ping *ping)
{
    json_t *path = json_null();
    if (ping->answered)
        path = json_pack("{s:i, s:b, s:i, s:o, s:i}", "roce", (int)ping->path.roce, "proven", ping->path.proven, "ip",
                         (int)ping->path.ip, "says", emit_text(*ping->path.from ? ping->path.from : NULL), "lost",
                         (int)ping->path.lost);
    nanos average = ping->answered ? ping->sum / (nanos)ping->answered : 0;
    emit(json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                   emit_text(ping->name), "address", emit_text(ping->wire.there), "from", emit_text(ping->wire.here),
                   "interface", emit_text(ping->wire.interface), "sent", (json_int_t)ping->sent, "answered",
                   (json_int_t)ping->answered, "repeated", (json_int_t)ping->repeated, "who",
                   emit_text(ping->answered ? ping->who : NULL), "listens", port_listens(ping), "min_ms",
                   milliseconds(ping, ping->least), "avg_ms", milliseconds(ping, average), "max_ms",
                   milliseconds(ping, ping->most), "path_mtu", path, "error",
                   emit_text(ping->error ? strerror(ping->error) : NULL)));
    return status_of(ping);
}

static int summarize(const struct ping *ping)
{
    enum { INDENT = 4 };
    char line[512], again[64] = "", times[128] = "";
    if (ping->repeated)
        snprintf(again, sizeof again, ", %lu came again", ping->repeated);
    if (ping->answered)
        snprintf(times, sizeof times, ", min/avg/max %.3f/%.3f/%.3f ms", (double)ping->least / 1e6,
                 (double)ping->sum / (double)ping->answered / 1e6, (double)ping->most / 1e6);
    snprintf(line, sizeof line, "--- %s: %lu sent, %lu answered, %.0f%% lost%s%s", ping->wire.there, ping->sent,
             ping->answered, ping->sent ? 100.0 * (double)(ping->sent - ping->answered) / (double)ping->sent : 0.0,
             again, times);
    screen_wrap(stdout, screen_width(stdout), 0, INDENT, line);
    if (ping->answered)
        ping_path_print(&ping->path);
    else
        explain_silence(ping);
    return status_of(ping);
}

/* --- beginning */

/* The device of this process is on the interface by which the packets leave, whatever the user's configuration. */
static int join(struct ping *ping)
{
    int ends[2];
    if (setenv(setting_lines[SETTING_DEVICES].variable, "1", 1) ||
        setenv(setting_lines[SETTING_NET].variable, ping->wire.interface, 1) || pipe2(ends, O_NONBLOCK | O_CLOEXEC))
        return errno;
    const struct device *device = config_device(0);
    ping->answers = ends[0];
    return device->interface[0] ? gsi_client_open(&ping->client, device, &assembly_parts, ends[1]) : ENODEV;
}

static int refuse(const struct ping *ping, int error)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    if (error == EADDRINUSE)
        complain(
            "ping: another user or program has UDP port 4791 on %s, to which answers come. The kernel's own soft RoCE "
            "(rxe) takes it for the whole host when it has a device.",
            ping->wire.interface);
    else if (error == EBUSY && node_directory(directory) &&
             claim_is_others(directory, if_nametoindex(ping->wire.interface), why, sizeof why))
        complain("ping: %s", why);
    else
        complain("ping: This process can't receive answers on %s: %s. SOFTVERBS_LOG=error says more.",
                 ping->wire.interface, strerror(error));
    return EXIT_USAGE;
}

static int look_up(struct ping *ping)
{
    char why[256];
    struct addrinfo hints = {.ai_family = ping->family, .ai_socktype = SOCK_DGRAM}, *found;
    int error = getaddrinfo(ping->name, "4791", &hints, &found);
    if (error)
        return complain_and(EXIT_USAGE, "ping: There is no host \"%s\": %s.", ping->name, gai_strerror(error));
    error = ping_wire_open(&ping->wire, found, ping->interface, why, sizeof why);
    freeaddrinfo(found);
    if (error)
        complain("ping: %s", why);
    return error ? EXIT_USAGE : EXIT_OK;
}

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int run(struct ping *ping)
{
    if (look_up(ping))
        return EXIT_USAGE;
    int error = join(ping);
    if (error)
        return refuse(ping, error);
    catch_interrupts();
    if (!ping->as_json)
        screen_print(stdout, "ping %s (%s) from %s by %s, UDP port 4791", ping->name, ping->wire.there, ping->wire.here,
                     ping->wire.interface);
    ping_path_begin(&ping->path, &ping->wire);
    ping->next = clock_now();
    if (ping->deadline)
        ping->deadline += ping->next;
    go_on(ping);
    gsi_client_close(ping->client);
    ping_wire_close(&ping->wire);
    return ping->as_json ? emit_summary(ping) : summarize(ping);
}

/* Seconds, also a fraction; NANOS_NEVER: the text is not a positive number. */
static nanos read_seconds(const char *text)
{
    static const struct text_unit second[] = {{"", 1}, {NULL, 0}};
    double seconds;
    return text_quantity(text, second, 1e6, &seconds) && seconds > 0 ? (nanos)(seconds * 1e9) : NANOS_NEVER;
}

/* NULL, or what is wrong with the option. */
static const char *read_option(struct ping *ping, int option)
{
    nanos *times[] = {['i'] = &ping->interval, ['W'] = &ping->timeout, ['w'] = &ping->deadline};
    if (option == 'n')
        ping->interface = optarg;
    else if (option == '4' || option == '6')
        ping->family = option == '4' ? AF_INET : AF_INET6;
    else if (option == 'q' || option == 'j')
        ping->quiet = true, ping->as_json |= option == 'j';
    else if (option == 'u')
        ping->datagrams = true;
    else if (option == 'p')
        return text_number(optarg, 1, UINT16_MAX, &ping->port) ? NULL : "A port is a number from 1 to 65535.";
    else if (option == 'c')
        return text_number(optarg, 0, UINT64_MAX, &ping->count) ? NULL : "A count is a number.";
    else if ((*times[option] = read_seconds(optarg)) == NANOS_NEVER)
        return "A time is a number of seconds above 0.";
    return NULL;
}

static int ping_command_run(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("net", 'n'),      OPTION("ipv4", '4'),     OPTION("ipv6", '6'),
                                            VALUED("count", 'c'),    VALUED("interval", 'i'), VALUED("timeout", 'W'),
                                            VALUED("deadline", 'w'), VALUED("port", 'p'),     OPTION("udp", 'u'),
                                            OPTION("quiet", 'q'),    OPTION("json", 'j'),     OPTIONS_END};
    static struct ping ping = {.count = 4, .interval = NANOS_SECOND, .timeout = 2 * NANOS_SECOND};
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1) {
        const char *wrong = read_option(&ping, option);
        if (wrong)
            return command_misused(command, "%s", wrong);
    }
    if (argc - optind != 1)
        return command_misused(command, "It needs the address or name of a host.");
    if (ping.datagrams && !ping.port)
        return command_misused(command, "-u makes the port one of UDP, and needs -p PORT.");
    ping.name = argv[optind];
    return run(&ping);
}

const struct command ping_command = {
    .name = "ping",
    .arguments = "[OPTIONS] ADDRESS",
    .summary = "Ask another host whether RoCEv2 is there, and what the path carries",
    .letters = "46c:i:W:w:p:uq",
    .help = "  --net IF              send by this network interface, not by the route's\n"
            "  -4, -6                use the address of this IP version\n"
            "  -c, --count N         send N requests, 4 by default; 0: until interrupted\n"
            "  -i, --interval S      wait S seconds between requests, 1 by default\n"
            "  -W, --timeout S       wait S seconds for the last answer, 2 by default\n"
            "  -w, --deadline S      end after S seconds in any case\n"
            "  -p, --port N          also ask whether a program of librdmacm listens there\n"
            "  -u, --udp             ask for datagrams at that port (RDMA_PS_UDP)\n"
            "  -q, --quiet           print the result only\n"
            "  --json                print the result as an object (docs/reference/json.md)\n"
            "\n"
            "The connection manager of the endpoint gets a request for a service that does\n"
            "not exist, and rejects it; programs that run there notice nothing. Times are\n"
            "from request to answer. The path MTU is what routers report, and with softverbs\n"
            "at the other end it is proven by packets of that size that come back. No\n"
            "privilege is needed.\n"
            "\n"
            "Exit status: 0 when the endpoint answered, 1 when it did not or no program\n"
            "listens at the port, 2 when it could not be asked.\n",
    .run = ping_command_run,
};
