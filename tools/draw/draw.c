/* softverbs draw: a capture as a page that one can look at, with a ladder of packets for each two queue pairs. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"
#include "command.h"
#include "draw/page.h"
#include "print/screen.h"

enum { MOST = 1000000 };

struct wish {
    struct records_choice choice;
    const char *output; /* NULL: the capture's name and ".html"; "-": standard output */
    uint32_t qp;
};

static bool read_seconds(const char *text, double *seconds)
{
    static const struct text_unit second[] = {{"", 1}, {NULL, 0}};
    return text_quantity(text, second, DBL_MAX, seconds);
}

/* Returns NULL, or a sentence that says what is wrong with the value. */
static const char *take_option(struct wish *wish, int option, const char *value)
{
    uint64_t number = 0;
    if (option == 'o')
        wish->output = value;
    if (option == 'f' && !read_seconds(value, &wish->choice.from))
        return "--from needs seconds, such as 1.5.";
    if (option == 't' && !read_seconds(value, &wish->choice.to))
        return "--to needs seconds, such as 1.5.";
    if (option == 'q') {
        if (!text_number_or_hex(value, 0, 0xffffff, &number))
            return "--qp needs the number of a queue pair, such as 0x12.";
        wish->qp = (uint32_t)number;
    }
    if (option == 'l') {
        if (!text_number_or_hex(value, 1, UINT32_MAX / 2, &number))
            return "--limit needs a number of packets.";
        wish->choice.most = number;
    }
    return NULL;
}

/* Returns true for `softverbs draw FILE >page.html`: standard output gets the page, and no summary is written. */
static bool is_page(int descriptor)
{
    char link[32], path[PATH_MAX];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 5 && !memcmp(path + length - 5, ".html", 5) && !fstat(descriptor, &status) &&
           S_ISREG(status.st_mode);
}

static char *name_output(const struct wish *wish, const char *capture)
{
    char *name;
    const char *base = basename(capture);
    if (wish->output || is_page(STDOUT_FILENO))
        return strdup(wish->output ? wish->output : "-");
    const char *dot = strrchr(base, '.');
    int length = dot && (!strcmp(dot, ".pcapng") || !strcmp(dot, ".pcap") || !strcmp(dot, ".rec")) ? (int)(dot - base)
                                                                                                   : (int)strlen(base);
    return asprintf(&name, "%.*s.html", length, base) < 0 ? NULL : name;
}

static bool has_qp(const struct flows *flows, uint32_t qp)
{
    for (size_t i = 0; i < flows->pair_count; i++)
        if (flows->pairs[i].qp[0] == qp || flows->pairs[i].qp[1] == qp)
            return true;
    return qp == LOOKUP_NONE;
}

/* Readable for its owner only, as a capture is. */
static FILE *open_output(const char *name)
{
    int descriptor = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return descriptor < 0 ? NULL : fdopen(descriptor, "w");
}

static int write_page(const char *name, const struct page *page)
{
    bool standard = !strcmp(name, "-");
    FILE *out = standard ? stdout : open_output(name);
    if (out)
        page_write(out, page);
    if (standard)
        return EXIT_OK; /* main() complains if standard output can't be written */
    bool failed = !out || ferror(out);
    if (out && fclose(out))
        failed = true;
    if (failed)
        complain("%s can't be written: %s.", name, strerror(errno));
    return failed ? EXIT_NEGATIVE : EXIT_OK;
}

static void tell_counts(const char *name, const struct page *page)
{
    const struct ladder *ladder = page->ladder;
    size_t repeats = 0, lost = 0;
    for (size_t i = 0; i < ladder->count; i++) {
        repeats += ladder->list[i].marks >> MARK_REPEAT & 1;
        lost += !!(ladder->list[i].marks & (1u << MARK_LOST | 1u << MARK_MISSING));
    }
    size_t packets = ladder->count - page->records->happenings, pairs = page->flows->pair_count;
    screen_print(stdout, "%s: %zu packet%s of %zu pair%s of queue pairs, %zu sent again, %zu lost", name, packets,
                 packets == 1 ? "" : "s", pairs, pairs == 1 ? "" : "s", repeats, lost);
    if (page->records->left_out)
        printf("%zu packets more were left out; see --limit\n", page->records->left_out);
}

