/* Loads and stores of memory that may be gone: a program may have registered and then unmapped it, protected it, or
 * truncated the file that it maps. If the link's signal handler is set (link/guard.h), an access that faults returns
 * false and does not end the process; without a handler these are plain loads and stores.
 *
 * They cost nothing until a fault happens: each instruction that may fault is in a table, with the place where to
 * continue after a fault, and the handler looks up the instruction that faulted. The layer has no state, so it stays
 * free of threads and signals. Under AddressSanitizer and ThreadSanitizer, which must see every access, and on
 * machines other than x86-64, the same is done with a jump buffer of the thread.
 *
 * False does not say which of both sides is gone, nor what was done before the fault. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GUARDED_BY_JUMP 1
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define GUARDED_BY_JUMP 1
#endif
#endif
#ifndef __x86_64__
#define GUARDED_BY_JUMP 1
#endif

/* Copies like memmove(3). */
static inline bool guarded_copy(void *to, const void *from, size_t length);

/* Loads `size` (1, 2, 4 or 8) bytes of any alignment into the first bytes of *value. */
static inline bool guarded_load(const void *from, unsigned size, uint64_t *value);

/* Stores the first `size` bytes of `value`, where `to` is a multiple of the size, in one store after all earlier
 * ones. */
static inline bool guarded_store(void *to, uint64_t value, unsigned size);

/* Do one atomic operation on eight aligned bytes; *found is the old value. */
bool guarded_compare_and_swap(uint64_t *at, uint64_t compare, uint64_t swap, uint64_t *found);
bool guarded_fetch_and_add(uint64_t *at, uint64_t add, uint64_t *found);

/* Touch each page, without changing anything. */
bool guarded_is_readable(const void *, size_t length);
bool guarded_is_writable(void *, size_t length);

#ifdef GUARDED_BY_JUMP

#include <errno.h>
#include <setjmp.h>

/* The thread's current access, for the handler. */
struct guarded_section {
    sigjmp_buf leave; /* without the signal mask, which the handler knows */
    uintptr_t at[2];
    size_t length[2];
    int error; /* errno before the access: ThreadSanitizer changes it around a handler, and a jump leaves it changed */
};
extern _Thread_local struct guarded_section *guarded_section __attribute__((tls_model("initial-exec")));

bool guarded_copy_apart(void *to, const void *from, size_t length);
bool guarded_load_apart(const void *from, unsigned size, uint64_t *value);
bool guarded_store_apart(void *to, uint64_t value, unsigned size);

static inline bool guarded_copy(void *to, const void *from, size_t length)
{
    return guarded_copy_apart(to, from, length);
}

static inline bool guarded_load(const void *from, unsigned size, uint64_t *value)
{
    return guarded_load_apart(from, size, value);
}

static inline bool guarded_store(void *to, uint64_t value, unsigned size)
{
    return guarded_store_apart(to, value, size);
}

#else

/* Where to continue when the instruction at this address faulted; 0: it is not in the table. Async-signal-safe. */
uintptr_t guarded_go_on_at(uintptr_t instruction);

/* An instruction that may fault; then `fault` is 1, and the value that it loads is undefined. The three distances are
 * relative to the words of the table, so that the table needs no relocations. */
#define GUARDED(instruction)                                                                                           \
    "1: " instruction "\n2:\n"                                                                                         \
    ".pushsection .text.guarded, \"ax\", @progbits\n"                                                                  \
    "3: movl $1, %k[fault]\n jmp 2b\n"                                                                                 \
    ".popsection\n"                                                                                                    \
    ".pushsection guarded_table, \"a\", @progbits\n"                                                                   \
    ".balign 4\n .long 1b - ., 2b - ., 3b - .\n"                                                                       \
    ".popsection\n"

typedef uint64_t __attribute__((may_alias, aligned(1))) guarded_word64;
typedef uint32_t __attribute__((may_alias, aligned(1))) guarded_word32;
typedef uint16_t __attribute__((may_alias, aligned(1))) guarded_word16;
typedef uint8_t __attribute__((may_alias)) guarded_word8;
typedef uint64_t guarded_pair __attribute__((vector_size(16), aligned(1), may_alias)); /* in one register */

#define GUARDED_LOAD(name, type, instruction, register)                                                                \
    static inline type guarded_load_##name(const void *from, unsigned *fault)                                          \
    {                                                                                                                  \
        type value;                                                                                                    \
        __asm__ volatile(GUARDED(instruction " %[from], %[value]")                                                     \
                         : [value] register(value), [fault] "+r"(*fault)                                               \
                         : [from] "m"(*(const type *)from));                                                           \
        return value;                                                                                                  \
    }
