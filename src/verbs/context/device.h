/* The attributes of a device: ibv_query_device_ex(3), ibv_query_port(3), ibv_query_gid(3), ibv_query_pkey(3),
 * ibv_query_rt_values_ex(3). Thread-safe; 0 or a positive errno unless said otherwise. */
#pragma once

#include "verbs/object/context.h"

enum { DEVICE_COMP_VECTORS = 4, DEVICE_CLOCK_KHZ = 1000000 };

void device_query(const struct context *, struct ibv_device_attr *);
/* Writes at most `size` bytes of *attr. EINVAL: unknown input bits. */
int device_query_ex(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *,
                    size_t size);
/* Writes at most `size` bytes of *attr. EINVAL: the port does not exist. */
int device_query_port(struct ibv_context *, uint8_t port, struct ibv_port_attr *, size_t size);
/* ibv_query_port_speed(3): in units of 100 Mb/s. */
int device_query_port_speed(struct ibv_context *, uint32_t port, uint64_t *speed);
/* -1 and errno EINVAL: the port or index does not exist. An index without a GID gives zeros. */
int device_query_gid(struct ibv_context *, uint8_t port, int index, union ibv_gid *);
int device_query_pkey(struct ibv_context *, uint8_t port, int index, __be16 *);
/* Returns the index of a P_Key in the table of the port; -1 and errno EINVAL: the port lacks it, or does not exist. */
int device_find_pkey(struct ibv_context *, uint8_t port, __be16 pkey);
/* Writes an ibv_gid_entry of `size` bytes, which a later release may have made longer: fields that are not known
 * here are 0. ENODATA: the index has no GID; EINVAL: unknown port or index, or a `size` less than an ibv_gid_entry of
 * this release. */
int device_query_gid_entry(struct ibv_context *, uint32_t port, uint32_t index, void *to, size_t size);
/* Writes all entries, `size` bytes each. Returns their number; -EINVAL when it is more than `most`. */
ssize_t device_query_gid_table(struct ibv_context *, void *entries, size_t most, size_t size);
/* Writes the MAC of a device of this host, which follows from its GID. -1 and errno: EHOSTUNREACH for another GID,
 * EOPNOTSUPP on InfiniBand. */
int device_resolve_mac(struct ibv_context *, struct ibv_ah_attr *, uint8_t mac[6], uint16_t *vid);
int device_query_rt_values(struct ibv_context *, struct ibv_values_ex *);
