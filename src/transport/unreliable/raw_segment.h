/* Segmentation of IBV_WR_TSO. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Turns the program's header at the beginning of the frame into the header of segment number `index`, whose `length`
 * bytes follow it and begin `offset` bytes into the data: lengths, IPv4 identification, TCP sequence and flags,
 * checksums. False: the header is not Ethernet, IP and TCP or UDP, exactly. */
bool raw_segment_head(uint8_t *frame, uint32_t header, uint32_t length, uint32_t offset, uint32_t index, bool last);
