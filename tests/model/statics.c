/* The only source under test that writes static data, with the functions that keep it for each process. */
#include "ipc/table_open.c"
#include "statics_kept.h"
