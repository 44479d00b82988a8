#include "script/names.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <string.h>

#include "calls/objects.def"
#include "script/rule.h"

struct named {
    const char *name;
    int number;
};

static const struct named opcodes[] = {
#define OPCODE(name) {#name, IBV_WR_##name},
#include "script/words.def"
};

static const struct named signals[] = {
#define SIGNAL(name) {#name, SIG##name},
#include "script/words.def"
};

static const struct named errors[] = {
#define ERROR(name) {#name, name},
#include "script/words.def"
};

static const struct named statuses[] = {
#define STATUS(name) {#name, IBV_WC_##name},
#include "script/words.def"
};

static const struct named forged[] = {
#define FORGED(name, syndrome) {#name, SCRIPT_FORGED_##name},
#include "script/words.def"
};

static const struct named objects[] = {
    {"qp", 0},
#define OBJECT(kind, type, word, where) {word, 0},
#define ALIKE(kind)
    CALLS_OBJECTS(OBJECT, ALIKE){"device", 0},
    {"context", 0},
    {"identifier", 0},
    {"buf", 0},
};

#define LIST(list) .all = list, .count = sizeof list / sizeof *list

static const struct {
    const struct named *all;
    size_t count;
    const char *prefix, *kind;
} lists[NAMES_KINDS] = {
    [NAMES_OPCODES] = {LIST(opcodes), "IBV_WR_", "opcode"}, [NAMES_SIGNALS] = {LIST(signals), "SIG", "signal"},
    [NAMES_ERRORS] = {LIST(errors), "", "errno"},           [NAMES_STATUSES] = {LIST(statuses), "IBV_WC_", "status"},
    [NAMES_FORGED] = {LIST(forged), "", "packet"},          [NAMES_OBJECTS] = {LIST(objects), "", "kind of object"},
};

const char *names_kind(enum names names)
{
    return lists[names].kind;
}

const char *names_after_prefix(enum names names, const char *word)
{
    size_t prefix = strlen(lists[names].prefix);
    return strncmp(word, lists[names].prefix, prefix) != 0 ? word : word + prefix;
}

bool names_number(enum names names, const char *word, int *number)
{
    const char *name = names_after_prefix(names, word);
    for (size_t i = 0; i < lists[names].count; i++)
        if (!strcmp(lists[names].all[i].name, name)) {
            *number = lists[names].all[i].number;
            return true;
        }
    return false;
}

const char *names_name(enum names names, int number)
{
    for (size_t i = 0; i < lists[names].count; i++)
        if (lists[names].all[i].number == number)
            return lists[names].all[i].name;
    return NULL;
}

const char *names_example(enum names names)
{
    return lists[names].all[0].name;
}

void names_suggest(enum names names, struct suggestion *suggestion)
{
    for (size_t i = 0; i < lists[names].count; i++)
        suggest_try(suggestion, lists[names].all[i].name);
}
