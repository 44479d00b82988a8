/* Posts the first work requests of a list, for layers that handle one of the later requests themselves. */
#pragma once

enum { CALLS_COPIES = 16 };

/* Defines `post_some_NAME(on, wr, count, bad)`: it posts the first `count` work requests of a longer list by `post`,
 * and fails as that does. It posts copies: the program's list may be constant, or another thread may post it at the
 * same time. */
#define CALLS_POST_SOME(name, object, work, post)                                                                      \
    static int post_some_##name(object *on, work *wr, unsigned count, work **bad)                                      \
    {                                                                                                                  \
        work copies[CALLS_COPIES], *failed = NULL;                                                                     \
        while (count) {                                                                                                \
            unsigned part = count < CALLS_COPIES ? count : CALLS_COPIES;                                               \
            work *begin = wr;                                                                                          \
            for (unsigned i = 0; i < part; i++, wr = wr->next) {                                                       \
                copies[i] = *wr;                                                                                       \
                copies[i].next = i + 1 < part ? &copies[i + 1] : NULL;                                                 \
            }                                                                                                          \
            int error = post(on, copies, &failed);                                                                     \
            if (error) {                                                                                               \
                for (*bad = begin; failed > copies; failed--)                                                          \
                    *bad = (*bad)->next;                                                                               \
                return error;                                                                                          \
            }                                                                                                          \
            count -= part;                                                                                             \
        }                                                                                                              \
        return 0;                                                                                                      \
    }
