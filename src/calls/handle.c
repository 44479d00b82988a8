#include "calls/handle.h"

#include <stdlib.h>

void (*handle_free)(void *) = free;
