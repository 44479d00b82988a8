/* softverbs demo: two processes exchange messages; with --all a tour: a wrong key, a loss, and what went over the wire.
 */
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "command.h"
#include "demo/session.h"
#include "diag/clean.h"
#include "facts/seen.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { LINES_MOST = 14, LINE_SIZE = 1024 };

/* Prints up to `most` lines of a file of the session, indented, and then the number of lines left out. */
static void print_file(const char *name, unsigned most)
{
    char line[LINE_SIZE];
    FILE *file = fopen(name, "re");
    unsigned count = 0;
    while (file && fgets(line, sizeof line, file))
        if (count++ < most) {
            line[strcspn(line, "\n")] = 0;
            clean_text(line);
            printf("    %s\n", line);
        }
    if (count > most)
        printf("    ... and %u lines more\n", count - most);
    if (file)
        fclose(file);
}

/* --- the parts: each runs commands, shows them with what they print, and returns whether that was as it must be */

static bool show_exchange(struct session *session)
{
    struct session_pair pair = {.program = session->pingpong,
                                .arguments = session->installed ? WORDS("-c", "-g", "0", "-s", "65536", "-n", "1000")
                                                                : WORDS("-s", "65536", "-n", "1000")};
    if (!session_pair(session, &pair))
        return false;
    puts("\n  The client prints:\n");
    print_file("client", LINES_MOST);
    puts("\n  It worked: two processes sent 1000 messages of 65536 bytes to each other and back over a reliable\n"
         "  connection, and found the right data. No RDMA device and no kernel module was involved; root is not\n"
         "  needed.");
    return true;
}

static bool show_wrong_key(struct session *session)
{
    struct session_pair pair = {.program = session->own_pingpong,
                                .options = WORDS("--story", "story"),
                                .client_arguments = WORDS("-w"),
                                .status = 1};
    if (!session_pair(session, &pair))
        return false;
    puts("\n  The client writes into the memory of the server with a key that the server never gave to it, and "
         "prints:\n");
    print_file("client", LINES_MOST);
    puts("\n  An adapter says no more. softverbs keeps the story of each queue pair that fails, from both ends:\n");
    if (session_run(session, "why", WORDS("softverbs", "why", "--from", "story")))
        return false;
    print_file("why", LINES_MOST);
    return true;
}

/* A counter's value in the report that `run --counters` has written. */
static unsigned long long count_of(unsigned counter)
{
    json_t *report = json_load_file("counters", 0, NULL), *list = json_pack("[o?]", report);
    struct seen seen = seen_begin(list);
    double counted = seen.count ? seen_counted(&seen.processes[0], counter) : 0;
    seen_end(&seen);
    json_decref(list);
    return (unsigned long long)counted;
}

static bool show_loss(struct session *session)
{
    struct session_pair pair = {.program = session->own_pingpong,
                                .options = WORDS("--fault", "drop=5%,seed=7"),
                                .client_options = WORDS("--counters", "counters", "--capture", "wire.pcapng"),
                                .arguments = WORDS("-n", "100")};
    if (!session_pair(session, &pair))
        return false;
    puts("\n  The link between both loses one frame in twenty. The client prints:\n");
    print_file("client", LINES_MOST);
    printf(
        "\n  %llu frames of the client were lost, and it sent %llu frames again. The program noticed nothing of it.\n",
        count_of(EVENT_FRAME_LOST), count_of(EVENT_RETRANSMITTED));
    return true;
}

static bool show_packets(struct session *session)
{
    if (session_run(session, "decoded", WORDS("softverbs", "decode", "wire.pcapng")))
        return false;
    puts("\n  The packets of that exchange, which Wireshark opens too:\n");
    print_file("decoded", LINES_MOST);
    return true;
}

static const struct part {
    const char *title;
    bool (*show)(struct session *);
} parts[] = {
    {"Two processes exchange messages", show_exchange},
    {"A wrong key is explained", show_wrong_key},
    {"A lost frame is sent again", show_loss},
    {"The packets are decoded", show_packets},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* --- the command */

static void print_head(const struct session *session)
{
    const struct passwd *user = getpwuid(geteuid());
    puts("softverbs: RDMA verbs without RDMA hardware.\n");
    printf("  You are %s. No kernel module is loaded for this.\n", user ? user->pw_name : "a user without a name");
    if (session->installed)
        printf("  The program is %s, as the distribution installed it, unmodified.\n\n", session->pingpong);
    else
        puts("  The program is a ping-pong that comes with softverbs: ibv_rc_pingpong is not installed (package\n"
             "  ibverbs-utils, libibverbs-utils or rdma-core).\n");
}

static void print_end(unsigned shown)
{
    puts("\nNext: put \"softverbs run --\" in front of your own program, for example");
    puts("  softverbs run -- ibv_devinfo");
    puts("  softverbs run -- ib_write_bw -F       and in another terminal: softverbs run -- ib_write_bw -F 127.0.0.1");
    if (shown < PARTS)
        puts("\"softverbs demo --all\" shows a wrong key explained, a lost frame, and the packets.");
}

static int show_failure(const struct session *session)
{
    fflush(stdout);
    complain("The demonstration failed: %s \"softverbs doctor\" looks for the cause.", session->why);
    static const char *const outputs[] = {"server", "client", "why", "decoded"};
    for (unsigned i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        printf("  %s:\n", outputs[i]);
        print_file(outputs[i], LINES_MOST);
    }
    return EXIT_NEGATIVE;
}

static int run_demo(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("all", 'a'), OPTIONS_END};
    unsigned wanted = 1;
    for (int option; (option = command_option(command, argc, argv, options)) != -1;)
        wanted = option == 'a' ? PARTS : wanted;
    if (optind < argc)
        return command_misused(command, "\"%s\" is not an argument of this command.", argv[optind]);
    struct session session;
    if (!session_begin(&session))
        return complain_and(EXIT_NEGATIVE, "demo: %s", session.why);
    print_head(&session);
    bool works = true;
    for (unsigned i = 0; i < wanted && works; i++) {
        if (wanted > 1)
            printf("%s%u of %u: %s\n\n", i ? "\n" : "", i + 1, wanted, parts[i].title);
        works = parts[i].show(&session);
    }
    int status = works ? EXIT_OK : show_failure(&session);
    if (works)
        print_end(wanted);
    session_end(&session);
    return status;
}

const struct command demo_command = {
    .name = "demo",
    .arguments = "[--all]",
    .summary = "Show that it works: two processes exchange messages",
    .help = "  --all             a tour: also a wrong key explained, a lost frame sent again,\n"
            "                    and the packets decoded\n"
            "\n"
            "Runs the distribution's ibv_rc_pingpong, or where that is not installed a\n"
            "ping-pong that comes with softverbs, and shows each command that it runs. The\n"
            "files are in a directory below $TMPDIR, or /tmp, that is removed at the end.\n"
            "\n"
            "Exit status: 0, or 1 when a part of it failed.\n",
    .run = run_demo,
};