#define GUARDED_STORE(name, type, instruction, register)                                                               \
    static inline void guarded_store_##name(void *to, type value, unsigned *fault)                                     \
    {                                                                                                                  \
        __asm__ volatile(GUARDED(instruction " %[value], %[to]")                                                       \
                         : [to] "=m"(*(type *)to), [fault] "+r"(*fault)                                                \
                         : [value] register(value));                                                                   \
    }
GUARDED_LOAD(8, guarded_word8, "movb", "=q")
GUARDED_LOAD(16, guarded_word16, "movw", "=r")
GUARDED_LOAD(32, guarded_word32, "movl", "=r")
GUARDED_LOAD(64, guarded_word64, "movq", "=r")
GUARDED_LOAD(128, guarded_pair, "movdqu", "=x")
GUARDED_STORE(8, guarded_word8, "movb", "q")
GUARDED_STORE(16, guarded_word16, "movw", "r")
GUARDED_STORE(32, guarded_word32, "movl", "r")
GUARDED_STORE(64, guarded_word64, "movq", "r")
GUARDED_STORE(128, guarded_pair, "movdqu", "x")
#undef GUARDED_LOAD
#undef GUARDED_STORE

/* Copies more than 64 bytes. */
bool guarded_copy_long(uint8_t *to, const uint8_t *from, size_t length);

static inline bool guarded_copy_up_to_7(uint8_t *to, const uint8_t *from, size_t length)
{
    unsigned fault = 0;
    if (length >= 4) {
        uint32_t head = guarded_load_32(from, &fault), tail = guarded_load_32(from + length - 4, &fault);
        guarded_store_32(to, head, &fault);
        guarded_store_32(to + length - 4, tail, &fault);
    } else if (length) {
        uint8_t head = guarded_load_8(from, &fault), middle = guarded_load_8(from + length / 2, &fault);
        uint8_t tail = guarded_load_8(from + length - 1, &fault);
        guarded_store_8(to, head, &fault);
        guarded_store_8(to + length / 2, middle, &fault);
        guarded_store_8(to + length - 1, tail, &fault);
    }
    return !fault;
}

static inline bool guarded_copy_8_to_16(uint8_t *to, const uint8_t *from, size_t length)
{
    unsigned fault = 0;
    uint64_t head = guarded_load_64(from, &fault), tail = guarded_load_64(from + length - 8, &fault);
    guarded_store_64(to, head, &fault);
    guarded_store_64(to + length - 8, tail, &fault);
    return !fault;
}

static inline bool guarded_copy_16_to_64(uint8_t *to, const uint8_t *from, size_t length)
{
    const uint8_t *end = from + length;
    uint8_t *to_end = to + length;
    unsigned fault = 0;
    guarded_pair a = guarded_load_128(from, &fault), d = guarded_load_128(end - 16, &fault);
    if (length > 32) {
        guarded_pair b = guarded_load_128(from + 16, &fault), c = guarded_load_128(end - 32, &fault);
        guarded_store_128(to + 16, b, &fault);
        guarded_store_128(to_end - 32, c, &fault);
    }
    guarded_store_128(to, a, &fault);
    guarded_store_128(to_end - 16, d, &fault);
    return !fault;
}

/* Copies data that fits into a few registers without a call: from both ends, overlapping in the middle, everything
 * read before anything is written. */
static inline bool guarded_copy(void *to, const void *from, size_t length)
{
    if (length > 64)
        return guarded_copy_long((uint8_t *)to, (const uint8_t *)from, length);
    if (length >= 16)
        return guarded_copy_16_to_64((uint8_t *)to, (const uint8_t *)from, length);
    if (length >= 8)
        return guarded_copy_8_to_16((uint8_t *)to, (const uint8_t *)from, length);
    return guarded_copy_up_to_7((uint8_t *)to, (const uint8_t *)from, length);
}

static inline bool guarded_load(const void *from, unsigned size, uint64_t *value)
{
    unsigned fault = 0;
    if (size == 8)
        *value = guarded_load_64(from, &fault);
    else if (size == 4)
        *value = guarded_load_32(from, &fault);
    else if (size == 2)
        *value = guarded_load_16(from, &fault);
    else
        *value = guarded_load_8(from, &fault);
    return !fault;
}

/* Stores are seen in their order on this machine, so only the compiler needs a barrier. */
static inline bool guarded_store(void *to, uint64_t value, unsigned size)
{
    unsigned fault = 0;
    __asm__ volatile("" ::: "memory");
    if (size == 8)
        guarded_store_64(to, value, &fault);
    else if (size == 4)
        guarded_store_32(to, (uint32_t)value, &fault);
    else if (size == 2)
        guarded_store_16(to, (uint16_t)value, &fault);
    else
        guarded_store_8(to, (uint8_t)value, &fault);
    return !fault;
}

#endif
