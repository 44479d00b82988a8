/* The packages that have the missing programs, headers and libraries, as this system's package manager names them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum packages_kind { PACKAGES_PROGRAM, PACKAGES_HEADER, PACKAGES_LIBRARY };

/* Whether the system has this program, header or library. */
typedef bool packages_present(enum packages_kind, const char *what);

/* Writes a sentence that names what is missing and the line that installs it. `os_release` is the path of a file as
 * os-release(5) has it; where it names no system with a known package manager, the sentence has Debian's names.
 * Returns the number of things that are missing. */
unsigned packages_lacking(const char *os_release, packages_present *, char *say, size_t size);

/* Writes the line that installs a library (a SONAME), "apt install librdmacm1"; "": no package is known. */
void packages_of_library(const char *os_release, const char *soname, char *line, size_t size);

/* The os-release of this system, and whether $PATH, /usr/include or the dynamic linker finds a thing. */
extern const char packages_os_release[];
packages_present packages_are_here;
