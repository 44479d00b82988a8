#include "mlx5/queues/registers.c"
#include "statics_registers.h"
