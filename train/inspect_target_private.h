// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* Chooses the master that the commands name for the scaffold that is described: "local". */
typedef const char *(*MusterInspectTarget) (MusterScaffold *described, gpointer user_data);

/* muster_scaffold_inspect () where the master follows from what is described. */
GPtrArray *muster_scaffold_inspect_for (MusterScaffold *self, const char *path,
                                        const char *const *train_ops, MusterInspectTarget choose,
                                        gpointer user_data, GError **error);

G_END_DECLS
