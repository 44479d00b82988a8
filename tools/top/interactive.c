#include "top/interactive.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report/meeting.h"
#include "top/collector.h"
#include "top/page.h"
#include "top/terminal.h"

enum { FILTER_MOST = 40, TEXT = 512, ABOVE = 2, WAIT_MILLISECONDS = 250, LINES_MOST = 400 };

enum showing { SHOWING_LIST, SHOWING_PAIR, SHOWING_HELP };

/* The lines of a page that may be longer than the screen. */
struct text_page {
    char *lines[LINES_MOST];
    enum terminal_style styles[LINES_MOST];
    size_t count, from;
};

struct top {
    const char *directory, *why; /* why: a sentence that is shown instead of the sums; NULL: the last look succeeded */
    struct top_choice choice;
    char filter[FILTER_MOST + 1];
    bool typing, held, ends;
    enum showing showing;
    struct top_look before, now;
    size_t moved, from;
    long pid, qp; /* of the row that is chosen */
    long of;      /* the process whose queue pairs alone are listed; 0: all */
    struct text_page page;
    size_t columns, lines;
};

/* --- rows */

/* Keeps the rows of one process, if one was asked for. */
static size_t keep_process(struct top_row *rows, size_t count, long pid)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!pid || rows[i].pid == pid)
            rows[kept++] = rows[i];
    return kept;
}

static struct top_row *make_rows(const struct top *top, size_t *count)
{
    struct top_row *rows = top_rows(&top->before, &top->now, &top->choice, count);
    *count = keep_process(rows, *count, top->choice.list->pairs ? top->of : 0);
    return rows;
}

/* The index of the chosen row; `count`: it is not among the rows. */
static size_t find_chosen(const struct top *top, const struct top_row *rows, size_t count)
{
    size_t i = 0;
    while (i < count && (rows[i].pid != top->pid || rows[i].qp != top->qp))
        i++;
    return i;
}

static size_t room(const struct top *top)
{
    return top->lines > ABOVE + 2 ? top->lines - ABOVE - 1 : 1;
}

/* --- what is shown */

static void show_line(void *context, enum terminal_style style, const char *text)
{
    terminal_line(style, text);
}

static void show_head(const struct top *top)
{
    char sum[TEXT], head[2 * TEXT];
    page_sum(&top->before, &top->now, sum, sizeof sum);
    const char *state = top->held ? " [held]" : "";
    snprintf(head, sizeof head, "softverbs top: %s%s%s%s", top->why ? top->why : sum, state,
             *top->filter || top->typing ? "  /" : "", top->filter);
    terminal_line(TERMINAL_BOLD, head);
}

static void show_foot(const struct top *top, size_t hidden)
{
    char foot[TEXT];
    if (top->typing)
        snprintf(foot, sizeof foot, "Letters to look for, then Enter: %s_", top->filter);
    else if (hidden)
        snprintf(foot, sizeof foot, "h help, q end, Tab %s, Enter more, -> %zu more columns",
                 top->choice.list->pairs ? "processes" : "queue pairs", hidden);
    else
        snprintf(foot, sizeof foot, "h help, q end, Tab %s, Enter more",
                 top->choice.list->pairs ? "processes" : "queue pairs");
    terminal_line(TERMINAL_REVERSE, foot);
}

/* Moves what is shown so that the chosen row is in it. */
static void follow(struct top *top, size_t selected, size_t count)
{
    size_t most = room(top);
    if (selected < count && selected < top->from)
        top->from = selected;
    if (selected < count && selected >= top->from + most)
        top->from = selected - most + 1;
    if (top->from + most > count)
        top->from = count > most ? count - most : 0;
}

