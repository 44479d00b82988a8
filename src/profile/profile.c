#include "profile/profile.h"

#include <string.h>

#include "profile/keys.h"

#define SIZE_OF(type, member) sizeof(((type *)NULL)->member)
#define MOST_OF(type, member) (UINT64_MAX >> (64 - 8 * SIZE_OF(type, member)))
#define IN(place, type, member) PROFILE_IN_##place, offsetof(type, member), SIZE_OF(type, member)
#define NUMBER_IN(place, type, member) PROFILE_NUMBER, NULL, MOST_OF(type, member), IN(place, type, member)

const struct profile_line profile_lines[PROFILE_KEYS] = {
#define DEVICE(key) {#key, NUMBER_IN(DEVICE, struct ibv_device_attr, key)},
#define EXTENDED(key, member) {#key, NUMBER_IN(EXTENDED, struct ibv_device_attr_ex, member)},
#define PORT(key) {#key, NUMBER_IN(PORT, struct ibv_port_attr, key)},
#define PORT_WORD(key, words) {#key, PROFILE_WORD, words, 0, IN(PORT, struct ibv_port_attr, key)},
#define MANNER(key, most) {#key, PROFILE_NUMBER, NULL, most, PROFILE_NOWHERE, 0, 0},
#define WORD(key, words) {#key, PROFILE_WORD, words, 0, PROFILE_NOWHERE, 0, 0},
#define WORDS(key, words) {#key, PROFILE_WORDS, words, 0, PROFILE_NOWHERE, 0, 0},
#define TEXT(key) {#key, PROFILE_TEXT, NULL, 0, PROFILE_NOWHERE, 0, 0},
#define ERRNO(key, standard) {#key, PROFILE_ERRNO, NULL, 0, PROFILE_NOWHERE, 0, 0},
#include "profile/profile.def"
};

/* --- calls */

/* 1 if a call that answers in this way (calls/verbs.def) can be refused. */
#define ANSWER_code 1
#define ANSWER_minus 1
#define ANSWER_negative 1
#define ANSWER_pointer 1
#define ANSWER_event 0
#define ANSWER_nothing 0
#define ANSWER_plain 0

const char *profile_call_name(enum profile_call call)
{
    static const struct {
        const char *name;
        bool fails;
    } calls[] = {
#define CALL_VERB(answer, type, name, title, ...) {title, ANSWER_##answer},
#include "calls/each.def"
    };
    return calls[call].fails ? calls[call].name : NULL;
}

/* --- what devices and ports say */

static void put(void *into, const struct profile_line *line, uint64_t value)
{
    uint8_t *at = (uint8_t *)into + line->offset;
    if (line->size == sizeof(uint8_t))
        *at = (uint8_t)value;
    if (line->size == sizeof(uint16_t))
        memcpy(at, &(uint16_t){(uint16_t)value}, sizeof(uint16_t));
    if (line->size == sizeof(uint32_t))
        memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    if (line->size == sizeof(uint64_t))
        memcpy(at, &value, sizeof value);
}

/* Members whose keys the profile does not name become 0 if it has `others = zero`. */
static void put_all(const struct profile *profile, enum profile_place place, void *into)
{
    bool zero = profile_value(profile, PROFILE_others, 0);
    for (enum profile_key key = 0; key < PROFILE_KEYS; key++)
        if (profile_lines[key].place == place && (profile->set[key] || zero))
            put(into, &profile_lines[key], profile->values[key]);
}

void profile_describe(const struct profile *profile, struct ibv_device_attr *attr)
{
    put_all(profile, PROFILE_IN_DEVICE, attr);
    if (profile->set[PROFILE_fw_ver])
        strcpy(attr->fw_ver, profile->fw_ver);
}

void profile_describe_extended(const struct profile *profile, struct ibv_device_attr_ex *attr)
{
    put_all(profile, PROFILE_IN_EXTENDED, attr);
    profile_describe(profile, &attr->orig_attr);
    if (!profile->set[PROFILE_device_cap_flags_ex] && profile->set[PROFILE_device_cap_flags])
        attr->device_cap_flags_ex = (uint32_t)profile->values[PROFILE_device_cap_flags];
}

/* Members that describe the link stay where the profile does not name them, also with `others = zero`. The active MTU
 * is the smaller one of the profile's and the link's. */
void profile_describe_port(const struct profile *profile, struct ibv_port_attr *attr)
{
    struct ibv_port_attr before = *attr;
    put_all(profile, PROFILE_IN_PORT, attr);
    if (before.state != IBV_PORT_ACTIVE || !profile->set[PROFILE_phys_state])
        attr->phys_state = before.phys_state;
    if (!profile->set[PROFILE_link_layer])
        attr->link_layer = before.link_layer;
    if (!profile->set[PROFILE_max_mtu])
        attr->max_mtu = before.max_mtu;
    if (!profile->set[PROFILE_active_width])
        attr->active_width = before.active_width;
    if (!profile->set[PROFILE_active_speed])
        attr->active_speed = before.active_speed;
    if (!profile->set[PROFILE_active_mtu] || attr->active_mtu > before.active_mtu)
        attr->active_mtu = before.active_mtu;
}

/* --- sizes */

uint32_t profile_round(const struct profile *profile, enum profile_key rounding, uint32_t number)
{
    enum { EXACT, POWER_OF_TWO, POWER_OF_TWO_LESS_ONE };
    uint64_t how = profile_value(profile, rounding, EXACT), power = 1, least = number;
    if (how == EXACT || !number)
        return number;
    least += how == POWER_OF_TWO_LESS_ONE;
    while (power < least)
        power *= 2;
    power -= how == POWER_OF_TWO_LESS_ONE;
    return power > UINT32_MAX ? number : (uint32_t)power;
}
