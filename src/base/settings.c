#include "base/settings.h"

bool settings_around;