static void show_list(struct top *top)
{
    size_t count;
    struct top_row *rows = make_rows(top, &count);
    size_t selected = find_chosen(top, rows, count);
    follow(top, selected, count);
    struct page page = {&top->choice, rows, count, top->from, room(top), top->moved, top->columns, selected};
    show_head(top);
    page_list(&page, show_line, NULL);
    size_t shown = count - top->from < page.most ? count - top->from : page.most;
    if (!count)
        terminal_line(TERMINAL_PLAIN,
                      top->now.seen.count ? "No row has these letters, or the table is empty." : MEETING_NONE);
    for (size_t i = count ? shown : 1; i < page.most; i++)
        terminal_line(TERMINAL_PLAIN, "");
    show_foot(top, page_hidden(&page));
    free(rows);
}

static void add_line(void *context, enum terminal_style style, const char *text)
{
    struct text_page *page = context;
    char *copy = page->count < LINES_MOST ? strdup(text) : NULL;
    if (!copy)
        return;
    page->styles[page->count] = style;
    page->lines[page->count++] = copy;
}

static void empty(struct text_page *page)
{
    while (page->count)
        free(page->lines[--page->count]);
}

static void make_page(struct top *top)
{
    empty(&top->page);
    if (top->showing == SHOWING_HELP)
        page_help(add_line, &top->page);
    else if (top->showing == SHOWING_PAIR)
        page_pair(top->directory, &top->now, top->pid, top->qp, add_line, &top->page, top->columns);
}

static void show_page(struct top *top)
{
    size_t most = top->lines > 1 ? top->lines - 1 : 1, last = top->page.count > most ? top->page.count - most : 0;
    if (top->page.from > last)
        top->page.from = last;
    for (size_t i = 0; i < most; i++) {
        size_t line = top->page.from + i;
        bool there = line < top->page.count;
        terminal_line(there ? top->page.styles[line] : TERMINAL_PLAIN, there ? top->page.lines[line] : "");
    }
    terminal_line(TERMINAL_REVERSE, last ? "Esc back, q end, arrows and PgDn for more" : "Esc back, q end");
}

static void show(struct top *top)
{
    terminal_size(&top->columns, &top->lines);
    if (top->showing == SHOWING_LIST)
        show_list(top);
    else
        show_page(top);
    terminal_show();
}

/* --- keys */

static void move_chosen(struct top *top, long steps)
{
    size_t count;
    struct top_row *rows = make_rows(top, &count);
    size_t at = find_chosen(top, rows, count);
    long to = at == count ? (steps > 0 ? 0 : (long)count - 1) : (long)at + steps;
    if (count) {
        to = to < 0 ? 0 : to >= (long)count ? (long)count - 1 : to;
        top->pid = rows[to].pid;
        top->qp = rows[to].qp;
    }
    free(rows);
}

static void move_sort(struct top *top, int step)
{
    size_t count = top->choice.list->count;
    top->choice.sort = (top->choice.sort + count + (size_t)step) % count;
}

/* Changes the list, sorted by the column of the same title if the other list has it. */
static void change_list(struct top *top, const struct top_list *list)
{
    const char *title = top->choice.list->columns[top->choice.sort].title;
    size_t same = top_column_find(list, title);
    top->choice.sort = same < list->count ? same : top_column_find(list, "OUT/s");
    top->choice.list = list;
    top->moved = top->from = 0;
    top->of = 0;
}

static void open_page(struct top *top, enum showing showing)
{
    top->showing = showing;
    top->page.from = 0;
    make_page(top);
}

/* Opens the list of the queue pairs of a process, or the page with all of a queue pair. */
static void enter(struct top *top)
{
    size_t count;
    struct top_row *rows = make_rows(top, &count);
    bool chosen = find_chosen(top, rows, count) < count;
    free(rows);
    if (!chosen)
        move_chosen(top, 1); /* the first */
    else if (top->choice.list->pairs) {
        open_page(top, SHOWING_PAIR);
    } else {
        change_list(top, &top_pairs);
        top->of = top->pid;
    }
}

static void go_back(struct top *top)
{
    if (*top->filter)
        *top->filter = 0;
    else if (top->choice.list->pairs)
        change_list(top, &top_processes);
}

