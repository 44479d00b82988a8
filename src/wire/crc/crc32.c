#include "wire/crc/crc32.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>

/* libdeflate multiplies four vectors in one instruction (VPCLMULQDQ) from release 1.20 on. Debian 12 has 1.14, and a
 * fifth of the time to send a long message was its CRC, so with older releases we do that for long data. */
#if defined(__x86_64__) && LIBDEFLATE_VERSION_MAJOR == 1 && LIBDEFLATE_VERSION_MINOR < 20

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,vpclmulqdq")))

enum { BLOCK = 64, STRIDE = 4 * BLOCK, LONG = 2 * STRIDE };

/* Bytes are a polynomial over GF(2); the lowest bit of the first byte is the highest power. 128 bits may be added to
 * 128 later bits, n bits after them, when multiplied by x^n modulo the CRC's polynomial, each half by another constant:
 * x^(n + 32) and x^(n - 32), which make up for the product's width and its reflection. */
static const uint64_t by_stride[2] = {0x11542778a, 0x1322d1430}, by_block[2] = {0x154442bd4, 0x1c6e41596};

static WIDE inline __m512i load_block(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}

static WIDE inline __m512i load_factors(const uint64_t factors[2])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)factors));
}

static WIDE inline __m512i fold(__m512i block, __m512i factors, __m512i onto)
{
    __m512i low = _mm512_clmulepi64_epi128(block, factors, 0x00), high = _mm512_clmulepi64_epi128(block, factors, 0x11);
    return _mm512_xor_si512(_mm512_xor_si512(low, high), onto);
}

/* The CRC of at least STRIDE bytes. After folding, the rest, a block and a shorter piece, has the same CRC from an
 * empty register. */
static WIDE uint32_t crc_of_long(uint32_t crc, const uint8_t *at, size_t length)
{
    uint8_t left[2 * BLOCK];
    __m512i factors = load_factors(by_stride), begin = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
    __m512i a = _mm512_xor_si512(load_block(at), begin), b = load_block(at + BLOCK), c = load_block(at + 2 * BLOCK),
            d = load_block(at + 3 * BLOCK);
    for (at += STRIDE, length -= STRIDE; length >= STRIDE; at += STRIDE, length -= STRIDE) {
        a = fold(a, factors, load_block(at));
        b = fold(b, factors, load_block(at + BLOCK));
        c = fold(c, factors, load_block(at + 2 * BLOCK));
        d = fold(d, factors, load_block(at + 3 * BLOCK));
    }
    factors = load_factors(by_block);
    a = fold(fold(fold(a, factors, b), factors, c), factors, d);
    for (; length >= BLOCK; at += BLOCK, length -= BLOCK)
        a = fold(a, factors, load_block(at));
    _mm512_storeu_si512(left, a);
    memcpy(left + BLOCK, at, length);
    return libdeflate_crc32(UINT32_MAX, left, BLOCK + length);
}

static bool goes_wide(size_t length)
{
    return length >= LONG && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

#else

static inline bool goes_wide(size_t length)
{
    return false;
}

static inline uint32_t crc_of_long(uint32_t crc, const uint8_t *at, size_t length)
{
    return crc;
}

#endif

uint32_t crc32_go_on(uint32_t crc, const void *bytes, size_t length)
{
    if (goes_wide(length))
        return crc_of_long(crc, bytes, length);
    return length ? libdeflate_crc32(crc, bytes, length) : crc; /* libdeflate returns 0 for NULL */
}
