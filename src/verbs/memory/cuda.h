/* Memory of NVIDIA's GPUs, by the driver's library libcuda, if the program has loaded it: neither built nor linked
 * against. Thread-safe. */
#pragma once

#include <stdbool.h>

#include "wire/foreign/foreign.h"

/* Returns true if the program has loaded libcuda with all necessary functions. */
bool cuda_is_loaded(void);

/* Returns what copies the memory if all of it is device memory; NULL: it is not, or the driver can't be used now. The
 * result lives as long as the process. Must not be called in a host callback of a stream, or under locks: it may begin
 * to use a device, which allocates pinned memory. */
const struct foreign *cuda_find(const void *address, size_t length);
