// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* The meta graph with a saver that saves and restores all global variables in the V2 format: its
 * own if that does, else a new one, which keeps the settings, names and slices of the one before
 * (muster_saver_default () if there was none). *why (transfer full) becomes why one was added, or
 * NULL. A meta graph without global variables is returned as it is. */
MusterMetaGraph *muster_saver_complete (MusterMetaGraph *meta_graph, char **why, GError **error);

/* The op of a saver that writes something else than the V2 format: "SaveSlices"; NULL for any
 * other. */
const char *muster_saver_old_format (MusterGraph *graph, const MusterSaverInfo *saver);

G_END_DECLS
