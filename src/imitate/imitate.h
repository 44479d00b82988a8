/* The devices of a profile (SOFTVERBS_PROFILE, profile/profile.h): a layer around all calls, the nearest to the work,
 * which answers what the profile says of the device, rounds sizes as it does, and refuses what it lacks. How many
 * objects there may be is the limits' (config/limits.h), where the objects are counted. */
#ifndef IMITATE_IMITATE_H
#define IMITATE_IMITATE_H

/* Puts the layer around where there is a profile; otherwise it costs a look at the environment. For a constructor. */
void imitate_begin(void);

#endif
