/* The mistakes of public threads in docs/evidence/mistakes.md, "Mistakes for the checker", by file. A comment with the
 * number of a mistake marks a line; a finding must name one of its lines. */
#pragma once

#include "loopback.h"

/* public_posts.c */
void read_into_own_memory_only(enum loopback_variant);
void read_inline(enum loopback_variant);
void destroy_address_at_once(enum loopback_variant);
void post_inline_too_long(enum loopback_variant);
void write_again_early(enum loopback_variant);
void post_too_many_elements(enum loopback_variant);
void merge_too_much(enum loopback_variant);
void reuse_datagram_early(enum loopback_variant);
void give_other_key(enum loopback_variant);
void receive_without_polls(enum loopback_variant);
void mix_regions(enum loopback_variant);
void shorten_number(enum loopback_variant);
void give_longer_region(enum loopback_variant);
void overfill(enum loopback_variant);

/* public.c */
void poll_in_vain(struct loopback *); /* for longer than a program that gets an answer */