static void take_letter(struct top *top, int key)
{
    size_t length = strlen(top->filter);
    top->typing = key != '\r' && key != '\n' && key != TERMINAL_ESCAPE;
    if (key == TERMINAL_ESCAPE)
        *top->filter = 0;
    else if ((key == 127 || key == '\b') && length)
        top->filter[length - 1] = 0;
    else if (key < 127 && isprint(key) && length < FILTER_MOST) {
        top->filter[length] = (char)key;
        top->filter[length + 1] = 0;
    }
}

static void press_in_list(struct top *top, int key)
{
    long most = (long)room(top);
    static const long all = 1 << 30;
    long steps = key == TERMINAL_UP || key == 'k'     ? -1
                 : key == TERMINAL_DOWN || key == 'j' ? 1
                 : key == TERMINAL_PAGE_UP            ? -most
                 : key == TERMINAL_PAGE_DOWN          ? most
                 : key == TERMINAL_HOME               ? -all
                 : key == TERMINAL_END                ? all
                                                      : 0;
    if (steps)
        move_chosen(top, steps);
    top->moved += key == TERMINAL_RIGHT && top->moved + top->choice.list->names + 1 < top->choice.list->count;
    top->moved -= key == TERMINAL_LEFT && top->moved;
    if (key == '\r' || key == '\n')
        enter(top);
    if (key == '\t')
        change_list(top, top->choice.list->pairs ? &top_processes : &top_pairs);
    if (key == TERMINAL_ESCAPE)
        go_back(top);
    if (key == '<' || key == '>')
        move_sort(top, key == '<' ? -1 : 1);
    top->choice.ascending ^= key == 'r';
    top->choice.totals ^= key == 't';
    top->held ^= key == ' ';
    top->typing = key == '/';
}

static void press_in_page(struct top *top, int key)
{
    size_t step = key == TERMINAL_PAGE_UP || key == TERMINAL_PAGE_DOWN ? room(top) : 1;
    if (key == TERMINAL_DOWN || key == TERMINAL_PAGE_DOWN || key == 'j')
        top->page.from += step;
    else if (key == TERMINAL_UP || key == TERMINAL_PAGE_UP || key == 'k')
        top->page.from -= step < top->page.from ? step : top->page.from;
    else if (key == TERMINAL_ESCAPE || key == '\r' || key == '\n' || key == 'h')
        top->showing = SHOWING_LIST;
}

static void press(struct top *top, int key)
{
    if (key == TERMINAL_CLOSED)
        top->ends = true;
    else if (top->typing)
        take_letter(top, key);
    else if (key == 'q')
        top->ends = true;
    else if (top->showing != SHOWING_LIST)
        press_in_page(top, key);
    else if (key == 'h' || key == '?')
        open_page(top, SHOWING_HELP);
    else
        press_in_list(top, key);
}

/* --- looks */

static void take_look(struct top *top, struct collector *collector)
{
    static char why[COLLECTOR_WHY];
    struct top_look look;
    bool taken = collector_take(collector, &look, why);
    top->why = *why ? why : NULL;
    if (!taken || top->held) {
        top_look_end(&look);
        return;
    }
    top_look_end(&top->before);
    top->before = top->now;
    top->now = look;
    if (top->showing == SHOWING_PAIR)
        make_page(top);
}

int interactive_run(const char *directory, const struct top_choice *choice, double interval)
{
    struct top top = {.directory = directory, .choice = *choice};
    struct collector *collector = collector_begin(directory, interval);
    if (!collector)
        return complain_and(EXIT_NEGATIVE, "No thread can be started.");
    snprintf(top.filter, sizeof top.filter, "%s", choice->filter);
    top.choice.filter = top.filter;
    terminal_begin();
    while (!top.ends) {
        show(&top);
        int key = terminal_wait(collector_descriptor(collector), WAIT_MILLISECONDS);
        take_look(&top, collector);
        if (key != TERMINAL_NONE)
            press(&top, key);
    }
    terminal_end();
    empty(&top.page);
    top_look_end(&top.before);
    top_look_end(&top.now);
    return EXIT_OK;
}
