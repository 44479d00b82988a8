#include "top/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/port.h"
#include "print/screen.h"
#include "why/story.h"

enum { LINE = 512 };

/* --- a list */

/* Returns true unless the column has moved out at the left. */
static bool is_shown(const struct page *page, size_t column)
{
    size_t names = page->choice->list->names;
    return column < names || column >= names + page->moved;
}

/* Appends the cell, words at the left and numbers at the right of their column. False: no room for it. */
static bool append(const struct page *page, size_t column, const char *cell, char line[LINE])
{
    const struct top_column *kind = &page->choice->list->columns[column];
    size_t used = strlen(line), width = kind->width, gap = used > 0;
    bool word = kind->kind == TOP_TEXT && kind->form != TOP_NUMBER;
    if (used + gap + width > page->columns || used + gap + width >= LINE)
        return false;
    snprintf(line + used, LINE - used, word ? "%*s%-*s" : "%*s%*s", (int)gap, "", (int)width, cell);
    return true;
}

static void write_titles(const struct page *page, char line[LINE])
{
    const struct top_list *list = page->choice->list;
    *line = 0;
    for (size_t i = 0; i < list->count; i++) {
        char title[TOP_CELL], marked[TOP_CELL + 2];
        top_title(&list->columns[i], page->choice->totals, title);
        bool sorts = i == page->choice->sort && strlen(title) < list->columns[i].width;
        snprintf(marked, sizeof marked, "%s%s", title, !sorts ? "" : page->choice->ascending ? "^" : "v");
        if (is_shown(page, i) && !append(page, i, marked, line))
            return;
    }
}

static void write_row(const struct page *page, const struct top_row *row, char line[LINE])
{
    *line = 0;
    for (size_t i = 0; i < page->choice->list->count; i++) {
        char cell[TOP_CELL];
        top_cell(row, page->choice->list, i, cell);
        if (is_shown(page, i) && !append(page, i, cell, line))
            return;
    }
}

static bool has_failed(const struct top_row *row, const struct top_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->columns[i].title, "STATE") && !strcmp(row->texts[i], "ERR"))
            return true;
    return false;
}

void page_list(const struct page *page, page_line *show, void *context)
{
    char line[LINE];
    write_titles(page, line);
    show(context, TERMINAL_REVERSE, line);
    for (size_t i = page->from; i < page->count && i - page->from < page->most; i++) {
        const struct top_row *row = &page->rows[i];
        write_row(page, row, line);
        show(context,
             i == page->selected                   ? TERMINAL_REVERSE
             : has_failed(row, page->choice->list) ? TERMINAL_RED
                                                   : TERMINAL_PLAIN,
             line);
    }
}

size_t page_hidden(const struct page *page)
{
    char line[LINE] = "";
    for (size_t i = 0; i < page->choice->list->count; i++)
        if (is_shown(page, i) && !append(page, i, "", line))
            return page->choice->list->count - i;
    return 0;
}

/* --- the sum */

/* Counts over all processes that answered: their devices and packets for no queue pair. */
static double count_all(const struct seen *seen, unsigned counter)
{
    double sum = 0;
    for (size_t i = 0; i < seen->count; i++)
        if (seen->processes[i].own.traffic.of)
            sum += seen_counted(&seen->processes[i], counter);
    return sum;
}

void page_sum(const struct top_look *before, const struct top_look *now, char *text, size_t size)
{
    size_t processes = now->seen.count, pairs = 0;
    double seconds = before->reports ? now->seconds - before->seconds : 0;
    double bytes = count_all(&now->seen, SEEN_SUM(BYTES_SENT)) - count_all(&before->seen, SEEN_SUM(BYTES_SENT));
    double repeated = count_all(&now->seen, EVENT_RETRANSMITTED) - count_all(&before->seen, EVENT_RETRANSMITTED);
    for (size_t i = 0; i < processes; i++)
        pairs += facts_count(&now->seen.processes[i].own.qps);
    size_t used = (size_t)snprintf(text, size, "%zu process%s, %zu queue pair%s", processes, processes == 1 ? "" : "es",
                                   pairs, pairs == 1 ? "" : "s");
    if (seconds > 0 && bytes >= 0 && repeated >= 0 && used < size)
        snprintf(text + used, size - used, ", %.1f MB/s, %.0f sent again", bytes / seconds / 1e6, repeated);
}

/* --- a queue pair */

