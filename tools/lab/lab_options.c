#include "lab/lab_options.h"

#include <stdio.h>
#include <string.h>

int lab_set_hosts(const struct command *command, struct lab_plan *plan, const char *text)
{
    char why[256];
    return lab_plan_hosts(plan, text, why, sizeof why) ? 0 : command_misused(command, "--hosts: %s", why);
}

int lab_add_link(const struct command *command, struct lab_plan *plan, const char *words)
{
    if (plan->link_count == LAB_LINKS_MOST)
        return command_misused(command, "--link: At most %d; a file for --topology may have more.", LAB_LINKS_MOST);
    plan->links[plan->link_count++] = words;
    return 0;
}

/* Applies a change such as "h1-h2:delay=1ms" or "delay=1ms", which changes all links. */
static bool change_link(struct network *network, const char *text, char *why, size_t size)
{
    char target[64];
    size_t length = strcspn(text, ":");
    if (!text[length])
        return network_change(network, "all", text, why, size);
    snprintf(target, sizeof target, "%.*s", (int)(length < sizeof target ? length : 0), text);
    return network_change(network, target, text + length + 1, why, size);
}

int lab_plan_links(const struct command *command, const struct lab_plan *plan, struct network *network)
{
    char why[768];
    if (plan->topology && !network_read(network, plan->topology, why, sizeof why))
        return command_misused(command, "--topology: %s", why);
    for (unsigned i = 0; i < plan->link_count; i++)
        if (!change_link(network, plan->links[i], why, sizeof why))
            return command_misused(command, "--link: %s", why);
    return 0;
}

int lab_plan_network(const struct command *command, const struct lab_plan *plan, struct network *network)
{
    if (!network_make(network, plan))
        return command_misused(command, "There is not enough memory for so many hosts.");
    return lab_plan_links(command, plan, network);
}
