/* The links by which answers of an SRD queue pair go back to other hosts: a few are kept. */
#pragma once

#include <stdint.h>

struct link;
struct qp;

/* The link to the host with this address; NULL: the device is on no network, or there is no memory. It stays until the
 * next call. Under qp->lock. */
struct link *srd_ways_find(struct qp *, const uint8_t gid[16]);

/* Closes all links. Under qp->lock, or nobody else knows the queue pair. */
void srd_ways_close(struct qp *);

/* Writes the address of the device from which a packet to this address leaves. */
void srd_ways_source(const struct qp *, const uint8_t gid[16], uint8_t source[16]);
