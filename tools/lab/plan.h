/* The parts of a lab, as the command line gives them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAB_HOSTS_MOST = 64, LAB_NAME_SIZE = 16, LAB_LINKS_MOST = 32 };

/* The interface of each host, and the place of the lab's own files on each. */
#define LAB_INTERFACE "eth0"
#define LAB_STATE "/dev/shm/.softverbs-lab"

struct lab_plan {
    char name[LAB_NAME_SIZE];
    unsigned count;
    char hosts[LAB_HOSTS_MOST][LAB_NAME_SIZE];
    const char *links[LAB_LINKS_MOST]; /* "TARGET:WORDS", or WORDS for all links */
    unsigned link_count;
    char *shell;          /* the program, if --shell was given; NULL: another */
    const char *topology; /* a file; NULL: one switch */
};

/* "4", for h1 to h4, or names with commas between. False: `why` is a sentence. */
bool lab_plan_hosts(struct lab_plan *, const char *text, char *why, size_t size);

/* The number of the host with this name, from 0; count: the lab has no such host. */
unsigned lab_plan_find(const struct lab_plan *, const char *name);

/* Host number `which` has this hardware address, and IP addresses 10.77.0.(which + 1)/24, fd77::(which + 1)/64. */
void lab_plan_mac(unsigned which, uint8_t mac[6]);
void lab_plan_addresses(unsigned which, uint8_t four[4], uint8_t six[16]);
