/* The root of a mount namespace that a lab has for itself. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Keeps later mounts within this process's mount namespace, which no other process outside of the lab may use, also in
 * a chroot, where "/" need not be a mount and only a mount can be made private. False after a sentence.
 * mount_namespaces(7). */
bool own_root_make(void);

/* The root directory of a process, as a descriptor that the caller closes; negative: errno. */
int own_root_of(pid_t);

/* Makes this directory the root of the process, which after setns(2) has the namespace's root, unless they are the same
 * directory. False: errno; chroot(2). The working directory may be the root afterwards. */
bool own_root_enter(int root);

/* Whether "/" is a directory at which no mount begins, as in a chroot: the kernel makes no user namespaces there
 * (user_namespaces(7), EPERM). False if /proc does not say. */
bool own_root_is_chroot(void);