static int draw_records(const struct wish *wish, struct records *records, const char *title)
{
    struct flows flows;
    struct ladder ladder;
    char *name = name_output(wish, title);
    records_sort(records);
    flows_find(&flows, records);
    ladder_find(&ladder, records, &flows);
    struct page page = {records, &flows, &ladder, basename(title), wish->qp};
    int status = EXIT_NEGATIVE;
    if (!has_qp(&flows, wish->qp))
        complain("No packet belongs to queue pair 0x%x.", wish->qp);
    else if (name)
        status = write_page(name, &page);
    if (status == EXIT_OK && strcmp(name, "-"))
        tell_counts(name, &page);
    free(name);
    ladder_free(&ladder);
    flows_free(&flows);
    return status;
}

static int draw_files(const struct wish *wish, char **files, int count)
{
    struct records records = {0};
    bool fine = true;
    int status = EXIT_NEGATIVE;
    for (int i = 0; i < count; i++)
        fine &= records_read(&records, files[i], (uint32_t)i, &wish->choice);
    if (records.count)
        status = draw_records(wish, &records, files[0]);
    else if (fine)
        complain(records.recordings ? "%s: nothing is in it that can be drawn: no queue pair sent or received."
                                    : "%s: no packet of RoCEv2 or InfiniBand is in it",
                 files[0]);
    records_free(&records);
    return fine ? status : EXIT_NEGATIVE;
}

static int run_draw(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {VALUED("output", 'o'), VALUED("qp", 'q'),    VALUED("from", 'f'),
                                            VALUED("to", 't'),     VALUED("limit", 'l'), OPTIONS_END};
    struct wish wish = {.choice = {.to = DBL_MAX, .most = MOST}, .qp = LOOKUP_NONE};
    for (int option; (option = command_option(command, argc, argv, options)) != -1;) {
        const char *wrong = take_option(&wish, option, optarg);
        if (wrong)
            return command_misused(command, "%s", wrong);
    }
    if (optind == argc)
        return command_misused(command, "It needs the name of a capture.");
    return draw_files(&wish, argv + optind, argc - optind);
}

const struct command draw_command = {
    .name = "draw",
    .arguments = "[OPTIONS] FILE...",
    .summary = "Draw a capture or recording as a page for a browser",
    .help = "  -o, --output FILE     write this file; by default the capture's name, ending\n"
            "                        in .html, in this directory; - is standard output,\n"
            "                        as it is by default where that is a file in .html\n"
            "  --qp NUMBER           draw packets of this queue pair only\n"
            "  --from SECONDS        draw from this time on, since the first packet\n"
            "  --to SECONDS          draw until this time\n"
            "  --limit NUMBER        draw at most so many packets, 1000000 by default\n"
            "\n"
            "FILE is a capture (pcap or pcapng, as softverbs decode reads them) or a\n"
            "recording of softverbs run --record; several, such as the captures of two\n"
            "hosts, become one page. The page is one HTML file that loads nothing: for each\n"
            "two queue pairs a ladder of packets with times and PSNs, messages with their\n"
            "acknowledgments, losses and repeats with their causes, and the timers; of a\n"
            "recording also work requests and completions. It can be zoomed, filtered and\n"
            "searched; a click on a packet shows all fields. It has no payload.\n"
            "docs/how-to/draw.md\n"
            "\n"
            "Exit status: 0, or 1 when a file cannot be read to its end (the part that was\n"
            "read is drawn), or has no packet of RoCEv2 or InfiniBand.\n",
    .letters = "o:",
    .run = run_draw,
};
