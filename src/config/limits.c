#include "config/limits.h"

#include <stddef.h>
#include <string.h>

#include "base/text/text.h"
#include "config/complaint.h"
#include "profile/profile.h"

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
    uint64_t number;
    unsigned which = find(name);
    if (which == NAMES)
        complaint_add("limit \"%s\": there is no such limit", name);
    else if (!text_number_or_hex(value, names[which].least, names[which].most, &number))
        complaint_add("limit %s=%s: must be from %u to %u", name, value, names[which].least, names[which].most);
    else
        *(uint32_t *)((char *)limits + names[which].offset) = (uint32_t)number;
}

/* Ignores a 0 that would make the device useless: drivers leave 0 for values that they do not count. */
void limits_imitate(struct limits *limits, const struct profile *profile)
{
    static const struct {
        const char *name;
        enum profile_key key;
    } imitable[] = {
        {"max_qp", PROFILE_max_qp},
        {"max_qp_wr", PROFILE_max_qp_wr},
        {"max_sge", PROFILE_max_sge},
        {"max_cq", PROFILE_max_cq},
        {"max_cqe", PROFILE_max_cqe},
        {"max_mr", PROFILE_max_mr},
        {"max_pd", PROFILE_max_pd},
        {"max_ah", PROFILE_max_ah},
        {"max_srq", PROFILE_max_srq},
        {"max_srq_wr", PROFILE_max_srq_wr},
        {"max_srq_sge", PROFILE_max_srq_sge},
        {"max_rd_atomic", PROFILE_max_qp_rd_atom},
        {"max_inline", PROFILE_max_inline},
        {"max_message", PROFILE_max_msg_sz},
        {"max_groups", PROFILE_max_mcast_grp},
        {"max_mw", PROFILE_max_mw},
        {"max_dm", PROFILE_max_dm_size},
    };
    for (size_t i = 0; i < sizeof imitable / sizeof *imitable; i++) {
        unsigned which = find(imitable[i].name);
        uint32_t *limit = (uint32_t *)((char *)limits + names[which].offset);
        uint64_t value = profile_value(profile, imitable[i].key, *limit);
        if (value >= names[which].least)
            *limit = value < names[which].most ? (uint32_t)value : names[which].most;
    }
}
