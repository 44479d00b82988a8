/* A host of a lab: separate network, name, mounts and memory of System V, held by one process. */
#pragma once

#include <sys/types.h>

#include "lab/plan.h"

/* Makes private mounts for the caller: /proc of its process namespace, and LAB_STATE with what all hosts see (names of
 * hosts, the ssh of the lab). For process 1 of the lab, whose namespaces are new. False after a sentence. */
bool virtual_host_prepare(const struct lab_plan *);

/* Starts the process that holds host number `which`, joined to the caller's namespace by an interface with the host's
 * name. -1 after a sentence. */
pid_t virtual_host_start(const struct lab_plan *, unsigned which, int netlink);

/* Enters the namespaces of a host's process. False and errno: they can't be entered. */
bool virtual_host_enter(pid_t);

/* The process of this host in a lab in which the caller lives, or 0. */
pid_t virtual_host_find(const char *name);
