// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* How long ago a checkpoint was saved, by its directory's side file; 0: unknown. */
gint64 muster_saver_age_of (MusterSaver *self, const char *prefix);

G_END_DECLS
