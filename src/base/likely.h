/* The likely result of a test, and functions that the fast path does not need. */
#pragma once

#define likely(condition) __builtin_expect((condition) != 0, 1)
#define unlikely(condition) __builtin_expect((condition) != 0, 0)

/* The compiler keeps a function marked with this out of its callers, which then save no registers for it. GCC's
 * attribute `__cold__` does more: it compiles the function for size, and makes each path to a call of it unlikely. A
 * function that is called less often than others may still be called often. */
#define cold __attribute__((noinline))
