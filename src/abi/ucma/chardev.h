/* The number that the kernel's own rdma_cm device has, if it has one. librdmacm asks the kernel for it by netlink, and
 * then expects it from fstat of the file that it has opened. */
#ifndef ABI_UCMA_CHARDEV_H
#define ABI_UCMA_CHARDEV_H

#include <stddef.h>
#include <stdint.h>

/* As in st_rdev; 0: the kernel has no such device, or no RDMA at all. Asks once. Any thread. */
uint64_t chardev_number(void);

/* The number in a netlink answer of so many bytes, 0 when there is none. Total. */
uint64_t chardev_read(const void *answer, size_t length);

#endif
