/* The functions of XRC_RECV queue pairs that the loop calls. */
#ifndef VERBS_KINDS_XRC_XRC_ENDPOINT_H
#define VERBS_KINDS_XRC_XRC_ENDPOINT_H

#include "runtime/endpoint.h"

extern const struct endpoint_operations xrc_endpoint_operations;

#endif
