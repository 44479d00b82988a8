/* vendor_err of other devices, as "mlx5:129" or "mlx5:0x81" (profile/vendors.def). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "print/table.h"

/* Returns true if the argument is a driver and a code, whether or not they are known. */
bool vendors_mean(const char *argument);

/* Adds the rows of the code to the list, or to the table if the list is NULL. False, after a message: the code is not
 * known. */
bool vendors_explain(const char *argument, struct table *, json_t *list);
