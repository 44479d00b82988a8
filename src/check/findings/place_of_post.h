/* The places of posts. A post is frequent, so its callers are found without an unwinder. */
#pragma once

enum { PLACE_OF_POST_FRAMES = 3 };

struct symbol_step;

/* The place of a post: a return address outside of the functions of the verbs' headers (which are not inlined in
 * programs that are built without optimization), and some of its callers, up to main. */
struct place_of_post {
    const void *frames[PLACE_OF_POST_FRAMES];                  /* the innermost first; NULL from `count` on */
    const struct symbol_step *steps[PLACE_OF_POST_FRAMES - 1]; /* from each frame to the next */
    unsigned count;
    _Atomic unsigned state; /* place_of_post.c */
};

/* The place of a post, for a function of the data path that the program called. Posts at the same place get the same
 * pointer, which stays valid. NULL: there are too many places, or no memory is left. The caller holds no lock.
 * Thread-safe. */
#define PLACE_OF_POST place_of_post(__builtin_return_address(0), __builtin_frame_address(0))
const struct place_of_post *place_of_post(const void *address, const void *frame);
