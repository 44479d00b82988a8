/* Takes out of a bug report what identifies the machine and its user. */
#pragma once

#include <jansson.h>

/* Redacts each string of the value, keys of objects included: the home directory becomes "~", the user's name "USER",
 * the host's name "HOST", and each address of IP or Ethernet but loopback's "address-N", the same one always with the
 * same number. Memory addresses, keys and other numbers of the program's own are left out: they become 0, or, in a
 * string, "(left out)". */
void redact(json_t *);
