#include "config/limits.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config/complaint.h"

const struct limits limits_standard = {
#define LIMIT(name, standard, least, most) .name = standard,
#include "config/limits.def"
    .max_mtu = 4096,
};

static const struct {
    const char *name;
    size_t offset;
    uint32_t least, most;
} names[] = {
#define LIMIT(name, standard, least, most) {#name, offsetof(struct limits, name), least, most},
#include "config/limits.def"
};

enum { NAMES = sizeof names / sizeof *names };

static unsigned find(const char *name)
{
    unsigned i = 0;
    while (i < NAMES && strcmp(name, names[i].name))
        i++;
    return i;
}

void limits_set(struct limits *limits, const char *name, const char *value)
{
    char *end;
    unsigned which = find(name);
    errno = 0;
    unsigned long number = strtoul(value, &end, 0);
    if (which == NAMES)
        complaint_add("limit \"%s\" ignored: there is no such limit", name);
    else if (end == value || *end || errno || number < names[which].least || number > names[which].most)
        complaint_add("limit %s=%s ignored: must be from %u to %u", name, value, names[which].least, names[which].most);
    else
        *(uint32_t *)((char *)limits + names[which].offset) = (uint32_t)number;
}

bool limits_are_possible(const struct limits *limits)
{
    for (unsigned i = 0; i < NAMES; i++) {
        uint32_t value = *(const uint32_t *)((const char *)limits + names[i].offset);
        if (value < names[i].least || value > names[i].most)
            return false;
    }
    return true;
}
