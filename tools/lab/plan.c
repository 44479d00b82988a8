#include "lab/plan.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

static bool count_hosts(struct lab_plan *plan, const char *text, char *why, size_t size)
{
    uint64_t count;
    if (!text_number(text, 1, LAB_HOSTS_MOST, &count))
        return SAY_AND(false, why, size, "\"%s\" is not a number of hosts from 1 to %d.", text, LAB_HOSTS_MOST);
    for (plan->count = 0; plan->count < count; plan->count++)
        snprintf(plan->hosts[plan->count], LAB_NAME_SIZE, "h%u", plan->count + 1);
    return true;
}

/* Returns whether hosts, and interfaces of the kernel, may have this name. */
static bool is_name(const char *name, size_t length)
{
    if (!length || length >= LAB_NAME_SIZE || !isalpha((unsigned char)*name))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return true;
}

static bool add_host(struct lab_plan *plan, const char *name, size_t length, char *why, size_t size)
{
    char host[LAB_NAME_SIZE];
    if (!is_name(name, length))
        return SAY_AND(false, why, size,
                       "\"%.*s\" can't be the name of a host: a letter, then letters, digits and _, %d at most.",
                       (int)length, name, LAB_NAME_SIZE - 1);
    snprintf(host, sizeof host, "%.*s", (int)length, name);
    if (lab_plan_find(plan, host) < plan->count || !strcmp(host, "localhost"))
        return SAY_AND(false, why, size, "The name \"%s\" is taken: each host needs its own.", host);
    if (plan->count == LAB_HOSTS_MOST)
        return SAY_AND(false, why, size, "A lab has at most %d hosts.", LAB_HOSTS_MOST);
    strcpy(plan->hosts[plan->count++], host);
    return true;
}

bool lab_plan_hosts(struct lab_plan *plan, const char *text, char *why, size_t size)
{
    plan->count = 0;
    if (isdigit((unsigned char)*text) || *text == '-')
        return count_hosts(plan, text, why, size);
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!add_host(plan, at, length, why, size))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

unsigned lab_plan_find(const struct lab_plan *plan, const char *name)
{
    unsigned which = 0;
    while (which < plan->count && strcmp(plan->hosts[which], name))
        which++;
    return which;
}

void lab_plan_addresses(unsigned which, uint8_t four[4], uint8_t six[16])
{
    memcpy(four, (uint8_t[]){10, 77, 0, (uint8_t)(which + 1)}, 4);
    memcpy(six, (uint8_t[16]){0xfd, 0x77, [15] = (uint8_t)(which + 1)}, 16);
}

void lab_plan_mac(unsigned which, uint8_t mac[6])
{
    static const uint8_t ours[] = {0x02, 0x73, 0x76, 0, 0};
    memcpy(mac, ours, sizeof ours);
    mac[5] = (uint8_t)(which + 1);
}
