/* System calls that no handler catches: their instruction is in this library's text. The library's functions run inside
 * a program's system call, so they call nothing of the C library that makes one. x86-64. */
#pragma once

#include "sim/call_numbers.h"

static inline long raw(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

#define RAW_CALL(number, a, b, c, d, e, f, ...)                                                                        \
    raw(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* The result, or minus an errno. */
#define RAW(name, ...) RAW_CALL(SYS_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
