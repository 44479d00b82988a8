#include "imitate/layer.h"

#include "verbs/object/object.h"

#include "config/device.h"

enum { PLACE = 10 };

struct calls_layer imitate_layer = {.name = "profile", .place = PLACE};
const struct profile *imitated;

const struct limits *imitate_limits(struct ibv_context *context)
{
    return &context_of(context)->device->limits;
}
