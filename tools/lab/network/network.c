#include "lab/network/network.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

static struct channel *between(const struct network *network, unsigned from, unsigned to)
{
    return &network->between[from * network->plan->count + to];
}

bool network_make(struct network *network, const struct lab_plan *plan)
{
    *network = (struct network){.plan = plan, .is_plain = true};
    network->between = calloc((size_t)plan->count * plan->count + 1, sizeof *network->between);
    if (!network->between)
        return false;
    for (unsigned i = 0; i < plan->count * plan->count; i++)
        network->between[i].quality = quality_perfect;
    for (unsigned i = 0; i < LAB_HOSTS_MOST; i++)
        network->out[i].quality = network->in[i].quality = network->rising[i].quality = network->falling[i].quality =
            quality_perfect;
    return true;
}

unsigned network_path(struct network *network, unsigned from, unsigned to, struct channel *path[NETWORK_PATH_MOST])
{
    unsigned count = 0;
    bool crosses = network->leaf[from] != network->leaf[to];
    if (crosses && !network->has_core)
        return 0;
    path[count++] = &network->out[from];
    path[count++] = between(network, from, to);
    if (crosses) {
        path[count++] = &network->rising[network->leaf[from]];
        path[count++] = &network->falling[network->leaf[to]];
    }
    path[count++] = &network->in[to];
    return count;
}

/* --- changes */

static bool change(struct network *network, struct channel *channel, const char *words, char *why, size_t size)
{
    network->is_plain = false;
    return quality_change(&channel->quality, words, &network->mtu, why, size);
}

/* The frame meets delay and loss once, where it leaves its host; both ends of the way have rate, queue and ECN. */
static bool change_all(struct network *network, const char *words, char *why, size_t size)
{
    for (unsigned i = 0; i < network->plan->count; i++) {
        if (!change(network, &network->out[i], words, why, size))
            return false;
        network->in[i].quality.rate = network->out[i].quality.rate;
        network->in[i].quality.ecn = network->out[i].quality.ecn;
        network->in[i].quality.queue = network->out[i].quality.queue;
    }
    return true;
}

static bool change_core(struct network *network, const char *words, char *why, size_t size)
{
    if (!network->has_core)
        return SAY_AND(false, why, size, "There is no core: all hosts have one switch.");
    for (unsigned i = 0; i < network->plan->count; i++) {
        struct channel *rising = &network->rising[network->leaf[i]], *falling = &network->falling[network->leaf[i]];
        falling->quality = rising->quality;
        if (!change(network, rising, words, why, size))
            return false;
        falling->quality.rate = rising->quality.rate;
        falling->quality.ecn = rising->quality.ecn;
    }
    return true;
}

/* The host sees that its link is down; the other qualities only change what happens to its frames. */
static bool change_host(struct network *network, unsigned host, const char *words, char *why, size_t size)
{
    struct quality before = network->out[host].quality;
    uint32_t mtu = network->mtu;
    if (!quality_change(&before, words, &mtu, why, size))
        return false;
    network->port_down[host] = before.down;
    network->mtu = mtu;
    bool plain = network->is_plain && (!strcmp(words, "down") || !strcmp(words, "up"));
    bool changed = plain || (change(network, &network->out[host], words, why, size) &&
                             change(network, &network->in[host], words, why, size));
    network->out[host].quality.down = network->in[host].quality.down = before.down;
    return changed;
}

static bool change_way(struct network *network, unsigned from, unsigned to, bool both, const char *words, char *why,
                       size_t size)
{
    if (from == to)
        return SAY_AND(false, why, size, "No link leads from a host to itself.");
    return change(network, between(network, from, to), words, why, size) &&
           (!both || change(network, between(network, to, from), words, why, size));
}

