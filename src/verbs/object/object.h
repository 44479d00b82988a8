/* The common part of all objects of the verbs: handles, use counts.
 *
 * An object embeds its public struct as its first member, so a public pointer is the object's address. Ownership is a
 * tree with use counts: context > pd > mr, qp, srq, ah; context > cq, channel; an object made through a parent domain
 * uses that, which uses its pd. Destroying an object in use fails with EBUSY. All under process->control.
 *
 * An object that the progress may be using is taken out of its table, then its users' locks are taken and released once
 * (progress_quiesce), then it is freed. For the child of a fork see inherit.h. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "calls/objects.def"
#include "diag/diag.h"

#define OBJECT_KIND(kind, ...) OBJECT_##kind,
enum object_kind {
    CALLS_OBJECTS(OBJECT_KIND, OBJECT_KIND) OBJECT_KINDS,
    OBJECT_FIRST_SHARED = OBJECT_MR, /* from here on: objects that a context of the family may continue to use */
};
#undef OBJECT_KIND

struct context;
struct object;

/* The functions that loops call for objects of every kind. Each kind's module has one constant. */
struct object_class {
    enum object_kind kind;
    const char *name; /* "queue pair", for lines of the log */
    size_t offset;    /* of struct object in the struct that embeds it, which the program knows */
    bool shared;      /* stays in the context's family, which may have imported it */
    /* destroys an object that the program left, even with an overwritten handle or unacknowledged events */
    void (*destroy)(struct object *);
    void (*inherit)(struct object *); /* in the child of a fork: gives the object's locks back; or NULL */
    void (*quiesce)(struct object *); /* takes and gives back the lock under which it uses memory; or NULL */
};

/* The private part of every object. Guarded by process->control. */
struct object {
    const struct object_class *class;
    uint32_t handle; /* as handed out; the program may have overwritten the public copy */
    uint32_t uses;   /* objects that depend on this one */
    struct context *context;
    struct object *origin;       /* the object, if this is only an imported name of it (import.h); or NULL */
    uint32_t names;              /* its imported names */
    bool gone;                   /* destroyed; its memory stays while it has names */
    bool nameless;               /* the name that it was made with is not used any more */
    LIST_ENTRY(object) siblings; /* in context->objects[class->kind], or context->imports */
};

LIST_HEAD(object_list, object);

/* Returns the object of an imported name; or the object itself. */
static inline struct object *object_origin(struct object *name)
{
    return name->origin ? name->origin : name;
}

/* The class of all objects in the list; NULL: the list is empty. */
static inline const struct object_class *object_class_of(const struct object_list *list)
{
    return LIST_EMPTY(list) ? NULL : LIST_FIRST(list)->class;
}

/* The struct that embeds the object. */
static inline void *object_whole(struct object *object)
{
    return (char *)object - object->class->offset;
}

/* Enters an object into its context under a new handle, which it returns; 0 when the limit is reached: then errno is
 * ENOMEM, or the answer of the profile's device, for the caller's result. Counts a use of `parent` unless NULL. Under
 * process->control. */
uint32_t object_enter(struct context *, struct object *, const struct object_class *, uint32_t limit,
                      struct object *parent);
/* Enters an object like object_enter, and takes process->control for that. */
uint32_t object_add(struct context *, struct object *, const struct object_class *, uint32_t limit,
                    struct object *parent);

/* Returns true if the program got this handle for the object, or for its name. If a program overwrites the public copy,
 * no call of control knows the object: calls that make an object with it, or change, query or destroy it, return
 * ENOENT. */
bool object_is_known(const struct object *name, uint32_t handle);

/* Returns true if a handle of this context names the object. False if it is another context's object, unless one of the
 * two was imported from the other: the kernel looks for it in the call's context. Such calls return ENOENT, too. */
bool object_is_here(const struct object *name, const struct context *);

/* Takes an object out, by any of its names (object_release ends these). `handle` is the public struct's: ENOENT when
 * the program overwrote it, or the object was destroyed before. EBUSY when something uses the object; nothing changes
 * then. Otherwise 0, and the use of `parent` is given back. */
int object_leave(struct object *, uint32_t handle, struct object *parent);
/* Takes an object out like object_leave, and takes process->control for that. */
int object_remove(struct object *, uint32_t handle, struct object *parent);

/* Ends a name of an object that may be imported: the object's memory is freed when it was destroyed and has no other
 * name. Under process->control. */
void object_release(struct object *name);

/* Frees the memory of an object that has left its context, or was never entered. While the context is being closed, the
 * memory is kept in context->left: the program may destroy the object afterwards, and is refused then (ENOENT). */
void object_free(struct object *, void *memory);
