// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_data_private.h"
#include "checkpoint/format/bundle_strings_private.h"

G_BEGIN_DECLS

/* Checks bytes of data files as they pass, in order. */

/* One stored tensor or slice. */
typedef struct {
  const MusterIndexEntry *entry;
  gboolean is_strings;
  MusterStringsCheck strings;
  guint32 sum;
} MusterSpanCheck;

void muster_span_check_begin (MusterSpanCheck *self, const MusterIndexEntry *entry);
/* FALSE if the bytes are damaged. */
gboolean muster_span_check_feed (MusterSpanCheck *self, const guint8 *data, gsize size);
gboolean muster_span_check_end (const MusterSpanCheck *self);

/* A whole data file: its tensors' sums, zeros between them, no overlaps. One without tensors isn't
 * checked: nothing in it matters. */
typedef struct {
  MusterBundleData *data;      /* (not owned) for messages */
  const char *path;            /* (not owned) likewise */
  const MusterDataSpan *spans; /* (not owned) of this file, sorted */
  gsize n, next;
  guint64 at;            /* in the file */
  MusterSpanCheck check; /* of the span before next, if it has begun */
  guint64 left;          /* bytes of it that are still to come */
} MusterShardCheck;

/* DATA_LOSS names the tensor and the file. */
gboolean muster_shard_check_feed (MusterShardCheck *self, const guint8 *data, gsize size,
                                  GError **error);
/* At the end of the file. */
gboolean muster_shard_check_end (MusterShardCheck *self, GError **error);

G_END_DECLS
