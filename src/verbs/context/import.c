#include "verbs/context/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "diag/sentence.h"
#include "events/refusal.h"
#include "verbs/memory/dm.h"
#include "verbs/memory/mr.h"
#include "verbs/object/control.h"
#include "verbs/object/domain.h"

static const char signature[] = "softverbs context of process ";

static int import_fail(int fd, int error)
{
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

int import_make_descriptor(void)
{
    char text[sizeof signature + 16];
    int length = snprintf(text, sizeof text, "%s%d\n", signature, (int)getpid());
    if (file_limit_forbids((uint64_t)length))
        return import_fail(-1, EFBIG);
    int fd = memfd_create("softverbs context", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (write(fd, text, (size_t)length) != length)
        return import_fail(fd, ENOSPC);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return fd;
}

bool import_identify(int fd, struct context_identity *identity)
{
    struct stat status;
    if (fstat(fd, &status))
        return false;
    *identity = (struct context_identity){status.st_dev, status.st_ino};
    return true;
}

int import_refuse(int fd)
{
    char start[sizeof signature - 1];
    if (fcntl(fd, F_GETFD) < 0)
        return refuse(EBADF, REASON_DESCRIPTOR, "fd %d", fd);
    ssize_t length = pread(fd, start, sizeof start, 0);
    bool other = length == sizeof start && !memcmp(start, signature, sizeof start);
    return other ? refuse(EOPNOTSUPP, REASON_IMPORT_PROCESS, "fd %d", fd)
                 : refuse(EINVAL, REASON_IMPORT_DESCRIPTOR, "fd %d", fd);
}

static struct object *import_find(const struct context *context, enum object_kind kind, uint32_t handle)
{
    struct context *each;
    struct object *object;
    LIST_FOREACH (each, &process_objects(context->process)->contexts, siblings)
        if (context_is_family(each, context))
            LIST_FOREACH (object, &each->objects[kind], siblings)
                if (object->handle == handle)
                    return object;
    return NULL;
}

/* Gives the new name its object; false: no object of the family has that handle. */
static bool import_enter(struct context *context, const struct object_class *class, uint32_t handle,
                         struct object *name)
{
    struct object *object = import_find(context, class->kind, handle);
    if (!object)
        return false;
    *name = (struct object){.class = class, .handle = handle, .context = context, .origin = object};
    LIST_INSERT_HEAD(&context->imports, name, siblings);
    object->names++;
    return true;
}

/* Makes a name, which is as large as an object of its kind; NULL and errno. */
static void *import(struct context *context, const struct object_class *class, uint32_t handle, size_t size)
{
    char *name = calloc(1, size);
    if (!name)
        return NULL;
    control_lock(context);
    bool found = import_enter(context, class, handle, (struct object *)(name + class->offset));
    control_unlock(context);
    if (found)
        return name;
    free(name);
    return refused_null(refuse(ENOENT, REASON_IMPORT_HANDLE, OBJECT_NAMED, class->name, handle));
}

struct ibv_pd *import_pd(struct ibv_context *context, uint32_t handle)
{
    struct pd *pd = import(context_of(context), &pd_class, handle, sizeof *pd);
    if (!pd)
        return NULL;
    pd->ibv.context = context;
    pd->ibv.handle = handle;
    return &pd->ibv;
}

struct ibv_mr *import_mr(struct ibv_pd *pd, uint32_t handle)
{
    if (!pd_is_known(pd))
        return refused_null(ENOENT);
    struct mr *mr = import(context_of(pd->context), &mr_class, handle, sizeof *mr);
    if (!mr)
        return NULL;
    const struct ibv_mr *origin = &mr_of(&mr->ibv)->ibv;
    mr->ibv = (struct ibv_mr){.context = pd->context,
                              .pd = pd,
                              .length = origin->length,
                              .handle = handle,
                              .lkey = origin->lkey,
                              .rkey = origin->rkey};
    return &mr->ibv;
}

struct ibv_dm *import_dm(struct ibv_context *context, uint32_t handle)
{
    struct dm *dm = import(context_of(context), &dm_class, handle, sizeof *dm);
    if (!dm)
        return NULL;
    dm->ibv = dm_of(&dm->ibv)->ibv;
    dm->ibv.context = context;
    return &dm->ibv;
}

void import_undo(struct object *name)
{
    struct context *context = name->context;
    control_lock(context);
    object_release(name);
    control_unlock(context);
}

static struct context *find_heir(struct context *context)
{
    struct context *each;
    LIST_FOREACH (each, &process_objects(context->process)->contexts, siblings)
        if (each != context && context_is_family(each, context))
            return each;
    return NULL;
}

/* Moves an object to another context of the family. The public structs of shared objects begin with their context. */
static void move(struct object *object, struct context *heir)
{
    LIST_REMOVE(object, siblings);
    object->context->counts[object->class->kind]--;
    object->context = heir;
    object->nameless = true;
    *(struct ibv_context **)object_whole(object) = &heir->ibv.context;
    LIST_INSERT_HEAD(&heir->objects[object->class->kind], object, siblings);
    heir->counts[object->class->kind]++;
}

void import_close(struct context *context)
{
    struct context *heir = find_heir(context);
    while (!LIST_EMPTY(&context->imports))
        object_release(LIST_FIRST(&context->imports));
    for (enum object_kind kind = OBJECT_FIRST_SHARED; heir && kind < OBJECT_KINDS; kind++) {
        const struct object_class *class = object_class_of(&context->objects[kind]);
        while (class && class->shared && !LIST_EMPTY(&context->objects[kind]))
            move(LIST_FIRST(&context->objects[kind]), heir);
    }
}
