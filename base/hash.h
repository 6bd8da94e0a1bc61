// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A fast hash of many bytes (some 10 GB/s), for comparing large contents and for tables of names.
 * It is the same in every process of one build for the same seed; it is no defence against someone
 * who may choose the bytes and knows the seed, so a table of foreign names takes a seed of its own
 * (an address will do) and equality is always settled by a compare. */
guint64 muster_hash_bytes (const void *data, gsize size, guint64 seed);

G_END_DECLS
