// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_state.h"

G_BEGIN_DECLS

/* The state file's text: TensorFlow's CheckpointState in protobuf's text format. Prefixes as they
 * stand there. */

/* Reads it as text format is read, and beyond: fields that aren't known are stepped over. DATA_LOSS
 * names the line. */
MusterCheckpointState *muster_state_text_parse (const char *text, gsize size, GError **error);

/* Writes it as TensorFlow does, to the byte. */
char *muster_state_text_print (const MusterCheckpointState *state);

G_END_DECLS
