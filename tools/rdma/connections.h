/* The identifiers of librdmacm as iproute2's rdma has them: rows of `rdma resource show cm_id`. */
#ifndef TOOLS_RDMA_CONNECTIONS_H
#define TOOLS_RDMA_CONNECTIONS_H

#include <jansson.h>
#include <stdbool.h>

/* Returns whether this Connection of a report (docs/reference/json.md) is of the device. One that listens at
 * all devices is of each; another one that has no device yet is of none. */
bool connection_is_of(const json_t *connection, const char *device);

/* Adds what is known of it to the row. */
void connection_describe(json_t *row, const json_t *connection, const json_t *report);

#endif
