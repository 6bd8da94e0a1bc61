// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/keep.h"

#include <glib.h>

G_BEGIN_DECLS

/* INVALID_ARGUMENT for an invalid max_to_keep. */
gboolean muster_check_max_to_keep (int max_to_keep, GError **error);
/* Converts max_to_keep to a SaverDef's value, where 0 keeps all. otherwise replaces the default. */
int muster_max_to_keep_or (int max_to_keep, int otherwise);

G_END_DECLS
