/* The identifiers of librdmacm as iproute2's rdma has them: rows of `rdma resource show cm_id`. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "facts/read.h"

/* Returns whether this identifier belongs to the device. An identifier that listens at all devices belongs to each; any
 * other without a device belongs to no device. */
bool connection_is_of(const struct facts_identifier *, const char *device);

/* Adds the facts of the identifier to the row. */
void connection_describe(json_t *row, const struct facts_identifier *, const struct facts_process *);
