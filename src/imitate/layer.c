#include "imitate/layer.h"

#include "verbs/object/context.h"

#include "config/device.h"

struct calls_layer imitate_layer = {.name = "profile", .place = CALLS_PLACE_PROFILE};
const struct profile *imitated;

const struct limits *imitate_limits(struct ibv_context *context)
{
    return &context_of(context)->device->limits;
}