bool network_change(struct network *network, const char *target, const char *words, char *why, size_t size)
{
    const struct lab_plan *plan = network->plan;
    char first[64];
    size_t length = strcspn(target, "->");
    snprintf(first, sizeof first, "%.*s", (int)(length < sizeof first ? length : 0), target);
    unsigned from = lab_plan_find(plan, first), to = target[length] ? lab_plan_find(plan, target + length + 1) : 0;
    if (!target[length] && from < plan->count)
        return change_host(network, from, words, why, size);
    if (target[length] && from < plan->count && to < plan->count)
        return change_way(network, from, to, target[length] == '-', words, why, size);
    if (!strcmp(target, "all"))
        return change_all(network, words, why, size);
    if (!strcmp(target, "core"))
        return change_core(network, words, why, size);
    return SAY_AND(false, why, size, "There is no link \"%s\"; h1-h2, h1>h2, h1, all and core are some.", target);
}

/* --- topologies */

static bool add_leaf(struct network *network, char *hosts, bool core, unsigned leaf, char *why, size_t size)
{
    if (leaf == LAB_HOSTS_MOST)
        return SAY_AND(false, why, size, "a lab has at most %d leaves.", LAB_HOSTS_MOST);
    network->is_plain = false;
    network->has_core |= core;
    for (char *host; (host = strsep(&hosts, " \t"));) {
        unsigned which = lab_plan_find(network->plan, host);
        if (!*host)
            continue;
        if (which == network->plan->count)
            return SAY_AND(false, why, size, "the lab has no host \"%s\".", host);
        network->leaf[which] = leaf;
    }
    return true;
}

/* Reads a line that begins without blanks; it may be empty. */
static bool read_line(struct network *network, char *line, unsigned *leaf, char *why, size_t size)
{
    char *rest = line, *word = strsep(&rest, " \t");
    if (rest && (!strcmp(word, "leaf") || !strcmp(word, "pair")))
        return add_leaf(network, rest, *word == 'l', (*leaf)++, why, size);
    if (rest && !strcmp(word, "core"))
        return change_core(network, rest, why, size);
    char *target = strsep(&rest, " \t");
    if (rest && !strcmp(word, "link"))
        return network_change(network, target, rest, why, size);
    return SAY_AND(!*word, why, size,
                   "\"%s\" is not a line of a topology: leaf, pair, core or link, and what belongs to it.", word);
}

bool network_read(struct network *network, const char *path, char *why, size_t size)
{
    char line[512], said[512];
    unsigned number = 0, leaf = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return SAY_AND(false, why, size, "\"%s\" can't be read: %s.", path, strerror(errno));
    bool right = true;
    while (right && fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = 0;
        number++;
        right = read_line(network, line + strspn(line, " \t"), &leaf, said, sizeof said);
    }
    if (!right)
        snprintf(why, size, "%s, line %u: %s", path, number, said);
    fclose(file);
    return right;
}

/* --- what there is to see */

__attribute__((format(printf, 4, 5))) static size_t print_channel(const struct channel *channel, char *text,
                                                                  size_t size, const char *format, ...)
{
    char name[64], words[QUALITY_WORDS];
    va_list rest;
    quality_print(&channel->quality, words, sizeof words);
    if (!strcmp(words, " perfect") && !channel->lost && !channel->marked)
        return 0;
    va_start(rest, format);
    vsnprintf(name, sizeof name, format, rest);
    va_end(rest);
    int length = snprintf(text, size, "%s:%s, %llu frames, %llu lost, %llu marked\n", name, words,
                          (unsigned long long)channel->frames, (unsigned long long)channel->lost,
                          (unsigned long long)channel->marked);
    return (size_t)length < size ? (size_t)length : size - 1;
}

void network_print(const struct network *network, char *text, size_t size)
{
    const struct lab_plan *plan = network->plan;
    size_t used = 0;
    *text = 0;
    for (unsigned i = 0; i < plan->count; i++) {
        used += print_channel(&network->out[i], text + used, size - used, "%s>", plan->hosts[i]);
        used += print_channel(&network->in[i], text + used, size - used, ">%s", plan->hosts[i]);
        used += print_channel(&network->rising[i], text + used, size - used, "leaf %u>core", i + 1);
        used += print_channel(&network->falling[i], text + used, size - used, "core>leaf %u", i + 1);
        for (unsigned to = 0; to < plan->count; to++)
            used += print_channel(between(network, i, to), text + used, size - used, "%s>%s", plan->hosts[i],
                                  plan->hosts[to]);
    }
    if (!used)
        snprintf(text, size, "All links are perfect.\n");
}
