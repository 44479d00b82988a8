#include "verbs/kinds/xrc/xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file_lock.h"
#include "events/refusal.h"
#include "verbs/object/control.h"

struct xrc_domain {
    LIST_ENTRY(xrc_domain) siblings; /* in process_objects.domains */
    const struct device *device;
    bool named; /* belongs to the inode; otherwise no other process can open it */
    dev_t volume;
    ino_t inode;
    uint32_t opens;
    int lock; /* descriptor of the file in which a byte for the inode is locked while the domain exists here; or -1 */
};

/* Returns the offset of the domain's byte: FNV-1a, to 62 bits, which fit an off_t. */
static off_t lock_offset(const struct xrc_domain *domain)
{
    uint64_t words[] = {domain->device->index, domain->volume, domain->inode}, hash = 14695981039346656037ull;
    for (size_t i = 0; i < sizeof words; i++)
        hash = (hash ^ ((uint8_t *)words)[i]) * 1099511628211ull;
    return (off_t)(hash >> 2);
}

static int lock_byte(const struct xrc_domain *domain, int command, short type, struct flock *result)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = lock_offset(domain), .l_len = 1};
    int error = fcntl(domain->lock, command, &lock) ? errno : 0;
    if (result)
        *result = lock;
    return error;
}

static int refuse_existing(const struct xrc_domain *domain)
{
    return refuse(EINVAL, REASON_XRCD_EXISTS, "inode %llu", (unsigned long long)domain->inode);
}

/* Makes the domain exist in this process. Every process with the domain holds a read lock; the one that gets the write
 * lock is the first. Locks end with the process, however it ends. POSIX locks would also end when another file of the
 * same inode is closed. */
static int claim(struct xrc_domain *domain, int flags)
{
    struct flock other;
    if (!(flags & O_CREAT)) {
        lock_byte(domain, F_OFD_GETLK, F_WRLCK, &other);
        if (other.l_type == F_UNLCK)
            return refuse(EAGAIN, REASON_XRCD_MISSING, "inode %llu", (unsigned long long)domain->inode);
    } else if (!lock_byte(domain, F_OFD_SETLK, F_WRLCK, NULL)) {
        return lock_byte(domain, F_OFD_SETLK, F_RDLCK, NULL);
    } else if (flags & O_EXCL) {
        return refuse_existing(domain);
    }
    if (file_lock_byte(domain->lock, F_RDLCK, lock_offset(domain))) /* the first may be stopped */
        return refuse(EBUSY, REASON_XRCD_LOCKED, "inode %llu", (unsigned long long)domain->inode);
    return 0;
}

