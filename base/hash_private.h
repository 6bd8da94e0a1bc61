// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A fast hash (about 10 GB/s), to compare large contents and for tables of names. The same bytes
 * and seed give the same hash in every process of one build. It isn't safe against a sender who
 * knows the seed and chooses the bytes: a table of untrusted names needs its own seed (an address
 * will do). Equal hashes don't prove equal bytes; compare those too. */
guint64 muster_hash_bytes (const void *data, gsize size, guint64 seed);

/* The same hash of bytes that come in pieces. */
typedef struct {
  guint64 one, two;
  gsize size;      /* so far */
  guint8 open[32]; /* the bytes since the last 32 */
} MusterHash;

void muster_hash_begin (MusterHash *self, guint64 seed);
void muster_hash_add (MusterHash *self, const void *data, gsize size);
guint64 muster_hash_end (const MusterHash *self);

G_END_DECLS
