#include "wire/guarded.h"

#include <string.h>

#ifndef GUARDED_BY_JUMP
#include <cpuid.h>

#include "base/likely.h"
#endif

enum { PAGE = 4096 }; /* if pages are larger, each is touched more than once */

#ifdef GUARDED_BY_JUMP

_Thread_local struct guarded_section *guarded_section __attribute__((tls_model("initial-exec")));

/* The handler sets guarded_section to NULL, too, before it leaves the section by the jump. */
#define GUARDED_SECTION(first, first_length, second, second_length, ...)                                               \
    do {                                                                                                               \
        struct guarded_section section = {                                                                             \
            .at = {(uintptr_t)(first), (uintptr_t)(second)}, .length = {first_length, second_length}, .error = errno}; \
        if (sigsetjmp(section.leave, 0)) {                                                                             \
            errno = section.error;                                                                                     \
            return false;                                                                                              \
        }                                                                                                              \
        guarded_section = &section;                                                                                    \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
        __VA_ARGS__;                                                                                                   \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                                                       \
        guarded_section = NULL;                                                                                        \
        return true;                                                                                                   \
    } while (0)

bool guarded_copy_apart(void *to, const void *from, size_t length)
{
    if (!length)
        return true;
    GUARDED_SECTION(to, length, from, length, memmove(to, from, length));
}

static uint64_t load(const void *from, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, from, size);
    return value;
}

bool guarded_load_apart(const void *from, unsigned size, uint64_t *value)
{
    GUARDED_SECTION(from, size, NULL, 0, *value = load(from, size));
}

/* Not instrumented: ThreadSanitizer's atomics would fault in its own code, with its own locks held, so under it the
 * memory is touched before an atomic. */
#ifdef __clang__
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

__attribute__((no_sanitize("thread"))) static bool can_load(const void *at)
{
    GUARDED_SECTION(at, 1, NULL, 0, __atomic_load_n((const uint8_t *)at, __ATOMIC_RELAXED));
}

__attribute__((no_sanitize("thread"))) static bool can_store(void *at)
{
    GUARDED_SECTION(at, 1, NULL, 0, __atomic_fetch_or((uint8_t *)at, 0, __ATOMIC_RELAXED));
}

static bool may_change(void *at)
{
#ifdef __SANITIZE_THREAD__
    return can_store(at);
#else
    return true;
#endif
}

static void store_guarded(void *to, uint64_t value, unsigned size)
{
    if (size == 8)
        __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE);
    else if (size == 4)
        __atomic_store_n((uint32_t *)to, (uint32_t)value, __ATOMIC_RELEASE);
    else if (size == 2)
        __atomic_store_n((uint16_t *)to, (uint16_t)value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint8_t *)to, (uint8_t)value, __ATOMIC_RELEASE);
}

bool guarded_store_apart(void *to, uint64_t value, unsigned size)
{
    if (!may_change(to))
        return false;
    GUARDED_SECTION(to, size, NULL, 0, store_guarded(to, value, size));
}

