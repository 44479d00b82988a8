#include "base/handle.h"

#include <stdlib.h>

void (*handle_free)(void *) = free;
