// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* muster_scaffold_inspect () where the master that the commands name ("local") follows from what is
 * described. */
GPtrArray *
muster_scaffold_inspect_for (MusterScaffold *self, const char *path, const char *const *train_ops,
                             const char *(*choose) (MusterScaffold *described, gpointer user_data),
                             gpointer user_data, GError **error);

G_END_DECLS
