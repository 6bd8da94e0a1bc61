// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/train.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* A line of `muster train --json`: an event, its time and its step. */
JsonBuilder *muster_train_event_begin (const char *event, gint64 step);
/* Prints it. (transfer full) builder */
void muster_train_event_end (JsonBuilder *builder);

/* null for a number that isn't finite. */
void muster_train_event_add_number (JsonBuilder *builder, const char *name, double number);
void muster_train_event_add_state (JsonBuilder *builder, const MusterTrainingState *state);

gint64 muster_train_now_us (void);

G_END_DECLS
