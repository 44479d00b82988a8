/* The callers that are found without the unwinder are the unwinder's. The posts are made by a library, as frames of the
 * program itself are taken for the library's own. */
#include "check/findings/place_of_post.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "check/findings/place.h"
#include "check/findings/symbol.h"
#include "check/findings/testing/frames.h"

enum { WALKS = 4000, DEPTHS = 12 };

/* The walks of which all frames are found. In a build with a sanitizer the walk and the unwinder differ, so that a post
 * keeps one frame. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const unsigned least = 0;
#else
static const unsigned least = WALKS;
#endif

static char **libraries;
static int count;
static _Thread_local unsigned whole, wrong;

/* A function of the data path. */
static unsigned post(void)
{
    struct place here;
    const struct place_of_post *place = PLACE_OF_POST;
    place_here(&here);
    whole += place->count == PLACE_OF_POST_FRAMES;
    wrong += memcmp(place->frames, here.frames, place->count * sizeof *place->frames) != 0;
    return 0;
}

static void *walk_often(void *of)
{
    static const unsigned none;
    frames_walk *walk = *(frames_walk **)of;
    whole = wrong = 0;
    for (unsigned seed = 0; seed < WALKS; seed++)
        if (walk(seed * 7919, 4 + seed % DEPTHS, post) < 4)
            return (void *)&none;
    return wrong || whole < least ? (void *)&none : NULL;
}

static void the_callers_of_a_post_are_the_unwinder_s(void **state)
{
    if (symbol_step(__builtin_return_address(0))->base == SYMBOL_NO_BASE)
        skip(); /* without libdw, or on another processor, a post has one frame */
    for (int i = 0; i < count; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        frames_walk *walk = (frames_walk *)dlsym(library, "walk");
        pthread_t thread;
        void *other;
        assert_int_equal(pthread_create(&thread, NULL, walk_often, &walk), 0);
        void *own = walk_often(&walk);
        pthread_join(thread, &other);
        assert_null(own);
        assert_null(other);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_callers_of_a_post_are_the_unwinder_s)};
    libraries = argv + 1;
    count = argc - 1;
    place_begin();
    symbol_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