static int open_lock(struct process *process)
{
    char path[NODE_DIRECTORY_MAX + 16];
    if (process->forked)
        return refused_minus(refuse(ENODEV, REASON_FORKED, "an XRC domain"));
    snprintf(path, sizeof path, "%s/xrc-domains", node_path(process->node));
    return descriptor_raise(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

bool xrcd_key(const struct xrc_domain *domain, struct xrcd_key *key)
{
    *key = (struct xrcd_key){domain->device->index, domain->volume, domain->inode};
    return domain->named;
}

bool xrcd_is(const struct xrc_domain *domain, const struct xrcd_key *key)
{
    return domain->named && domain->device->index == key->device && domain->volume == key->volume &&
           domain->inode == key->inode;
}

static struct xrc_domain *xrcd_find(const struct context *context, const struct stat *inode)
{
    struct xrc_domain *domain;
    LIST_FOREACH (domain, &process_objects(context->process)->domains, siblings)
        if (domain->named && domain->device == context->device && domain->volume == inode->st_dev &&
            domain->inode == inode->st_ino)
            return domain;
    return NULL;
}

static void xrcd_release(struct xrc_domain *domain)
{
    LIST_REMOVE(domain, siblings);
    if (domain->lock >= 0)
        close(domain->lock);
    free(domain);
}

void xrcd_inherit(struct process *process)
{
    struct xrc_domain *domain;
    LIST_FOREACH (domain, &process_objects(process)->domains, siblings)
        if (domain->lock >= 0) {
            close(domain->lock);
            domain->lock = -1;
        }
}

/* Makes a domain; `inode` NULL: an anonymous one. Returns NULL and *error. */
static struct xrc_domain *xrcd_make(struct context *context, const struct stat *inode, int flags, int *error)
{
    struct xrc_domain *domain = calloc(1, sizeof *domain);
    *error = domain ? 0 : ENOMEM;
    if (!domain)
        return NULL;
    *domain = (struct xrc_domain){.device = context->device, .lock = -1};
    LIST_INSERT_HEAD(&process_objects(context->process)->domains, domain, siblings);
    if (!inode)
        return domain;
    domain->named = true;
    domain->volume = inode->st_dev;
    domain->inode = inode->st_ino;
    domain->lock = open_lock(context->process);
    *error = domain->lock < 0 ? errno : claim(domain, flags);
    if (!*error)
        return domain;
    xrcd_release(domain);
    return NULL;
}

static struct xrc_domain *find_or_make(struct context *context, const struct stat *inode, int flags, int *error)
{
    struct xrc_domain *domain = inode ? xrcd_find(context, inode) : NULL;
    *error = domain && (flags & O_CREAT) && (flags & O_EXCL) ? refuse_existing(domain) : 0;
    if (*error)
        return NULL;
    return domain ? domain : xrcd_make(context, inode, flags, error);
}

static void xrcd_destroy_left(struct object *object)
{
    xrcd_close(object_whole(object));
}

static const struct object_class xrcd_class = {
    .kind = OBJECT_XRCD,
    .name = "XRC domain",
    .offset = offsetof(struct xrcd, object),
    .destroy = xrcd_destroy_left,
};

static struct xrcd *open_domain(struct context *context, const struct stat *inode, int flags, int *error)
{
    struct xrcd *xrcd = calloc(1, sizeof *xrcd);
    *error = xrcd ? 0 : ENOMEM;
    if (!xrcd)
        return NULL;
    xrcd->ibv.context = &context->ibv.context;
    control_lock(context);
    xrcd->domain = find_or_make(context, inode, flags, error);
    if (xrcd->domain) {
        xrcd->domain->opens++;
        object_enter(context, &xrcd->object, &xrcd_class, UINT32_MAX, NULL);
    }
    control_unlock(context);
    if (xrcd->domain)
        return xrcd;
    free(xrcd);
    return NULL;
}

static int xrcd_check(const struct ibv_xrcd_init_attr *attr)
{
    const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED)
        return refuse(EOPNOTSUPP, REASON_UNKNOWN_BITS, "comp_mask is 0x%x", attr->comp_mask);
    if ((attr->comp_mask & needed) != needed)
        return refuse(EINVAL, REASON_XRCD_ATTRIBUTES, "comp_mask is 0x%x", attr->comp_mask);
    if (attr->oflags & ~(O_CREAT | O_EXCL))
        return refuse(EINVAL, REASON_XRCD_FLAGS, "oflags are 0x%x", attr->oflags);
    return 0;
}

struct ibv_xrcd *xrcd_open(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
    struct stat inode;
    int error = xrcd_check(attr);
    if (error)
        return refused_null(error);
    if (attr->fd != -1 && fstat(attr->fd, &inode))
        return refused_null(refuse(errno, REASON_DESCRIPTOR, "fd %d", attr->fd));
    struct xrcd *xrcd = open_domain(context_of(ibv), attr->fd == -1 ? NULL : &inode, attr->oflags, &error);
    return xrcd ? &xrcd->ibv : refused_null(error);
}

int xrcd_close(struct ibv_xrcd *ibv)
{
    struct xrcd *xrcd = (struct xrcd *)ibv;
    struct context *context = xrcd->object.context;
    control_lock(context);
    int error = object_leave(&xrcd->object, xrcd->object.handle, NULL);
    if (!error && !--xrcd->domain->opens)
        xrcd_release(xrcd->domain);
    control_unlock(context);
    if (!error)
        object_free(&xrcd->object, xrcd);
    return error;
}
