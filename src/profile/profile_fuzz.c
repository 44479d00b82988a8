/* libFuzzer: a text as a user's profile. Either it is valid, and all values are possible, or the fault is at a line
 * of the text. */
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_fault(const char *text, const struct profile_fault *fault)
{
    unsigned lines = 1;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    require(*fault->why && memchr(fault->why, 0, sizeof fault->why));
    require(fault->line && fault->line <= lines);
}

static void describe(const struct profile *profile)
{
    struct ibv_device_attr_ex attr = {.orig_attr = {.phys_port_cnt = 1, .node_guid = 2}};
    struct ibv_port_attr port = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_1024, .lid = 3};
    profile_describe_extended(profile, &attr);
    profile_describe_port(profile, &port);
    require(attr.orig_attr.phys_port_cnt == 1 && attr.orig_attr.node_guid == 2);
    require(memchr(attr.orig_attr.fw_ver, 0, sizeof attr.orig_attr.fw_ver));
    require(port.state == IBV_PORT_ACTIVE && port.lid == 3 && port.active_mtu && port.active_mtu <= IBV_MTU_1024);
}

static void check(const struct profile *profile)
{
    for (enum profile_call call = 0; call < PROFILE_CALLS; call++)
        require(!profile->without[call] || profile_call_name(call));
    for (uint32_t number = 0; number < 70; number++)
        require(profile_round(profile, PROFILE_round_cqe, number) >= number);
    describe(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct profile profile;
    struct profile_fault fault = {0};
    char *text = malloc(length + 1);
    require(text);
    memcpy(text, bytes, length);
    text[length] = 0;
    profile = (struct profile){0};
    if (profile_parse(text, &profile, &fault))
        check(&profile);
    else
        check_fault(text, &fault);
    free(text);
    return 0;
}
