// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/save_status.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* How far the saves of a model have come, as text and JSON. */

/* "12 durable, 1 failed; last 133 KB: staged in 2 ms, written in 31 ms, published in 10 ms;
 * training held for 24 ms in all; model.ckpt-1200 staged 4.1 s ago" (transfer full) */
char *muster_saves_text (const MusterSaveStatus *status);

/* For a running display: ", saving 1200 (staged)", ", 2 saves failed"; or "". (transfer full) */
char *muster_saves_news (const MusterSaveStatus *status);

/* Adds "saves" to the current object: {…}, or null without a status (nullable). */
void muster_saves_json (JsonBuilder *builder, const MusterSaveStatus *status);

G_END_DECLS
