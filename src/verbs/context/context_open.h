/* Devices and contexts: ibv_get_device_list(3), ibv_open_device(3), ibv_alloc_pd(3). Thread-safe. */
#pragma once

#include "verbs/object/context.h"

struct process_parts;

/* Returns a list that ends in NULL, and its length; NULL and errno. The devices live as long as the process. */
struct ibv_device **context_device_list(int *count);
__be64 context_device_guid(struct ibv_device *);

/* Opens a device, without the operations, which abi fills in. NULL and errno: the log says why this process can't join
 * its host. */
struct context *context_open(struct ibv_device *, const struct process_parts *);
/* ibv_import_device(3). NULL and errno. The context takes the descriptor over. */
struct context *context_import(int cmd_fd, const struct process_parts *);
/* Closes the context, and destroys its remaining objects. */
void context_close(struct context *);
