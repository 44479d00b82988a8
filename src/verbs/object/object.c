
#include <errno.h>

#include "diag/log.h"
#include "verbs/object/words.h"

uint32_t object_enter(struct context *context, struct object *object, enum object_kind kind, uint32_t limit,
                      struct object *parent)
{
    if (context->counts[kind] >= limit) {
        log_reason(LOG_WARN, REASON_LIMIT, "making a %s", words_object(kind));
        errno = ENOMEM;
        return 0;
    }
    context->counts[kind]++;
    *object = (struct object){.kind = kind, .handle = ++context->process->next_handle, .context = context};
    LIST_INSERT_HEAD(&context->objects[kind], object, siblings);
    if (parent)
        parent->uses++;
    return object->handle;
}

bool object_is_known(const struct object *name, uint32_t handle)
{
    if (handle == name->handle)
        return true;
    log_reason(LOG_WARN, REASON_HANDLE, "%s with handle %u", words_object(name->kind), handle);
    return false;
}

bool object_is_here(const struct object *name, const struct context *context)
{
    if (name->context == context || context_is_family(name->context, context))
        return true;
    log_reason(LOG_WARN, REASON_OTHER_CONTEXT, "%s with handle %u", words_object(name->kind), name->handle);
    return false;
}

int object_leave(struct object *name, uint32_t handle, struct object *parent)
{
    struct object *object = object_origin(name);
    if (handle != object->handle || object->gone) {
        log_reason(LOG_WARN, REASON_HANDLE, "destroying the %s with handle %u", words_object(object->kind), handle);
        return ENOENT;
    }
    if (object->uses) {
        log_reason(LOG_WARN, REASON_IN_USE, "destroying the %s with handle %u: %u users are left",
                   words_object(object->kind), handle, object->uses);
        return EBUSY;
    }
    object->gone = true;
    LIST_REMOVE(object, siblings);
    object->context->counts[object->kind]--;
    if (parent)
        parent->uses--;
    return 0;
}
