#include "last.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/user.h"
#include "diag/clean.h"
#include "diag/last_lines.h"
#include "facts/read.h"
#include "ipc/node.h"
#include "print/emit.h"
#include "print/screen.h"
#include "report/around_process.h"

struct file {
    struct last_lines_head head;
    struct last_line lines[LAST_LINES];
};

/* False: the name is another file's, or the file another user's, which only root reads. */
static bool read_file(int directory, const char *name, struct file *file)
{
    struct stat status;
    memset(file, 0, sizeof *file);
    if (strncmp(name, LAST_LINES_PREFIX, sizeof LAST_LINES_PREFIX - 1))
        return false;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ours = !fstat(fd, &status) && S_ISREG(status.st_mode) && (!geteuid() || user_owns_file(fd, "", &status));
    ssize_t size = ours ? read(fd, file, sizeof *file) : 0;
    close(fd);
    return size > (ssize_t)sizeof file->head && file->head.version == LAST_LINES_VERSION && file->head.pid > 0 &&
           !memcmp(file->head.name, "softverbs lines", sizeof file->head.name);
}

static int by_number(const void *one, const void *other)
{
    uint64_t first = ((const struct last_line *)one)->number, second = ((const struct last_line *)other)->number;
    return (first > second) - (first < second);
}

/* The text without the prefix that each line has on a terminal, which says nothing new here. */
static const char *without_name(const char *text)
{
    const char *end = strstr(text, "] ");
    return !strncmp(text, "softverbs: ", 11) && end ? end + 2 : text;
}

static json_t *line_of(struct last_line *line)
{
    char when[40];
    time_t seconds = line->time / 1000000000;
    struct tm parts;
    line->text[sizeof line->text - 1] = 0;
    clean_text(line->text);
    if (!localtime_r(&seconds, &parts) || !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S%z", &parts))
        *when = 0;
    return json_pack("{s:s, s:o}", "time", when, "text", emit_text(without_name(line->text)));
}

static bool is_around(const char *name)
{
    const char *slot = strrchr(name, '-');
    return slot && strtoul(slot + 1, NULL, 10) == LAST_LINES_AROUND;
}

static json_t *process_of(struct file *file, bool ended)
{
    json_t *lines = json_array();
    file->head.program[sizeof file->head.program - 1] = 0;
    clean_text(file->head.program);
    qsort(file->lines, LAST_LINES, sizeof *file->lines, by_number);
    for (int i = 0; i < LAST_LINES; i++)
        if (file->lines[i].number)
            json_array_append_new(lines, line_of(&file->lines[i]));
    return json_pack("{s:i, s:o, s:b, s:I, s:o}", "pid", (int)file->head.pid, "program", emit_text(file->head.program),
                     "ended", ended, "wrote", (json_int_t)(file->lines[LAST_LINES - 1].time), "lines", lines);
}

static void mark_alive(const struct node_entry *entry, void *list)
{
    size_t i;
    json_t *process;
    struct facts_left left;
    json_array_foreach ((json_t *)list, i, process) {
        facts_read(&facts_of_left, process, &left);
        if (entry->alive && left.pid.value == (uint64_t)entry->pid)
            json_object_set_new(process, "ended", json_false());
    }
}

static json_int_t wrote(const json_t *process)
{
    return json_integer_value(json_object_get(process, "wrote"));
}

/* Keeps the list in order: the process that wrote last is the first. */
static void insert(json_t *list, json_t *process)
{
    size_t at = json_array_size(list);
    while (at && wrote(json_array_get(list, at - 1)) < wrote(process))
        at--;
    json_array_insert_new(list, at, process);
}

json_t *last_collect(const char *directory, int pid)
{
    struct file file;
    char why[256];
    json_t *list = json_array(), *process;
    size_t i;
    struct dirent *entry;
    DIR *stream = opendir(directory);
    while (stream && (entry = readdir(stream)))
        if (read_file(dirfd(stream), entry->d_name, &file) && (!pid || file.head.pid == pid))
            insert(list, process_of(&file, !(is_around(entry->d_name) && around_process_listens(file.head.pid))));
    if (stream)
        closedir(stream);
    node_list(directory, mark_alive, list, why, sizeof why);
    json_array_foreach (list, i, process)
        json_object_del(process, "wrote");
    return list;
}

static void print_line(const json_t *json)
{
    struct facts_line line;
    facts_read(&facts_of_line, json, &line);
    const char *when = facts_text(line.time);
    size_t at = (size_t)printf("    %.8s ", strlen(when) > 11 ? when + 11 : "");
    screen_wrap(stdout, screen_width(stdout), at, at, line.text);
}

void last_print(const json_t *list)
{
    size_t i, k;
    json_t *json, *line;
    struct facts_left process;
    json_array_foreach ((json_t *)list, i, json) {
        facts_read(&facts_of_left, json, &process);
        printf("%d %s%s\n", (int)process.pid.value, process.program, facts_is(&process.ended) ? " (ended)" : "");
        json_array_foreach (facts_json(&process.lines), k, line)
            print_line(line);
    }
}
