#include "base/time_scale.h"

_Atomic uint32_t time_scale = TIME_SCALE_WHOLE;

void time_scale_set(uint32_t millionths)
{
    atomic_store_explicit(&time_scale, millionths, memory_order_relaxed);
}
