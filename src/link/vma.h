/* Questions about this process's address space, and the memory of special regions. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true if all of [address, address + length) is mapped, and may be written (write) or read. Touches no page.
 * An adapter would find out by pinning the pages. */
bool vma_permits(const void *address, size_t length, bool write);

/* Returns true if the kernel can copy from the first and the last byte of [address, address + length). It can't if
 * only the processor reaches the memory (memfd_secret(2), a device's memory that its driver maps); nor could it pin
 * such pages. True as well if the program can't read them either, and if the system call is refused. Touches two
 * pages at most. */
bool vma_is_copyable(const void *address, size_t length);

/* A mapping, or several that are alike and beside each other. */
struct vma {
    uintptr_t begin, end;
    uint64_t device, inode; /* of the mapping's file, as stat(2) names them on most file systems; 0: no file */
    uint64_t offset;        /* of `begin` in the file */
    bool shared, writable;
};

/* Finds the mapping with all of [address, address + length): one, or several that continue each other. False: there is
 * no such mapping, its parts differ, or nothing can be found out. errno stays. */
bool vma_find(const void *address, size_t length, struct vma *);

/* Returns true if the kernel pins memory of a region with this access so that a device may write it. */
bool vma_is_pinned_to_write(unsigned access);

enum { VMA_NAME = 256 };

/* Returns true if Linux 6.5 and later refuses to pin a page of [address, address + length) for writing, since the
 * mapping is a shared, writable one of a file whose system writes pages back to a disk. Writes the file's name. False
 * as well if that can't be found out. errno stays. */
bool vma_is_written_back(const void *address, size_t length, char name[VMA_NAME]);

enum vma_fetch {
    FETCH_READ,    /* bring pages in for reading */
    FETCH_WRITE,   /* bring pages in for writing */
    FETCH_LATER,   /* ask the kernel to begin with it */
    FETCH_NOTHING, /* only check whether that is possible */
};

/* Brings pages in; 0, or EFAULT when part of the range is not mapped, or not with this access. */
int vma_fetch(const void *address, size_t length, enum vma_fetch);

/* The memory of the null region, for any address of an element: 4 GiB that read as zero, or 4 GiB where written data
 * is lost (it lands in the same few MiB). NULL when the address space is too small. */
char *vma_of_nothing(bool write);
