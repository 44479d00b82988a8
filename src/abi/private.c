#include "abi/private.h"

#include <errno.h>

#include "abi/version.h"
#include "versions.h"

EXPORT_VERSIONED bool verbs_allow_disassociate_destroy;
VERSIONS_OF_verbs_allow_disassociate_destroy

    static int
    type_of_entry(const struct ibv_gid_entry *entry)
{
    return entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? PRIVATE_GID_ROCE_V2 : PRIVATE_GID_IB_ROCE_V1;
}

EXPORT_VERSIONED int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index,
                                        enum private_gid_type *type)
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
VERSIONS_OF_ibv_query_gid_type

#define REGISTER_DRIVER(release)                                                                                       \
    EXPORT void verbs_register_driver_##release(const void *operations)                                                \
    {                                                                                                                  \
    }

    REGISTER_DRIVER(25) REGISTER_DRIVER(33) REGISTER_DRIVER(34) REGISTER_DRIVER(57) REGISTER_DRIVER(59)
        REGISTER_DRIVER(64) REGISTER_DRIVER(65)

            EXPORT_VERSIONED void __verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...)
{
}
VERSIONS_OF___verbs_log

    EXPORT_VERSIONED unsigned
    __ioctl_final_num_attrs(unsigned count, void *linked)
{
    return count;
}
VERSIONS_OF___ioctl_final_num_attrs
