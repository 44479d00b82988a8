/* The root of a mount namespace that a lab has for itself. */
#ifndef TOOLS_LAB_OWN_ROOT_H
#define TOOLS_LAB_OWN_ROOT_H

#include <stdbool.h>

/* Keeps later mounts within this process's mount namespace, which no other process outside of the lab may use. Only a
 * mount can be made private, so the directory of a chroot, where "/" is no mount point, becomes the namespace's root;
 * then setns(2) leads there, too. False after a sentence. mount_namespaces(7), pivot_root(2). */
bool own_root_make(void);

/* Whether "/" is a directory that no mount begins at, as in a chroot: the kernel makes no user namespaces there
 * (user_namespaces(7), EPERM). False if /proc does not say. */
bool own_root_is_chroot(void);

#endif
