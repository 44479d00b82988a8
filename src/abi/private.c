#include "abi/private.h"

#include <errno.h>

#include "abi/export.h"

EXPORT bool verbs_allow_disassociate_destroy;

static int type_of_entry(const struct ibv_gid_entry *entry)
{
    return entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? PRIVATE_GID_ROCE_V2 : PRIVATE_GID_IB_ROCE_V1;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, enum private_gid_type *type)
{
    struct ibv_gid_entry entry;
    const int error = ibv_query_gid_ex(context, port, index, &entry, 0);
    if (error && error != ENODATA) {
        errno = error;
        return -1;
    }
    *type = error == ENODATA ? PRIVATE_GID_IB_ROCE_V1 : type_of_entry(&entry);
    return 0;
}

EXPORT void verbs_register_driver_34(const void *operations)
{
}

EXPORT void __verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...)
{
}

EXPORT unsigned __ioctl_final_num_attrs(unsigned count, void *linked)
{
    return count;
}
