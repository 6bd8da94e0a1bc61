// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"

G_BEGIN_DECLS

/* What the log says of a model's chief (docs/serving.md, "Logs"). */

/* TRUE if the functions below may log anything: only then do their callers copy what they need. */
gboolean muster_model_log_is_on (void);

/* An announcement was accepted: a new phase, a checkpoint, or failed saves. */
void muster_model_log_change (const MusterAnnouncement *before, const MusterAnnouncement *now);
/* Its lease has expired. */
void muster_model_log_lost (const MusterAnnouncement *chief);
/* What the ready op reports has changed. */
void muster_model_log_ready (const char *model, gint64 epoch, gboolean is_ready);

G_END_DECLS
