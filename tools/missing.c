#include <stdbool.h>
#include <stdio.h>

#include "abi/unsupported.h"
#include "command.h"
#include "print/emit.h"
#include "print/table.h"

/* The output: a table, or a list of JSON. */
struct gaps {
    struct table table;
    json_t *list; /* NULL: as a table */
};

static void add_gap(const char *name, const char *why, void *context)
{
    struct gaps *gaps = context;
    if (gaps->list) {
        json_array_append_new(gaps->list, json_pack("{s:s, s:s}", "name", name, "why", why));
        return;
    }
    table_add(&gaps->table, "%s", name);
    table_add(&gaps->table, "%s", why);
}

/* Other interfaces that programs find on a machine with adapters, and not here, or not all of them. */
static const struct {
    const char *name, *why;
} others[] = {
    {"netlink", "NETLINK_RDMA stays the kernel's; rdma(8) is answered under softverbs run (link, dev, resource and "
                "statistic show), programs that ask netlink themselves are not"},
    {"umad", "/dev/infiniband/umad* and issm*: management datagrams of InfiniBand fabrics (libibumad, "
             "infiniband-diags, opensm); there is no subnet manager"},
    {"uverbs",
     "ioctl and write on /dev/infiniband/uverbs*: only libibverbs is served, not programs that bring their own"},
    {"xrc", "ibv_open_qp of an XRC queue pair that another process has made: a queue pair ends with its process "
            "(reason 388)"},
    {"sysfs", "files below /sys/class/infiniband are read only: nothing can be set by writing to them"},
    {"gpudirect", "adapters that use memory of GPUs by themselves (nvidia-peermem): CUDA copies NVIDIA's, AMD's can't "
                  "be registered; dma-buf of files and udmabuf works"},
};

static int missing(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {OPTION("provider", 'p'), OPTION("json", 'j'), OPTIONS_END};
    struct gaps gaps = {.table = {.columns = 2, .wraps = true}};
    bool provider = false;
    int option;
    while ((option = command_option(command, argc, argv, options)) != -1)
        if (option == 'p')
            provider = true;
        else if (!gaps.list)
            gaps.list = json_array();
    if (optind < argc)
        return command_misused(command, "It takes no argument.");
    unsupported_each(provider, add_gap, &gaps);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        add_gap(others[i].name, others[i].why, &gaps);
    if (gaps.list)
        emit(gaps.list);
    else
        table_print(&gaps.table, stdout);
    return EXIT_OK;
}

const struct command missing_command = {
    .name = "missing",
    .arguments = "[--provider] [--json]",
    .summary = "List what is not there: functions that answer EOPNOTSUPP, and more",
    .help = "  --provider        list the interface of vendors' plug-ins, too, which stays\n"
            "                    empty: it exists so that programs linked against such\n"
            "                    plug-ins load\n"
            "  --json            print a JSON list (docs/reference/json.md)\n",
    .run = missing,
};