/* Shows the text in lines that are cut at blanks. */
static void show_wrapped(page_line *show, void *context, size_t columns, const char *text)
{
    char *wrapped = NULL, *rest = NULL;
    size_t size;
    FILE *stream = open_memstream(&wrapped, &size);
    if (!stream)
        return;
    screen_wrap(stream, columns < SCREEN_NARROWEST ? SCREEN_NARROWEST : columns, 0, 2, text);
    fclose(stream);
    for (char *line = strtok_r(wrapped, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        show(context, TERMINAL_PLAIN, line);
    free(wrapped);
}

static const json_t *find_pair(const struct top_look *look, long pid, long qp)
{
    struct facts_qp pair;
    for (size_t i = 0; i < look->seen.count; i++) {
        const struct facts_process *process = &look->seen.processes[i].own;
        for (size_t k = 0; (!pid || process->pid.value == (uint64_t)pid) && k < facts_count(&process->qps); k++)
            if (facts_read_at(&facts_of_qp, &process->qps, k, &pair) && pair.number.value == (uint64_t)qp)
                return json_array_get(facts_json(&process->qps), k);
    }
    return NULL;
}

/* Shows the facts that are words and numbers, and the counters. */
static void show_fields(const json_t *pair, page_line *show, void *context, size_t columns)
{
    char line[LINE];
    for (const struct fact *fact = facts_of_qp.facts; fact < facts_of_qp.facts + facts_of_qp.count; fact++) {
        const json_t *value = json_object_get(pair, fact->name);
        if (json_is_string(value))
            snprintf(line, sizeof line, "%-16s %.400s", fact->name, json_string_value(value));
        else if (json_is_integer(value))
            snprintf(line, sizeof line, fact->form == FACT_QPN ? "%-16s 0x%llx" : "%-16s %lld", fact->name,
                     (long long)json_integer_value(value));
        else
            continue;
        show_wrapped(show, context, columns, line);
    }
    char numbers[2048], counted_line[2100];
    port_list(facts_member(&facts_of_qp, pair, offsetof(struct facts_qp, traffic)), false, numbers, sizeof numbers);
    snprintf(counted_line, sizeof counted_line, "counted: %s", *numbers ? numbers : "nothing");
    show_wrapped(show, context, columns, counted_line);
}

static void show_story(const char *directory, long pid, long qp, page_line *show, void *context, size_t columns)
{
    const struct story_question question = {.directory = directory, .qp = (uint32_t)qp, .pid = (int)pid};
    json_t *stories = story_collect(&question), *story, *sentence;
    size_t i, j;
    struct facts_told told;
    show(context, TERMINAL_BOLD, "Story");
    json_array_foreach (stories, i, story) {
        facts_read(&facts_of_told, story, &told);
        json_array_foreach (facts_json(&told.sentences), j, sentence)
            show_wrapped(show, context, columns, facts_text(json_string_value(sentence)));
    }
    if (!json_array_size(stories))
        show(context, TERMINAL_PLAIN, "No story is known.");
    json_decref(stories);
}

void page_pair(const char *directory, const struct top_look *look, long pid, long qp, page_line *show, void *context,
               size_t columns)
{
    const json_t *pair = find_pair(look, pid, qp);
    char title[80];
    snprintf(title, sizeof title, "Queue pair 0x%lx of process %ld", (unsigned long)qp, pid);
    show(context, TERMINAL_BOLD, title);
    if (pair)
        show_fields(pair, show, context, columns);
    else
        show(context, TERMINAL_PLAIN, "It is gone: it was destroyed, or its process has ended.");
    show_story(directory, pid, qp, show, context, columns);
}

/* --- help */

static void show_columns(const char *title, const struct top_list *list, page_line *show, void *context)
{
    char line[LINE];
    show(context, TERMINAL_BOLD, title);
    for (size_t i = 0; i < list->count; i++) {
        snprintf(line, sizeof line, "  %-9s %s", list->columns[i].title, list->columns[i].meaning);
        show(context, TERMINAL_PLAIN, line);
    }
}

void page_help(page_line *show, void *context)
{
    static const char *const keys[] = {
        "  Tab       processes, or queue pairs",
        "  Enter     of a process its queue pairs; of a queue pair all that is known",
        "  Esc       back",
        "  < >       sort by the column to the left or right;  r  the other way round",
        "  arrows    choose a row, move the columns;  PgUp, PgDn, Home, End",
        "  /         show only rows with these letters in a name, number, peer or state",
        "  t         totals instead of rates;  space  hold what is shown",
        "  q         end",
    };
    show(context, TERMINAL_BOLD, "Keys");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        show(context, TERMINAL_PLAIN, keys[i]);
    show_columns("Columns of processes", &top_processes, show, context);
    show_columns("Columns of queue pairs", &top_pairs, show, context);
}
