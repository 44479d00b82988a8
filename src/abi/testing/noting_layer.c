/* A layer of notes.h: LAYER is its variable, PLACE its place. */
#include "abi/testing/notes.h"

#define TEXT(word) TEXT_OF(word)
#define TEXT_OF(word) #word

#define CALL(answer, type, name, title, parameters, arguments)                                                         \
    static type note_##name parameters                                                                                 \
    {                                                                                                                  \
        notes_add(&LAYER, title, CALLS_SUBJECT arguments);                                                             \
        return calls_get(&LAYER.below, name) arguments;                                                                \
    }
#define HELD CALL
#include "calls/each.def"

struct calls_layer LAYER = {
    .name = TEXT(LAYER),
    .place = PLACE,
    .calls =
        {
#define CALL(answer, type, name, ...) .name = note_##name,
#define HELD CALL
#include "calls/each.def"
        },
};