bool guarded_compare_and_swap(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *found)
{
    *found = compare;
    if (!may_change(at))
        return false;
    GUARDED_SECTION(at, sizeof *at, NULL, 0,
                    __atomic_compare_exchange_n(at, found, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

bool guarded_fetch_and_add(uint64_t *at, uint64_t add, uint64_t *found)
{
    if (!may_change(at))
        return false;
    GUARDED_SECTION(at, sizeof *at, NULL, 0, *found = __atomic_fetch_add(at, add, __ATOMIC_SEQ_CST));
}

#else

struct place {
    int32_t from, to, go_on; /* each from its own address */
};
/* Weak, since a program that moves no such data has no table after link-time optimization; it is empty then. */
extern const struct place __start_guarded_table[] __attribute__((weak)), __stop_guarded_table[] __attribute__((weak));

static uintptr_t address(const int32_t *distance)
{
    return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

uintptr_t guarded_go_on_at(uintptr_t instruction)
{
    for (const struct place *place = __start_guarded_table; place < __stop_guarded_table; place++)
        if (instruction >= address(&place->from) && instruction < address(&place->to))
            return address(&place->go_on);
    return 0;
}

enum { BLOCK = 64, AT_ONCE = 2048 }; /* from AT_ONCE bytes on the processor's own copying is the fastest */

/* "Enhanced REP MOVSB", which older processors lack. */
static bool copies_strings_fast(void)
{
    enum { UNKNOWN, NO, YES, FEATURES = 7, ENHANCED = 1 << 9 };
    static unsigned known;
    unsigned state = __atomic_load_n(&known, __ATOMIC_RELAXED), a, b, c, d;
    if (unlikely(state == UNKNOWN)) {
        state = __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) && b & ENHANCED ? YES : NO;
        __atomic_store_n(&known, state, __ATOMIC_RELAXED);
    }
    return state == YES;
}

/* Copies 64 bytes, all read before any is written. */
static inline void copy_block(uint8_t *to, const uint8_t *from, unsigned *fault)
{
    guarded_pair a = guarded_load_128(from, fault), b = guarded_load_128(from + 16, fault);
    guarded_pair c = guarded_load_128(from + 32, fault), d = guarded_load_128(from + 48, fault);
    guarded_store_128(to, a, fault);
    guarded_store_128(to + 16, b, fault);
    guarded_store_128(to + 32, c, fault);
    guarded_store_128(to + 48, d, fault);
}

/* Copies from the beginning to the end, for a `to` below `from`. The last block is read before anything is written, and
 * written last, as it overlaps the one before it: so all bytes are read before they are overwritten. */
static bool copy_upwards(uint8_t *to, const uint8_t *from, size_t length)
{
    unsigned fault = 0;
    const uint8_t *last = from + length - BLOCK;
    uint8_t *to_last = to + length - BLOCK;
    guarded_pair a = guarded_load_128(last, &fault), b = guarded_load_128(last + 16, &fault);
    guarded_pair c = guarded_load_128(last + 32, &fault), d = guarded_load_128(last + 48, &fault);
    for (; to < to_last && !fault; to += BLOCK, from += BLOCK)
        copy_block(to, from, &fault);
    guarded_store_128(to_last, a, &fault);
    guarded_store_128(to_last + 16, b, &fault);
    guarded_store_128(to_last + 32, c, &fault);
    guarded_store_128(to_last + 48, d, &fault);
    return !fault;
}

/* Copies from the end to the beginning, for a `to` above `from`; the first block is read first and written last. */
static bool copy_downwards(uint8_t *to, const uint8_t *from, size_t length)
{
    unsigned fault = 0;
    guarded_pair a = guarded_load_128(from, &fault), b = guarded_load_128(from + 16, &fault);
    guarded_pair c = guarded_load_128(from + 32, &fault), d = guarded_load_128(from + 48, &fault);
    for (size_t left = length; left > BLOCK && !fault; left -= BLOCK)
        copy_block(to + left - BLOCK, from + left - BLOCK, &fault);
    guarded_store_128(to, a, &fault);
    guarded_store_128(to + 16, b, &fault);
    guarded_store_128(to + 32, c, &fault);
    guarded_store_128(to + 48, d, &fault);
    return !fault;
}

static bool copy_at_once(uint8_t *to, const uint8_t *from, size_t length)
{
    unsigned fault = 0;
    __asm__ volatile(GUARDED("rep movsb") : "+D"(to), "+S"(from), "+c"(length), [fault] "+r"(fault) : : "memory");
    return !fault;
}

/* Returns true if `to` is a little further in its page than `from` in its page. Then loads seem to depend on the stores
 * just before, and AMD's processors copy strings at a fifteenth of their speed (Zen 4: 3 GB/s and not 45). */
static bool is_aliased(const uint8_t *to, const uint8_t *from)
{
    uintptr_t ahead = ((uintptr_t)to - (uintptr_t)from) % PAGE;
    return ahead && ahead < BLOCK;
}

bool guarded_copy_long(uint8_t *to, const uint8_t *from, size_t length)
{
    bool apart = (uintptr_t)to - (uintptr_t)from >= length && (uintptr_t)from - (uintptr_t)to >= length;
    if (length >= AT_ONCE && apart && !is_aliased(to, from) && copies_strings_fast())
        return copy_at_once(to, from, length);
    return (uintptr_t)to - (uintptr_t)from >= length ? copy_upwards(to, from, length)
                                                     : copy_downwards(to, from, length);
}

bool guarded_compare_and_swap(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *found)
{
    unsigned fault = 0;
    __asm__ volatile(GUARDED("lock cmpxchgq %[swap], %[at]")
                     : [at] "+m"(*at), "+a"(compare), [fault] "+r"(fault)
                     : [swap] "r"(swap)
                     : "memory", "cc");
    *found = compare;
    return !fault;
}

bool guarded_fetch_and_add(uint64_t *at, uint64_t add, uint64_t *found)
{
    unsigned fault = 0;
    __asm__ volatile(GUARDED("lock xaddq %[add], %[at]")
                     : [at] "+m"(*at), [add] "+r"(add), [fault] "+r"(fault)
                     :
                     : "memory", "cc");
    *found = add;
    return !fault;
}

static bool can_load(const void *at)
{
    unsigned fault = 0;
    guarded_load_8(at, &fault);
    return !fault;
}

static bool can_store(void *at)
{
    unsigned fault = 0;
    __asm__ volatile(GUARDED("lock orb $0, %[at]")
                     : [at] "+m"(*(guarded_word8 *)at), [fault] "+r"(fault)
                     :
                     : "memory", "cc");
    return !fault;
}

#endif

/* The first byte of the next page. */
static const uint8_t *next_page(const uint8_t *at)
{
    return at + (PAGE - (uintptr_t)at % PAGE);
}

bool guarded_is_readable(const void *memory, size_t length)
{
    const uint8_t *at = memory, *end = at + length;
    for (; at < end; at = next_page(at))
        if (!can_load(at))
            return false;
    return true;
}

bool guarded_is_writable(void *memory, size_t length)
{
    uint8_t *at = memory, *end = at + length;
    for (; at < end; at = (uint8_t *)(uintptr_t)next_page(at))
        if (!can_store(at))
            return false;
    return true;
}
