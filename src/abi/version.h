/* Older version nodes of a symbol. The distributions' provider libraries ask for all private symbols of their release,
 * so each stands in the node of every release that had it: once by the version script, in its newest, and under an
 * alias in each older one.
 *
 * The symbol must be weak, or called otherwise in C: ld takes the newest node away from a strong one that also has
 * older ones. Link-time optimization loses the aliases' versions, so the layer is built without it. */
#ifndef ABI_VERSION_H
#define ABI_VERSION_H

#include "abi/export.h"

#define VERSION_OF(name, target, node)                                                                                 \
    EXPORT extern __typeof__(target) name##__##node __attribute__((alias(#target), used));                             \
    __asm__(".symver " #name "__" #node ", " #name "@IBVERBS_PRIVATE_" #node);

/* A file that builds a private symbol defines it as EXPORT_VERSIONED and has VERSIONS_OF_name behind it (generated
 * by abi/versions/generate.py). */
#define EXPORT_VERSIONED EXPORT __attribute__((weak))

#endif
