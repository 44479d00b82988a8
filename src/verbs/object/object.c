#include "verbs/object/object.h"

#include <errno.h>

#include "calls/handle.h"
#include "config/settings.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "profile/profile.h"
#include "verbs/object/control.h"

/* The error number with which the profile's device refuses one more of this kind. */
static int error_of_profile(const struct profile *profile, enum object_kind kind)
{
    static const enum profile_key keys[OBJECT_KINDS] = {
        [OBJECT_QP] = PROFILE_errno_qp_count, [OBJECT_CQ] = PROFILE_errno_cq_count,
        [OBJECT_MR] = PROFILE_errno_mr_count, [OBJECT_PD] = PROFILE_errno_pd_count,
        [OBJECT_AH] = PROFILE_errno_ah_count, [OBJECT_SRQ] = PROFILE_errno_srq_count,
        [OBJECT_MW] = PROFILE_errno_mw_count,
    };
    return (int)profile->values[keys[kind] ? keys[kind] : PROFILE_errno_count];
}

/* Refuses an object beyond a limit. With a profile the limit is the profile's, or one that the user set besides. */
static int refuse_number(const struct object_class *class, uint32_t number, uint32_t limit)
{
    const struct profile *profile = setting_profile();
    if (profile)
        return refuse(error_of_profile(profile, class->kind), REASON_PROFILE_COUNT,
                      "profile %s: %s number %u, of at most %u", profile->name, class->name, number, limit);
    return refuse(ENOMEM, REASON_LIMIT, "%s number %u, of at most %u", class->name, number, limit);
}

uint32_t object_enter(struct context *context, struct object *object, const struct object_class *class, uint32_t limit,
                      struct object *parent)
{
    lock_assert_held(&context->process->control);
    if (context->counts[class->kind] >= limit) {
        errno = refuse_number(class, context->counts[class->kind] + 1, limit);
        return 0;
    }
    context->counts[class->kind]++;
    *object =
        (struct object){.class = class, .handle = ++process_objects(context->process)->next_handle, .context = context};
    LIST_INSERT_HEAD(&context->objects[class->kind], object, siblings);
    if (parent)
        parent->uses++;
    return object->handle;
}

bool object_is_known(const struct object *name, uint32_t handle)
{
    if (handle == name->handle)
        return true;
    refuse(ENOENT, REASON_HANDLE, "a " OBJECT_NAMED ", which was made as %u", name->class->name, handle, name->handle);
    return false;
}

bool object_is_here(const struct object *name, const struct context *context)
{
    if (name->context == context || context_is_family(name->context, context))
        return true;
    refuse(ENOENT, REASON_OTHER_CONTEXT, "the " OBJECT_NAMED, name->class->name, name->handle);
    return false;
}

uint32_t object_add(struct context *context, struct object *object, const struct object_class *class, uint32_t limit,
                    struct object *parent)
{
    control_lock(context);
    uint32_t handle = object_enter(context, object, class, limit, parent);
    control_unlock(context);
    return handle;
}

/* 0, or the errno with which the object stays. */
static int check_leave(const struct object *object, uint32_t handle)
{
    if (!object_is_known(object, handle))
        return refused(ENOENT);
    if (object->gone)
        return refuse(ENOENT, REASON_HANDLE, "the " OBJECT_NAMED ", which was destroyed", object->class->name, handle);
    if (object->uses)
        return refuse(EBUSY, REASON_IN_USE, "the " OBJECT_NAMED " has %u user%s", object->class->name, handle,
                      object->uses, plural(object->uses));
    return 0;
}

int object_leave(struct object *name, uint32_t handle, struct object *parent)
{
    if (!name->context->process) /* the context is closed, and its process may have ended */
        return refuse(ENOENT, REASON_HANDLE, "the " OBJECT_NAMED ", which was destroyed when its device was closed",
                      name->class->name, name->handle);
    lock_assert_held(&name->context->process->control);
    struct object *object = object_origin(name);
    int error = check_leave(object, handle);
    if (error)
        return error;
    object->gone = true;
    LIST_REMOVE(object, siblings);
    object->context->counts[object->class->kind]--;
    if (parent)
        parent->uses--;
    return 0;
}

int object_remove(struct object *name, uint32_t handle, struct object *parent)
{
    struct context *context = name->context;
    control_lock(context);
    int error = object_leave(name, handle, parent);
    control_unlock(context);
    return error;
}

static void object_keep(struct object *object, struct context *context)
{
    object->gone = true;
    object->origin = NULL;
    object->context = context;
    LIST_INSERT_HEAD(&context->left, object, siblings);
}

static void free_within(struct context *context, struct object *object, void *memory)
{
    if (context && context->closing)
        object_keep(object, context);
    else
        handle_free(memory);
}

void object_free(struct object *object, void *memory)
{
    free_within(object->class ? object->context : NULL, object, memory);
}

/* The context of a destroyed object may have been closed before the context of its last name. */
void object_release(struct object *name)
{
    struct context *context = name->context;
    lock_assert_held(&name->context->process->control);
    struct object *object = object_origin(name);
    if (name == object) {
        object->nameless = true;
    } else {
        LIST_REMOVE(name, siblings);
        object->names--;
        free_within(context, name, object_whole(name));
    }
    if (object->gone && object->nameless && !object->names)
        free_within(context, object, object_whole(object));
}
