/* rdma: shows softverbs' devices as iproute2's program of that name shows the kernel's RDMA devices.
 *
 * `softverbs run` puts it at the front of $PATH, as the real one asks the kernel over netlink. The real one, later in
 * $PATH, gets the commands that this one does not know (rdma system, monitor, link add). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "rdma/answers.h"
#include "softverbs_version.h"

enum { FAILED = 1, NO_PROGRAM = 127 };

struct options {
    bool json, pretty, details;
};

static int complain(const char *text)
{
    fprintf(stderr, "rdma (of softverbs): %s\n", text);
    return FAILED;
}

static bool is_this_program(const char *path)
{
    struct stat self, other;
    return !stat("/proc/self/exe", &self) && !stat(path, &other) && self.st_dev == other.st_dev &&
           self.st_ino == other.st_ino;
}

/* Becomes the next program of this name in $PATH; returns if no such program can be started. */
static void become_the_real_one(char **argv)
{
    const char *path = getenv("PATH");
    char file[4096];
    for (const char *at = path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"; *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        int need = snprintf(file, sizeof file, "%.*s/rdma", (int)length, at);
        if (length && need > 0 && need < (int)sizeof file && !access(file, X_OK) && !is_this_program(file))
            execv(file, argv);
        at += length;
    }
}

static int not_ours(char **argv)
{
    become_the_real_one(argv);
    complain("It shows link, dev, resource and statistic only, and there is no other rdma in $PATH for the rest.");
    return NO_PROGRAM;
}

/* iproute2 takes the beginning of a word for the word. */
static bool means(const char *word, const char *whole)
{
    return word && *word && !strncmp(word, whole, strlen(word));
}

/* Reads letters, such as -jp, or a word, such as --json. False: an option that we don't know. */
static bool read_option(const char *text, struct options *options)
{
    if (text[1] == '-' || !strcmp(text, "-json") || !strcmp(text, "-pretty") || !strcmp(text, "-details")) {
        const char *name = text + 1 + (text[1] == '-');
        options->json |= means(name, "json");
        options->pretty |= means(name, "pretty");
        options->details |= means(name, "details");
        return means(name, "json") || means(name, "pretty") || means(name, "details");
    }
    for (const char *letter = text + 1; *letter; letter++) {
        if (!strchr("jpdr", *letter))
            return false;
        options->json |= *letter == 'j';
        options->pretty |= *letter == 'p';
        options->details |= *letter == 'd';
    }
    return text[1];
}

/* Prints a line, "link soft0/1 KEY VALUE ..." or "0: soft0: KEY VALUE ...", with a blank at its end like iproute2's. */
static void print_row(const json_t *row, enum answer_style style)
{
    const char *name = json_string_value(json_object_get(row, "ifname")), *key;
    json_t *value;
    if (style == ANSWER_NUMBERED)
        printf("%lld: %s: ", json_integer_value(json_object_get(row, "ifindex")), name);
    else
        printf(style == ANSWER_LINK ? "link %s/1 " : "dev %s ", name);
    json_object_foreach ((json_t *)row, key, value) {
        if (!strcmp(key, "ifindex") || !strcmp(key, "ifname") || !strcmp(key, "port") || !strcmp(key, "netdev_ifindex"))
            continue;
        if (json_is_string(value))
            printf("%s %s ", key, json_string_value(value));
        else
            printf("%s %lld ", key, json_integer_value(value));
    }
    puts("");
}

static int print(json_t *rows, enum answer_style style, struct options options)
{
    size_t i;
    json_t *row;
    if (options.json) {
        json_dumpf(rows, stdout, options.pretty ? JSON_INDENT(4) : JSON_COMPACT);
        puts("");
    } else {
        json_array_foreach (rows, i, row)
            print_row(row, style);
    }
    json_decref(rows);
    return EXIT_SUCCESS;
}

/* "soft0", "soft0/1", "soft0/-" select; the word "dev" or "link" may precede them. NULL in *device: all. */
static bool read_device(char **words, char name[64], const char **device)
{
    *device = NULL;
    if (*words && (means(*words, "dev") || means(*words, "link")))
        words++;
    if (*words) {
        char *port = strchr(*words, '/');
        if (port && strcmp(port, "/1") && strcmp(port, "/-"))
            return false;
        snprintf(name, 64, "%.*s", (int)strcspn(*words, "/"), *words);
        *device = name;
        words++;
    }
    return !*words;
}

static int answer_of(char **words, char **argv, struct options options)
{
    static const char *const objects[] = {"link", "dev", "resource", "statistic"};
    const char *device, *kind = NULL;
    char why[512], name[64];
    unsigned object = 0;
    while (object < 4 && *words && !means(*words, objects[object]))
        object++;
    words += *words ? 1 : 0;
    if (*words && (means(*words, "show") || means(*words, "list")))
        words++;
    if (object == 2 && *words && answers_have(*words))
        kind = *words++;
    if (object == 4 || !read_device(words, name, &device) || (device && !config_find(device)))
        return not_ours(argv);
    enum answer_style style;
    json_t *rows = answers_make(objects[object], kind, device, &style, why, sizeof why);
    return rows ? print(rows, style, options) : complain(why);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    char **words = argv + 1;
    for (; *words && **words == '-'; words++) {
        if (!strcmp(*words, "-V") || means(*words, "-Version"))
            return printf("rdma utility, softverbs %s\n", SOFTVERBS_VERSION) < 0;
        if (!read_option(*words, &options))
            return not_ours(argv);
    }
    /* options may also follow, as in `rdma link show -j` */
    char *kept[16];
    size_t count = 0;
    for (; *words && count < 15; words++)
        if (**words != '-')
            kept[count++] = *words;
        else if (!read_option(*words, &options))
            return not_ours(argv);
    kept[count] = NULL;
    return count && !*words ? answer_of(kept, argv, options) : not_ours(argv);
}
