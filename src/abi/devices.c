/* Devices and contexts: what libibverbs exports of them. Each function is its manual page's; verbs/ does the work. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/assembly.h"
#include "abi/export.h"
#include "abi/operations.h"
#include "abi/ucma/attach.h"
#include "base/result.h"
#include "verbs/object/context.h"
#include "verbs/object/device.h"

#undef ibv_get_device_list
#undef ibv_query_port

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    attach();
    return RESULT_pointer(context_device_list(count));
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    RESULT_nothing(free(list));
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return -1; /* the kernel's number of the device: there is none */
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return context_device_guid(device);
}

static struct ibv_context *finish(struct context *context)
{
    if (!context)
        return NULL;
    operations_fill(context);
    return &context->ibv.context;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return RESULT_pointer(finish(context_open(device, &assembly_parts)));
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    return RESULT_pointer(finish(context_import(cmd_fd, &assembly_parts)));
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
    RESULT_nothing(context_close(context_of(context)));
    return 0;
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    RESULT_nothing(device_query(context_of(context), attr));
    return 0;
}

/* Programs built before port_cap_flags2 existed pass a struct that ends before it. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return RESULT_code(device_query_port(context, port, (struct ibv_port_attr *)attr,
                                         offsetof(struct ibv_port_attr, port_cap_flags2)));
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    return RESULT_minus(device_query_gid(context, port, index, gid));
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    return RESULT_minus(device_query_pkey(context, port, index, pkey));
}

static int find_pkey(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 found;
    for (int index = 0; !device_query_pkey(context, port, index, &found); index++)
        if (found == pkey)
            return index;
    return -1;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    return RESULT_minus(find_pkey(context, port, pkey));
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                             uint32_t flags, size_t entry_size)
{
    if (flags)
        return result_failure(EOPNOTSUPP);
    return RESULT_code(device_query_gid_entry(context, port, index, entry, entry_size));
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most,
                                    uint32_t flags, size_t entry_size)
{
    if (flags)
        return -result_failure(EOPNOTSUPP);
    return RESULT_negative(device_query_gid_table(context, entries, most, entry_size));
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[6],
                                       uint16_t *vid)
{
    return RESULT_minus(device_resolve_mac(context, attr, mac, vid));
}
