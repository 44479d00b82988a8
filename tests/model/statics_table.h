/* The end of ipc/table_open.c. */
#pragma once

#include "statics.h"

const struct statics statics_of_table[] = {STATICS_KEPT(opened), STATICS_KEPT(opening), {0}};
