/* The functions of XRC_RECV queue pairs that the loop calls. */
#pragma once

#include "runtime/endpoint.h"

extern const struct endpoint_operations xrc_endpoint_operations;
