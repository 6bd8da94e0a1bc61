// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/checkpoint/checkpoint_listed.h"

G_BEGIN_DECLS

/* Which checkpoints of a directory stay, and why, by the decision of savers
 * (checkpoint/state/keep_rules_private.h). Each name counts by itself: "model.ckpt" of
 * "model.ckpt-1200".
 */

/* The state files of a directory: "checkpoint", and those that its record knows of (transfer full)
 * (element-type utf8). */
GPtrArray *muster_cli_state_files (const MusterCheckpointRecord *record);
/* Sets what the state files say of each: whether one lists it, and whether it is the latest of
 * one. listed has (element-type MusterListed). */
gboolean muster_listed_read_states (GPtrArray *listed, const char *directory,
                                    const GPtrArray *state_files, GError **error);

/* Sets why each is kept, as the savers of the directory decided last. What no saver manages has no
 * reason. */
void muster_listed_explain (GPtrArray *listed, const MusterCheckpointRecord *record);
/* Decides by these rules; what they leave open for steps and the best is the directory's own. */
void muster_listed_decide (GPtrArray *listed, const MusterCheckpointRecord *record,
                           const MusterKeepRules *rules);

G_END_DECLS
