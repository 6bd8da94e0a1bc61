// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Philox4x32-10, the counter-based generator of TensorFlow's random ops (Salmon et al., 2011): the
 * same two seeds give the same numbers. A plain struct. */

typedef struct {
  guint32 counter[4];
  guint32 key[2];
} MusterPhilox;

/* The first seed is the key, the second the upper half of the counter. */
MusterPhilox muster_philox_new (guint64 seed, guint64 seed2);

/* The next four words. */
void muster_philox_next (MusterPhilox *self, guint32 words[4]);

/* Skips n times four words. */
void muster_philox_skip (MusterPhilox *self, guint64 n);

G_END_DECLS
