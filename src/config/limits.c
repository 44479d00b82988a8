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
    .qpn_bits = 24,
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

static uint32_t *limit_at(struct limits *limits, unsigned which)
{
    return (uint32_t *)((char *)limits + names[which].offset);
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
        *limit_at(limits, which) = (uint32_t)number;
}

/* Raises the limits of both queues of a queue pair to the larger one, where a profile has one for each. */
static void raise_to_larger(struct limits *limits, const struct profile *profile)
{
    static const struct {
        const char *name;
        enum profile_key key;
    } of_queues[] = {
        {"max_qp_wr", PROFILE_max_send_wr},
        {"max_qp_wr", PROFILE_max_recv_wr},
        {"max_sge", PROFILE_max_send_sge},
        {"max_sge", PROFILE_max_recv_sge},
    };
    for (size_t i = 0; i < sizeof of_queues / sizeof *of_queues; i++) {
        uint32_t *limit = limit_at(limits, find(of_queues[i].name));
        uint64_t value = profile_value(profile, of_queues[i].key, 0);
        if (value > *limit)
            *limit = (uint32_t)value; /* profile.def has the same most as limits.def */
    }
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
        uint32_t *limit = limit_at(limits, which);
        uint64_t value = profile_value(profile, imitable[i].key, *limit);
        if (value >= names[which].least)
            *limit = value < names[which].most ? (uint32_t)value : names[which].most;
    }
    raise_to_larger(limits, profile);
    limits->max_rdma = (uint32_t)profile_value(profile, PROFILE_max_rdma_size, limits->max_rdma);
    limits->qpn_bits = (uint32_t)profile_value(profile, PROFILE_qpn_bits, limits->qpn_bits);
}

/* The profile's value; a 0 is no limit, as in limits_imitate. */
static uint64_t value_or(const struct profile *profile, enum profile_key key, uint64_t otherwise)
{
    uint64_t value = profile_value(profile, key, 0);
    return value ? value : otherwise;
}

uint32_t limits_most(const struct limits *limits, const struct profile *profile, enum profile_key queue,
                     enum profile_key both)
{
    bool work = both == PROFILE_max_qp_wr;
    struct limits of_profile = limits_standard;
    limits_imitate(&of_profile, profile);
    uint32_t limit = work ? limits->max_qp_wr : limits->max_sge;
    uint32_t standard = work ? limits_standard.max_qp_wr : limits_standard.max_sge;
    uint64_t alone = value_or(profile, queue, value_or(profile, both, standard));
    bool raised = limit > (work ? of_profile.max_qp_wr : of_profile.max_sge);
    return raised || alone > limit ? limit : (uint32_t)alone;
}
