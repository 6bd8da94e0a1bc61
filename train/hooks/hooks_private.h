// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/hooks.h"
#include "train/hooks/step_timer.h"

G_BEGIN_DECLS

/* What the standard hooks share. */

/* "Global step should be created to use WHAT." if the model has none. */
gboolean muster_hook_need_global_step (MusterScaffold *scaffold, const char *what, GError **error);

/* INVALID_ARGUMENT if the graph lacks the node ("loss:0", "loss"). */
gboolean muster_hook_need_node (MusterScaffold *scaffold, const char *name, GError **error);

G_END_DECLS
