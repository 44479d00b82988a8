#include "lab/network/quality.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

const struct quality quality_perfect = {.queue = 1 << 20};

enum { MTU_LEAST = 1280, MTU_MOST = 65521 };

static const struct text_unit rates[] = {{"bit", 1}, {"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0}};
static const struct text_unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct text_unit shares[] = {{"%", 0.01}, {"", 1}, {NULL, 0}};
static const struct text_unit sizes[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {NULL, 0}};

/* --- the items, each with what it changes */

struct change {
    struct quality quality;
    uint32_t mtu;
};

#define ECN_STANDARD "64K"

/* ITEM(name, units, standard, most, action, example). units: NULL: it has no value; standard: the value if the text has
 * no value; NULL: a value is needed. */
#define ALL_ITEMS(ITEM)                                                                                                \
    ITEM(rate, rates, NULL, 1e13, change->quality.rate = value, "rate=10Gbit")                                         \
    ITEM(delay, times, NULL, 1e10, change->quality.delay = (int64_t)value, "delay=5us")                                \
    ITEM(jitter, times, NULL, 1e10, change->quality.jitter = (int64_t)value, "jitter=1us")                             \
    ITEM(sockets, times, NULL, 1e10, change->quality.sockets = (int64_t)value, "sockets=2ms")                          \
    ITEM(loss, shares, NULL, 1, change->quality.loss = value, "loss=0.1%")                                             \
    ITEM(queue, sizes, NULL, 1 << 30, change->quality.queue = value, "queue=1M")                                       \
    ITEM(ecn, sizes, ECN_STANDARD, 1 << 30, change->quality.ecn = value, "ecn or ecn=" ECN_STANDARD)                   \
    ITEM(mtu, sizes, NULL, MTU_MOST, change->mtu = (uint32_t)value, "mtu=9000")                                        \
    ITEM(down, NULL, "", 0, change->quality.down = true, "down")                                                       \
    ITEM(up, NULL, "", 0, change->quality.down = false, "up")                                                          \
    ITEM(clear, NULL, "", 0, change->quality = quality_perfect, "clear")

#define SETTER(name, units, standard, most, action, example)                                                           \
    static void set_##name(struct change *change, double value)                                                        \
    {                                                                                                                  \
        action;                                                                                                        \
    }
ALL_ITEMS(SETTER)

static const struct {
    const char *name;
    const struct text_unit *units;
    const char *standard;
    double most;
    void (*set)(struct change *, double value);
    const char *example;
} items[] = {
#define ROW(name, units, standard, most, action, example) {#name, units, standard, most, set_##name, example},
    ALL_ITEMS(ROW)};

enum { ITEMS = sizeof items / sizeof *items };

static bool refuse_item(const char *item, char *why, size_t size)
{
    size_t used = (size_t)snprintf(why, size, "\"%s\" is nothing that a link can have. It can have ", item);
    for (size_t i = 0; i < ITEMS && used < size; i++)
        used += (size_t)snprintf(why + used, size - used, "%s%s", i ? ", " : "", items[i].example);
    return false;
}

static bool change_item(struct change *change, char *item, char *why, size_t size)
{
    char whole[64];
    double value = 0;
    snprintf(whole, sizeof whole, "%s", item);
    char *text = strchr(item, '=');
    if (text)
        *text++ = 0;
    size_t i = 0;
    while (i < ITEMS && strcmp(items[i].name, item))
        i++;
    const char *given = text || i == ITEMS ? text : items[i].standard;
    if (i == ITEMS || !given || (text && !items[i].units) ||
        (items[i].units && !text_quantity(given, items[i].units, items[i].most, &value)))
        return refuse_item(whole, why, size);
    items[i].set(change, value);
    return true;
}

bool quality_change(struct quality *quality, const char *text, uint32_t *mtu, char *why, size_t size)
{
    char words[QUALITY_WORDS], *rest = words;
    struct change change = {*quality, *mtu};
    if (snprintf(words, sizeof words, "%s", text) >= (int)sizeof words || !*text)
        return refuse_item(*words ? "so much" : "", why, size);
    for (char *item; (item = strsep(&rest, ","));)
        if (!change_item(&change, item, why, size))
            return false;
    if (change.mtu && change.mtu < MTU_LEAST)
        return SAY_AND(false, why, size, "mtu=%u is not from %d to %d.", change.mtu, MTU_LEAST, MTU_MOST);
    *quality = change.quality;
    *mtu = change.mtu;
    return true;
}

void quality_print(const struct quality *quality, char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    if (quality->down)
        used += (size_t)snprintf(text, size, " down");
    if (quality->rate > 0)
        used += (size_t)snprintf(text + used, size - used, " rate=%gMbit", quality->rate / 1e6);
    if (quality->delay || quality->jitter)
        used += (size_t)snprintf(text + used, size - used, " delay=%gus jitter=%gus", (double)quality->delay / 1e3,
                                 (double)quality->jitter / 1e3);
    if (quality->sockets)
        used += (size_t)snprintf(text + used, size - used, " sockets=%gus", (double)quality->sockets / 1e3);
    if (quality->loss > 0)
        used += (size_t)snprintf(text + used, size - used, " loss=%g%%", quality->loss * 100);
    if (quality->ecn > 0)
        used += (size_t)snprintf(text + used, size - used, " ecn=%gK", quality->ecn / 1024);
    if (!used)
        snprintf(text, size, " perfect");
}
