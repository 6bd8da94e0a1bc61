// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What the targets of libFuzzer share. A target is a file that defines the two functions below; its
 * input is whatever a peer may send. The first folder on its command line is its corpus, into which
 * the target's seeds go first; as a test it makes one of its own and ends after some seconds, or
 * after an hour with MUSTER_LONG=1. fuzz.c has the limits. */

/* One input: anything but a quiet return is a finding. */
int LLVMFuzzerTestOneInput (const guint8 *data, gsize size);

/* Calls muster_fuzz_seed () for each of the target's seeds. */
void muster_fuzz_seeds (void);

/* For a target whose input is a protobuf message (mutate.c): how many bytes before the message pick
 * something, 0 or 1. Each such target defines it. */
extern const gsize muster_fuzz_n_picks;

/* A seed is the byte that picks something (nullable) and then data. */
void muster_fuzz_seed (const guint8 *pick, const void *data, gsize size);

/* The same for the graphs of the fixtures: of each op the first node with all that it needs, in a
 * graph of its own, unless that is large. */
void muster_fuzz_seed_graphs (const guint8 *pick);

G_END_DECLS
