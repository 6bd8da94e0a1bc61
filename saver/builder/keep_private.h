// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/keep.h"

#include <glib.h>

G_BEGIN_DECLS

/* INVALID_ARGUMENT for a max_to_keep that means nothing. */
gboolean muster_check_max_to_keep (int max_to_keep, GError **error);
/* What it means in a SaverDef, where 0 keeps all; otherwise is the default's. */
int muster_max_to_keep_or (int max_to_keep, int otherwise);

G_END_DECLS
