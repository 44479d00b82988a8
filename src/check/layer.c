#include "check/layer.h"

struct calls_layer layer_check = {.name = "check", .place = CALLS_PLACE_CHECK};
