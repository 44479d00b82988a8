#include "base/time_scale.h"

_Atomic uint32_t time_scale = TIME_SCALE_WHOLE;

cold nanos time_scaled_slow(nanos wait, uint32_t scale)
{
    if (wait <= TIME_SCALE_FROM)
        return wait;
    nanos rest = wait - TIME_SCALE_FROM;
    return TIME_SCALE_FROM + rest / TIME_SCALE_WHOLE * scale + rest % TIME_SCALE_WHOLE * scale / TIME_SCALE_WHOLE;
}

void time_scale_set(uint32_t millionths)
{
    atomic_store_explicit(&time_scale, millionths, memory_order_relaxed);
}
