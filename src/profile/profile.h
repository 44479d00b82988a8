/* A device as a text file describes it: its attributes, the calls that it lacks, and their errors
 * (SOFTVERBS_PROFILE). A line is `KEY = VALUE` or `without CALL = ERRNO`; the part after a # is a comment, in which
 * the profiles that come with softverbs have the source of the value. Attributes that a profile does not name stay
 * as softverbs has them, unless it has `others = zero`. docs/reference/profiles.md has the language. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile_key {
#define DEVICE(key) PROFILE_##key,
#define EXTENDED(key, member) PROFILE_##key,
#define PORT(key) PROFILE_##key,
#define PORT_WORD(key, words) PROFILE_##key,
#define MANNER(key, most) PROFILE_##key,
#define WORD(key, words) PROFILE_##key,
#define WORDS(key, words) PROFILE_##key,
#define TEXT(key) PROFILE_##key,
#define ERRNO(key, standard) PROFILE_##key,
#include "profile/profile.def"
    PROFILE_KEYS
};

/* The calls outside of the data path. A device may lack each that can fail (profile_call_name). */
enum profile_call {
#define CALL_VERB(answer, type, name, ...) PROFILE_CALL_##name,
#include "calls/each.def"
    PROFILE_CALLS
};

enum { PROFILE_NAME_SIZE = 64, PROFILE_TEXT_SIZE = 64, PROFILE_PCI_SIZE = 512, PROFILE_LENGTH_MOST = 128 << 10 };

enum { PROFILE_QPN_BITS_LEAST = 9 }; /* the key qpn_bits */

enum profile_driver { PROFILE_DRIVER_NONE, PROFILE_DRIVER_EFA };                  /* the key driver */
enum profile_mlx5 { PROFILE_MLX5_NONE, PROFILE_MLX5_CALLS, PROFILE_MLX5_QUEUES }; /* the key mlx5 */

#define PROFILE_END ".profile" /* the end of a file's name */

/* A device's profile; all zeros change nothing. */
struct profile {
    char name[PROFILE_NAME_SIZE]; /* its file's name without .profile */
    bool set[PROFILE_KEYS];
    uint64_t values[PROFILE_KEYS]; /* an ERRNO that is not set has its standard */
    char fw_ver[PROFILE_TEXT_SIZE], board_id[PROFILE_TEXT_SIZE];
    char pci[PROFILE_PCI_SIZE];      /* a list in the form of the setting PCI; the code that uses it checks it */
    char devices[PROFILE_TEXT_SIZE]; /* the same of the setting DEVICES */
    int without[PROFILE_CALLS];      /* the error number; 0: the device has the call */
};

/* A mistake in the text. */
struct profile_fault {
    unsigned line;
    char why[256];
};

/* Parses the contents of a file. False: they are not a profile, and *fault has the reason. The profile's name stays. */
bool profile_parse(const char *text, struct profile *, struct profile_fault *);

/* Sets the keys of "KEY=VALUE,KEY=VALUE" in place of what the file has. `mlx5` alone means `mlx5=queues`, and makes a
 * device that programs of mlx5 know: vendor_id, vendor_part_id and pci are set where they must be. False, and *fault as
 * above.
 */
bool profile_override(const char *words, struct profile *, struct profile_fault *);

/* Reads the file, and the words behind a comma after its name (profile_override). False: `why` gets a sentence with the
 * file's name, and the line if it has one. */
bool profile_read(const char *path_and_words, struct profile *, char *why, size_t size);

/* The length of the path before the words. */
size_t profile_path_length(const char *path_and_words);

/* The name of this call in files; NULL: a device can't lack it. */
const char *profile_call_name(enum profile_call);

/* The value, or `standard` where the profile does not name it. */
static inline uint64_t profile_value(const struct profile *profile, enum profile_key key, uint64_t standard)
{
    return profile->set[key] ? profile->values[key] : standard;
}

/* Returns true if the profile, which may be NULL, is that of an EFA. */
static inline bool profile_is_efa(const struct profile *profile)
{
    return profile && profile_value(profile, PROFILE_driver, PROFILE_DRIVER_NONE) == PROFILE_DRIVER_EFA;
}

/* Returns true if the device of the profile, which may be NULL, has the calls of libmlx5. */
static inline bool profile_is_mlx5(const struct profile *profile)
{
    return profile && profile_value(profile, PROFILE_mlx5, PROFILE_MLX5_NONE) != PROFILE_MLX5_NONE;
}

/* Returns true if queues of the device may be in memory (mlx5dv_init_obj). */
static inline bool profile_has_queues(const struct profile *profile)
{
    return profile_is_mlx5(profile) && profile_value(profile, PROFILE_mlx5, PROFILE_MLX5_NONE) == PROFILE_MLX5_QUEUES;
}

/* Replaces softverbs' attributes with the profile's. Some can't be set by a profile: GUIDs, LIDs, the number of
 * ports, the state. */
void profile_describe(const struct profile *, struct ibv_device_attr *);
void profile_describe_extended(const struct profile *, struct ibv_device_attr_ex *);
void profile_describe_port(const struct profile *, struct ibv_port_attr *);

/* Rounds a number that a program asks for as the device does; the rounding is one of the keys round_. */
uint32_t profile_round(const struct profile *, enum profile_key rounding, uint32_t number);
