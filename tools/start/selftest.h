/* softverbs around --selftest */
#pragma once

/* Runs the program of the causes on this device, or on the first, with the layers in front, and prints a report. NULL: the
 * first device. Returns the exit status. */
int selftest_run(const char *device);
