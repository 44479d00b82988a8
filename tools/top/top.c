/* softverbs top: processes and queue pairs as they change, on the whole screen of a terminal, or as tables for a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text/text.h"
#include "command.h"
#include "print/screen.h"
#include "report/meeting.h"
#include "top/collector.h"
#include "top/interactive.h"
#include "top/page.h"

/* The options. */
struct options {
    struct meeting meeting;
    struct top_choice choice;
    const char *sort; /* NULL: "OUT/s" */
    double interval;
    uint64_t count; /* of tables; 0: without end */
    bool batch;
};

/* --- tables for a file */

static void print_line(void *context, enum terminal_style style, const char *text)
{
    puts(text);
}

static void print_table(const struct options *options, const struct top_look *before, const struct top_look *now)
{
    char text[256], clock[16];
    time_t time_now = time(NULL);
    size_t width = screen_width(stdout), count;
    struct top_row *rows = top_rows(before, now, &options->choice, &count);
    struct page page = {.choice = &options->choice, .rows = rows, .count = count, .most = count, .selected = count};
    page.columns = width > TOP_COLUMNS_MOST * TOP_CELL ? TOP_COLUMNS_MOST * TOP_CELL : width;
    strftime(clock, sizeof clock, "%H:%M:%S", localtime(&time_now));
    page_sum(before, now, text, sizeof text);
    printf("%s, %s\n", clock, text);
    page_list(&page, print_line, NULL);
    puts("");
    free(rows);
}

/* Prints until the reader has gone, or `count` times. A rate needs two looks, so the first table follows one interval;
 * totals need one look. */
static int print_tables(const struct options *options)
{
    char why[COLLECTOR_WHY];
    struct top_look before = {0}, now;
    bool found = options->choice.totals || collector_look(options->meeting.directory, &before, why);
    for (uint64_t i = 0; found && (!options->count || i < options->count); i++) {
        if (i || !options->choice.totals)
            collector_rest(options->interval);
        found = collector_look(options->meeting.directory, &now, why);
        if (!found)
            break;
        print_table(options, &before, &now);
        top_look_end(&before);
        before = now;
        if (i + 1 != options->count && !output_flush()) /* main() flushes the last table, and reports errors */
            break;
    }
    top_look_end(&before);
    if (!found)
        complain("%s", why);
    return found ? EXIT_OK : EXIT_NEGATIVE;
}

/* --- the command */

/* False: the text is not a number of seconds from 0.1 to 3600. */
static bool take_interval(const char *text, double *interval)
{
    static const struct text_unit second[] = {{"", 1}, {NULL, 0}};
    return text_quantity(text, second, 3600, interval) && *interval >= 0.1;
}

static int take_option(const struct command *command, int option, struct options *options)
{
    if (option == 'i' && !take_interval(optarg, &options->interval))
        return command_misused(command, "\"%s\" is not an interval: 0.1 to 3600 seconds.", optarg);
    if (option == 'n' && !text_number(optarg, 1, UINT64_MAX, &options->count))
        return command_misused(command, "\"%s\" is not a number of tables.", optarg);
    options->batch |= option == 'b' || option == 'n';
    options->choice.totals |= option == 't';
    options->sort = option == 's' ? optarg : options->sort;
    options->choice.filter = option == 'f' ? optarg : options->choice.filter;
    if (option == 'q')
        options->choice.list = &top_pairs;
    return 0;
}

static void list_titles(const struct top_list *list, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < list->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", list->columns[i].title);
}

static int choose_sort(const struct command *command, struct options *options)
{
    char titles[256];
    const struct top_list *list = options->choice.list;
    options->choice.sort = top_column_find(list, options->sort ? options->sort : "OUT/s");
    if (options->choice.sort < list->count)
        return 0;
    list_titles(list, titles, sizeof titles);
    return command_misused(command, "There is no column \"%s\" here, but %s.", options->sort, titles);
}

static int check(const struct command *command, struct options *options, const char *argument)
{
    const char *why;
    if (argument)
        return command_misused(command, "It takes no argument \"%s\".", argument);
    if (options->meeting.as_json)
        return command_misused(command, "\"softverbs stat --json\" has the numbers as JSON.");
    if (!options->batch && !terminal_is_able(&why))
        return command_misused(command, "%c%s. \"softverbs top --batch\" prints tables.",
                               *why - ('a' - 'A') * (*why >= 'a'), why + 1);
    int status = choose_sort(command, options);
    return status ? status : meeting_find(command, &options->meeting);
}

static int run_top(const struct command *command, int argc, char **argv)
{
    static const struct option table[] = {OPTION("batch", 'b'),  VALUED("count", 'n'),  VALUED("interval", 'i'),
                                          VALUED("sort", 's'),   VALUED("filter", 'f'), OPTION("qps", 'q'),
                                          OPTION("totals", 't'), MEETING_OPTIONS};
    static struct options options = {.choice = {.list = &top_processes, .filter = ""}, .interval = 1};
    int status = 0;
    for (int option; !status && (option = meeting_option(command, argc, argv, table, &options.meeting)) != -1;)
        status = take_option(command, option, &options);
    if (!status)
        status = check(command, &options, optind < argc ? argv[optind] : NULL);
    return status          ? status
           : options.batch ? print_tables(&options)
                           : interactive_run(options.meeting.directory, &options.choice, options.interval);
}

const struct command top_command = {
    .name = "top",
    .arguments = "[OPTIONS]",
    .summary = "Show processes and queue pairs as they send, like top(1)",
    .help = "  -q, --qps         begin with queue pairs instead of processes\n"
            "  -s, --sort COLUMN sort by this column, such as OUT/s or rnr\n"
            "  -f, --filter TEXT show only rows with this text in a name, number, peer or\n"
            "                    state\n"
            "  -t, --totals      show counters until now instead of rates\n"
            "  -i, --interval S  update every S seconds, 0.1 to 3600; 1 by default\n"
            "  -b, --batch       print tables on standard output instead of a screen\n"
            "  -n, --count N     end after N tables; with --batch\n" MEETING_HELP_DIR "\n"
            "On a terminal the key \"h\" shows the keys and explains the columns, \"q\" ends. Tab\n"
            "switches between processes and queue pairs; Enter shows all of one, with its\n"
            "story. Rates are per second, in units of 1000. A process whose name begins with\n"
            "\"silent:\" is stopped, hangs, or is another user's. \"softverbs show\" and\n"
            "\"softverbs stat\" have the same values; programs use \"softverbs stat --json\".\n",
    .letters = "qs:f:ti:bn:",
    .run = run_top,
};
