#include "ipc/table_open.c"
#include "statics_table.h"
