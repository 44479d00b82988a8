/* The common checks of the calls of libefa. Thread-safe. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* 0, or the errno of a call for a device that is no EFA, or with a struct that lacks the member at `last`. */
int efa_check(const char *call, size_t last, uint32_t inlen);

/* The most of one queue, by the profile: its own key, or the key of both queues. */
uint32_t efa_most(const struct ibv_context *, enum profile_key queue, enum profile_key both);

/* Returns true if the bytes after the `known` first ones of a struct of this length are 0. */
bool efa_is_zero_after(const void *, size_t known, uint32_t inlen);
