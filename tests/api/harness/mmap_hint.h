/* Where a test maps what it unmaps in part, so that what it has unmapped stays so. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A hint for mmap(2), another one each time, for up to 32 MiB. Without a hint the kernel gives the highest hole that
 * fits: a page that a test unmaps elsewhere becomes, for one, the signal stack that AddressSanitizer maps for a thread
 * which begins just then. ThreadSanitizer lets programs have other addresses than AddressSanitizer does. Not for two
 * threads at once; NULL, no hint, where no place is known. */
static inline void *mmap_hint(void)
{
#if defined(__x86_64__) && defined(__SANITIZE_THREAD__)
    static uintptr_t places;
    return (void *)(0x40000000 + (places++ & 0x1f) * (1ul << 25));
#elif defined(__x86_64__)
    static uintptr_t places;
    return (void *)(0x500000000000 + (places++ & 0xfff) * (1ul << 30));
#else
    return NULL;
#endif
}
