/* How layers come and go while the program's threads run.
 *
 * For each call there is a chain of functions: the program's view (`top`), then the function of the layer with the
 * highest place that wants the call, and so on to the bottom. It is kept as pointers: `top` and each layer's `below`
 * have a full table of the next functions, so a thread follows the chain without a lock, and each of its steps is one
 * load of an aligned word that is replaced as a whole. A change makes the tables anew, call by call and from the bottom
 * up, under `changing`. In any mixture of old and new that a thread meets, each pointer leads to a lower place, as
 * places are given and never change: it ends at the bottom, and passes each layer at most once.
 *
 * Joining:
 * 1. The layer gets all that is below it; no thread knows it yet. Programs read what they call plainly, so on
 *    processors that may load the functions below before that, the kernel puts a fence into each thread (on x86-64 no
 *    fence is needed, so a refusal of the kernel does no harm).
 * 2. The chains of slow calls (CALL).
 * 3. The chains of fast calls (HELD), in the tables.
 * 4. The same in the structs of all holders, whose functions programs call.
 *
 * Leaving: 3., 4., then 2. So while a layer is reached by a fast call of an object, it is reached by calls that create
 * and destroy: it never takes an object for one that has long been destroyed and whose memory is used again. Nothing is
 * taken from a layer that leaves: its own `below` still leads to the bottom, for the threads that are inside. When a
 * layer below it leaves later, these threads still pass that layer, which bears it as well.
 *
 * An object is made and enters the list of holders under `changing`, so no change happens between its first look at the
 * tables and its place in the list. When its creation passed a layer, then step 2 was before, and the object either
 * waits for step 4 or is made after it: the program gets it with the layer's functions. It leaves the list when it is
 * about to be freed, when no thread of a proper program is inside its functions.
 *
 * A thread between wr_start and wr_complete, or start_poll and end_poll, holds the object's lock, which no function
 * here knows: the functions of the bottom find the batch in the object, whichever way they are reached.
 *
 * A fork waits for `changing` like for all locks, so a child finds lists and tables whole. */
#include "calls/calls.h"

#include <stddef.h>

#include "base/static_lock.h"
#include "calls/questions.h"
#include "link/fence.h"

/* A table of calls is read and written as what it is: pointers in a row. */
typedef void function(void);
typedef function *_Atomic slot __attribute__((may_alias));

enum {
#define CALL(answer, type, name, title, parameters, arguments) SLOW_##name,
#include "calls/each.def"
    SLOW,
    ALL = sizeof(struct calls) / sizeof(slot)
};

MUTEX_STATIC(changing, LOCK_CALLS);
static LIST_HEAD(, calls_holder) holders = LIST_HEAD_INITIALIZER(holders);
static SLIST_HEAD(, calls_layer) layers = SLIST_HEAD_INITIALIZER(layers); /* the lowest first */
static const struct calls *bottom;
static struct calls top;

const struct calls *_Atomic calls_top;
const struct calls_questions *calls_questions;

static function *get(const struct calls *calls, size_t at)
{
    return atomic_load_explicit((const slot *)calls + at, memory_order_relaxed);
}

static void put(struct calls *calls, size_t at, function *what)
{
    atomic_store_explicit((slot *)calls + at, what, memory_order_release);
}

static void copy(struct calls *to, const struct calls *from)
{
    for (size_t at = 0; at < ALL; at++)
        put(to, at, get(from, at));
}

/* Links the chains of the calls from `from` to before `to`. */
static void link_chains(size_t from, size_t to)
{
    lock_assert_held(&changing);
    for (size_t at = from; at < to; at++) {
        function *next = get(bottom, at);
        struct calls_layer *layer;
        SLIST_FOREACH(layer, &layers, next)
        {
            put(&layer->below, at, next);
            function *own = get(&layer->calls, at);
            next = own ? own : next;
        }
        put(&top, at, next);
    }
}

static void change_holders(const struct calls *before)
{
    lock_assert_held(&changing);
    struct calls_holder *holder;
    LIST_FOREACH (holder, &holders, siblings)
        holder->change(holder, &(struct calls_change){bottom, before, &top});
}

/* The layer below this one; NULL: it is the lowest. */
static struct calls_layer *find_below(const struct calls_layer *joining)
{
    lock_assert_held(&changing);
    struct calls_layer *layer, *below = NULL;
    SLIST_FOREACH(layer, &layers, next)
    if (layer->place < joining->place)
        below = layer;
    return below;
}

static void insert(struct calls_layer *joining)
{
    struct calls_layer *below = find_below(joining);
    struct calls_layer *above = below ? SLIST_NEXT(below, next) : SLIST_FIRST(&layers);
    copy(&joining->below, above ? &above->below : &top);
    if (below)
        SLIST_INSERT_AFTER(below, joining, next);
    else
        SLIST_INSERT_HEAD(&layers, joining, next);
    joining->around = true;
}

void calls_begin(const struct calls *calls, const struct calls_questions *answers)
{
    bottom = calls;
    calls_questions = answers;
    copy(&top, calls);
}

static void join(struct calls_layer *layer)
{
    static struct calls before;
    copy(&before, &top);
    insert(layer);
    fence_everywhere_prepare(); /* makes a fence, too */
    link_chains(0, SLOW);
    atomic_store_explicit(&calls_top, &top, memory_order_release);
    link_chains(SLOW, ALL);
    change_holders(&before);
}

static void leave(struct calls_layer *layer)
{
    static struct calls before;
    copy(&before, &top);
    SLIST_REMOVE(&layers, layer, calls_layer, next);
    layer->around = false;
    link_chains(SLOW, ALL);
    change_holders(&before);
    link_chains(0, SLOW);
    if (SLIST_EMPTY(&layers))
        atomic_store_explicit(&calls_top, NULL, memory_order_release);
}

void calls_put_around(struct calls_layer *layer)
{
    mutex_take(&changing);
    if (!layer->around)
        join(layer);
    mutex_release(&changing);
}

void calls_take_off(struct calls_layer *layer)
{
    mutex_take(&changing);
    if (layer->around)
        leave(layer);
    mutex_release(&changing);
}

void calls_enter(struct calls_holder *holder, void (*change)(struct calls_holder *, const struct calls_change *))
{
    mutex_take(&changing);
    holder->change = change;
    LIST_INSERT_HEAD(&holders, holder, siblings);
    if (!SLIST_EMPTY(&layers))
        change(holder, &(struct calls_change){bottom, bottom, &top});
    mutex_release(&changing);
}

void calls_leave(struct calls_holder *holder)
{
    if (!holder->change)
        return;
    mutex_take(&changing);
    LIST_REMOVE(holder, siblings);
    mutex_release(&changing);
}
