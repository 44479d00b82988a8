/* The private symbols that are built, not stubs. The distribution's libmlx5, libefa and tools load only with all
 * symbols of IBVERBS_PRIVATE_N of their release; they call only verbs_register_driver_N and ibv_query_gid_type. This is
 * so in rdma-core 25 to 65. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The GID types of the private interface. */
enum private_gid_type { PRIVATE_GID_IB_ROCE_V1, PRIVATE_GID_ROCE_V2 };

/* Read by providers that close down; no code here reads it. */
extern bool verbs_allow_disassociate_destroy;

/* Returns 0, or -1 with errno set. An empty entry of the GID table has the first type, as with a kernel. */
int ibv_query_gid_type(struct ibv_context *, uint8_t port, unsigned index, enum private_gid_type *);

/* Called by the constructor of every provider library. Providers drive the kernel's devices, so nothing is registered.
 */
void verbs_register_driver_25(const void *operations);
void verbs_register_driver_33(const void *operations);
void verbs_register_driver_34(const void *operations);
void verbs_register_driver_57(const void *operations);
void verbs_register_driver_59(const void *operations);
void verbs_register_driver_64(const void *operations);
void verbs_register_driver_65(const void *operations);

/* Called by providers to log a line about a context. It does nothing: no provider has a context. */
void __verbs_log(struct verbs_context *, uint32_t level, const char *format, ...);

/* Returns `count`, the attributes of a command for the kernel; no such command is ever sent. */
unsigned __ioctl_final_num_attrs(unsigned count, void *linked);
