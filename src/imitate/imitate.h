/* The device of a profile (SOFTVERBS_PROFILE, profile/profile.h): the lowest layer around all calls answers what the
 * profile says of the device, rounds sizes as the device does, and refuses what the device lacks. The number of objects
 * is a limit (config/limits.h), which is checked where the objects are counted. */
#pragma once

/* Puts the layer around if there is a profile; otherwise it costs a look at the environment. For a constructor. */
void imitate_begin(void);
