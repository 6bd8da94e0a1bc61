// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/object_graph.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Prints a tensor of a checkpoint: its place, statistics and values. */

typedef struct {
  gboolean json;
  gboolean full;     /* every value */
  const char *slice; /* (nullable) a part of it */
} MusterCliShow;

/* Prints the tensor and returns the exit code. name is a key or, with names (nullable), a readable
 * name. */
int muster_cli_show_tensor (MusterBundleReader *reader, const MusterObjectNames *names,
                            const char *name, const MusterCliShow *what);

/* "dtype", "shape", "bytes", "shard" or "slices" */
void muster_cli_entry_json (JsonBuilder *builder, MusterBundleReader *reader,
                            const MusterBundleEntry *entry);

G_END_DECLS
