/* softverbs-counter DEVICE DIRECTORY/NAME: prints the number that a file of counters of a port reads. The preloaded
 * library (tools/shim/counter.h) runs it when a program opens such a file. It prints nothing else, and nothing if there
 * is no such file or the processes can't be asked. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/port.h"
#include "ipc/node.h"
#include "report/reports.h"

struct wanted {
    const char *path;
    bool found;
};

static void print_wanted(void *context, bool hardware, const char *name, uint64_t value)
{
    struct wanted *wanted = context;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", hardware ? "hw_counters" : "counters", name);
    if (strcmp(path, wanted->path) != 0)
        return;
    printf("%llu\n", (unsigned long long)value);
    wanted->found = true;
}

int main(int argc, char **argv)
{
    char directory[NODE_DIRECTORY_MAX + 1], why[512];
    if (argc != 3 || !node_directory(directory))
        return EXIT_FAILURE;
    struct wanted wanted = {.path = argv[2]};
    json_t *reports = reports_collect(directory, why, sizeof why),
           *counts = reports ? port_sum(reports, argv[1]) : NULL;
    if (counts)
        port_describe(counts, print_wanted, &wanted);
    json_decref(counts);
    json_decref(reports);
    return wanted.found ? EXIT_SUCCESS : EXIT_FAILURE;
}
