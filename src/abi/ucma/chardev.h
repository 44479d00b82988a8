/* The number of the kernel's own device rdma_cm, if there is one. librdmacm asks the kernel for this number by netlink,
 * and then expects it from fstat of the file that it has opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The number as in st_rdev; 0: the kernel has no such device, or no RDMA. Asks the kernel once. Thread-safe. */
uint64_t chardev_number(void);

/* The number in a netlink answer of `length` bytes, which may be any bytes; 0: it has no number. */
uint64_t chardev_read(const void *reply, size_t length);
