/* The questions of layers (calls/questions.h) about objects of another libibverbs: its calls tell a part, and the rest
 * is not known. */
#pragma once

#include "calls/questions.h"

extern const struct calls_questions around_questions;
