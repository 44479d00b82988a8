#include "check/layer.h"

enum { PLACE = 100 };

struct calls_layer layer_check = {.name = "check", .place = PLACE};
