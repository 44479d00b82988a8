/* Layers around all calls that programs make: of libibverbs and, through librdmacm, of its device. A layer has a
 * function for each call that it wants to see, which calls the function below it, or refuses the call. Any thread may
 * put it around and take it off at any time, while others are inside of calls; several can be around at once. Without a
 * layer each call is as it was before there were layers: the exported functions read one pointer, and the pointers of
 * the data path, which programs have in their own structs, are the very functions that do the work.
 *
 * The promises to a layer:
 * - After calls_put_around has returned, every call that begins passes its function, on objects that existed before,
 *   too. It sees all calls of an object whose creation it saw, and as long as it may see a fast call of an object (HELD
 *   in each.def) it sees those that create and destroy (CALL), too.
 * - After calls_take_off has returned, no call that begins passes it.
 * - The functions below it can be called at any time, for any object, also from the function of another call.
 *
 * Its obligations:
 * - Its functions run in many threads at once, and after it was taken off: in threads that were inside of a call, or
 *   just before it. So it and its functions have static storage and are never unloaded, and it asks its `below` each
 *   time (calls_get).
 * - It is put around in the midst of things: it may see wr_complete without wr_start, end_poll without start_poll, an
 *   object whose creation it did not see, the end of a wait whose beginning it did not see; or the first half of these
 *   without the second. So between calls it holds no lock.
 * - Its functions fail as the function below does: a function of CALL reports an error as verbs.def says, and errno is
 * set for it; a function of HELD sets errno itself (base/result.h). They may be cancelled only where verbs.def says
 *   `event`, and in rdma_get_cm_event.
 * - A program that keeps a pointer of the data path (context->ops.post_send) still calls that pointer: past a layer
 *   that came later, and through one that was taken off. A member that a program has overwritten is left alone.
 * - A child of a fork has the layers of its parent. */
#pragma once

#include <infiniband/efadv.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

struct calls_questions;
struct ucma_call; /* calls/command.h */

/* A function for each call. calls.c relies on the order: first CALL, then HELD. Read a table that others can see by
 * calls_get. */
struct calls {
#define CALL(answer, type, name, title, parameters, arguments) type(*name) parameters;
#include "calls/each.def"
#define HELD(answer, type, name, title, parameters, arguments) type(*name) parameters;
#include "calls/each.def"
};

/* The functions of verbs.def that do the work. Their contracts are in the headers of verbs/; here the compiler checks
 * that these agree with the list. */
#define VERB(answer, type, name, work, parameters, arguments) type work parameters;
#define NEWER_VERB(answer, type, name, work, parameters, arguments) type work parameters;
#define MEMBER(table, answer, type, member, name, work, parameters, arguments) type work parameters;
#define FAST(table, answer, type, name, work, parameters, arguments) type work parameters;
#include "calls/verbs.def"

/* The function for this call, to be called: calls_get(&layer->below, ibv_reg_mr)(pd, ...). Read it by this macro each
 * time, as it may be replaced at any time. */
#define calls_get(calls, name) __atomic_load_n(&(calls)->name, __ATOMIC_ACQUIRE)

enum calls_place {
#define CALLS_LAYER(NAME, name) CALLS_PLACE_##NAME,
#include "calls/layers.def"
};

struct calls_layer {
    const char *name;
    int place; /* enum calls_place, unique: a higher place is nearer to the program, whenever the layer was put around
                */
    struct calls calls; /* NULL: the layer does not want to see this call */

    /* calls.c alone uses the rest. */
    struct calls below;
    SLIST_ENTRY(calls_layer) next; /* the layer above */
    bool around;
};

/* Puts the layer around, unless it is around. Thread-safe; the caller holds no lock of LOCK_CALLS or after it. */
void calls_put_around(struct calls_layer *);

/* Takes the layer off, if it is around. Thread-safe; locks as calls_put_around. */
void calls_take_off(struct calls_layer *);

/* --- below: for code that makes and answers calls */

/* Sets the bottom of all layers, and the answers to their questions (calls/questions.h); both live for ever. Call it
 * before any layer is put around. Where objects differ, the bottom's functions of HELD find their work by the object.
 */
void calls_begin(const struct calls *bottom, const struct calls_questions *);

/* The functions that programs' calls use; NULL: there is no layer. */
extern const struct calls *_Atomic calls_top;

static inline const struct calls *calls_around(void)
{
    return atomic_load_explicit(&calls_top, memory_order_acquire);
}

/* A change of pointers in a program's struct from `before` to `after`. A function of `bottom` there means the object's
 * own function. */
struct calls_change {
    const struct calls *bottom, *before, *after;
};

/* A program's struct with function pointers, and how to change them. */
struct calls_holder {
    LIST_ENTRY(calls_holder) siblings;
    void (*change)(struct calls_holder *, const struct calls_change *); /* NULL: it has not entered */
};

/* Makes a struct that holds its own functions, and that no other thread knows, follow the layers until calls_leave.
 * Thread-safe; the caller holds no lock of LOCK_CALLS or after it. */
void calls_enter(struct calls_holder *, void (*change)(struct calls_holder *, const struct calls_change *));
/* Makes the struct follow the layers no longer. Does nothing if it never entered. Thread-safe; locks as calls_enter. */
void calls_leave(struct calls_holder *);

/* For a holder's function `change`: makes the member hold `own`, or the layers' function for the call `name`. Programs
 * read it plainly meanwhile, and get the old or the new one, as it is an aligned word; ThreadSanitizer would call that
 * a race. */
#define CALLS_CHANGER __attribute__((no_sanitize("thread")))
#define CALLS_CHANGE(change, member, name, own)                                                                        \
    do {                                                                                                               \
        __typeof__(member) calls_bottom = (change)->bottom->name, calls_old = (change)->before->name,                  \
                           calls_new = (change)->after->name;                                                          \
        calls_old = calls_old == calls_bottom ? (own) : calls_old;                                                     \
        calls_new = calls_new == calls_bottom ? (own) : calls_new;                                                     \
        if ((member) == calls_old && calls_old != calls_new)                                                           \
            __atomic_store_n(&(member), calls_new, __ATOMIC_RELEASE);                                                  \
    } while (0)
