/* The questions of layers about softverbs' own objects (calls/questions.h has the contracts). */
#pragma once

#include "calls/questions.h"

extern const struct calls_questions own_questions;
