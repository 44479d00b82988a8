/* The mark of a function that programs may call; everything else of the library is hidden. */
#pragma once

#define EXPORT __attribute__((visibility("default")))
