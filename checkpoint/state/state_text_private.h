// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_state.h"

G_BEGIN_DECLS

/* The text of the state file: TensorFlow's CheckpointState in protobuf's text format. Prefixes are
 * as written there. */

/* Parses the text format. Unknown fields are skipped. DATA_LOSS gives the line. */
MusterCheckpointState *muster_state_text_parse (const char *text, gsize size, GError **error);

/* Writes the same bytes as TensorFlow. */
char *muster_state_text_print (const MusterCheckpointState *state);

/* The version of a state file (name: NULL for "checkpoint"), readable or not:
 * MusterCheckpointState's. NULL without an error in a store that has none. */
char *muster_checkpoint_state_version (MusterStorage *storage, const char *directory,
                                       const char *name, GError **error);

G_END_DECLS
