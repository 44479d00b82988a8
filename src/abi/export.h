/* The mark of a function that programs may call; everything else of the library is hidden. */
#ifndef ABI_EXPORT_H
#define ABI_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
