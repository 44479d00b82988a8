/* The options that say which hosts and links there are, of each command that makes some. Each function returns 0, or
 * the exit status after a sentence. */
#pragma once

#include "command.h"
#include "lab/network/network.h"
#include "lab/plan.h"

/* --hosts */
int lab_set_hosts(const struct command *, struct lab_plan *, const char *text);

/* --link, whose words the plan keeps. */
int lab_add_link(const struct command *, struct lab_plan *, const char *words);

/* Makes the network that the plan names, which must live as long; or changes the links of one that has its hosts. */
int lab_plan_network(const struct command *, const struct lab_plan *, struct network *);
int lab_plan_links(const struct command *, const struct lab_plan *, struct network *);
