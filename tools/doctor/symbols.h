/* The versioned dynamic symbols of a shared library of this machine's own architecture, as its linker sees them. */
#pragma once

typedef void symbols_visit(void *context, const char *symbol, const char *version);

/* Visits what the library defines. 0, or errno; ENOEXEC: no such library, or a damaged one. */
int symbols_defined(const char *path, symbols_visit *, void *context);

/* Visits what the file must find in `library` (its soname) to be loaded, weak symbols excepted. Returns as above. */
int symbols_wanted(const char *path, const char *library, symbols_visit *, void *context);
