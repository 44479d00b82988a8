/* Ethernet frames for tests, layer by layer. */
#pragma once

#include <string.h>

#include "wire/bytes.h"
#include "wire/ether.h"

struct frame_maker {
    uint8_t bytes[1024];
    uint32_t length;
    uint32_t ips[4]; /* where IP headers begin, whose lengths are written when the frame is finished */
    unsigned ip_count;
};

static inline uint8_t *frame_add(struct frame_maker *maker, uint32_t length)
{
    uint8_t *at = maker->bytes + maker->length;
    memset(at, 0, length);
    maker->length += length;
    return at;
}

/* Adds Ethernet with addresses 02:00:00:00:00:xx; 0xff as destination: broadcast. */
static inline void frame_ethernet(struct frame_maker *maker, uint8_t destination, uint8_t source, uint16_t type)
{
    uint8_t *at = frame_add(maker, ETHER_HEADER);
    at[0] = at[6] = 2;
    at[5] = destination;
    at[11] = source;
    if (destination == 0xff)
        memset(at, 0xff, 6);
    bytes_put16(at + 12, type);
}

/* Adds a tag at the end of the frame: the Ethernet header before it must announce it. */
static inline void frame_tag(struct frame_maker *maker, uint16_t tag, uint16_t type)
{
    uint8_t *at = frame_add(maker, ETHER_TAG);
    bytes_put16(at, tag);
    bytes_put16(at + 2, type);
}

static inline uint8_t *frame_ipv4(struct frame_maker *maker, uint8_t protocol, uint32_t source, uint32_t destination)
{
    maker->ips[maker->ip_count++] = maker->length;
    uint8_t *at = frame_add(maker, 20);
    at[0] = 0x45;
    at[8] = 64;
    at[9] = protocol;
    bytes_put32(at + 12, source);
    bytes_put32(at + 16, destination);
    return at;
}

static inline uint8_t *frame_ipv6(struct frame_maker *maker, uint8_t protocol, const uint8_t *source,
                                  const uint8_t *destination)
{
    maker->ips[maker->ip_count++] = maker->length;
    uint8_t *at = frame_add(maker, 40);
    at[0] = 0x60;
    at[6] = protocol;
    at[7] = 64;
    memcpy(at + 8, source, 16);
    memcpy(at + 24, destination, 16);
    return at;
}

static inline void frame_udp(struct frame_maker *maker, uint16_t source, uint16_t destination)
{
    uint8_t *at = frame_add(maker, 8);
    bytes_put16(at, source);
    bytes_put16(at + 2, destination);
}

static inline uint8_t *frame_tcp(struct frame_maker *maker, uint16_t source, uint16_t destination)
{
    uint8_t *at = frame_add(maker, 20);
    bytes_put16(at, source);
    bytes_put16(at + 2, destination);
    at[12] = 0x50;
    return at;
}

static inline void frame_word(struct frame_maker *maker, uint32_t word)
{
    bytes_put32(frame_add(maker, 4), word);
}

static inline void frame_data(struct frame_maker *maker, uint32_t length)
{
    uint8_t *at = frame_add(maker, length);
    for (uint32_t i = 0; i < length; i++)
        at[i] = (uint8_t)(i * 7 + 1);
}

static inline struct ether frame_finish(struct frame_maker *maker)
{
    struct ether ether;
    for (unsigned i = 0; i < maker->ip_count; i++) {
        uint8_t *at = maker->bytes + maker->ips[i];
        uint32_t length = maker->length - maker->ips[i];
        at[0] >> 4 == 4 ? bytes_put16(at + 2, (uint16_t)length) : bytes_put16(at + 4, (uint16_t)(length - 40));
    }
    ether_parse(&ether, maker->bytes, maker->length);
    return ether;
}
