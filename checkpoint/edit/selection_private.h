// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/stored_private.h"

G_BEGIN_DECLS

/* A variable that patterns chose. */
typedef struct {
  const MusterIndexEntry *entry; /* of the reader */
  char *name;        /* (owned) as a person calls it: in an object-based checkpoint its path */
  gboolean is_named; /* by a pattern without '*' and '?' */
} MusterSelected;

/* The variables of a checkpoint that match patterns, in the order of their keys: (transfer full)
 * (element-type MusterSelected). NOT_FOUND names a pattern without a match. */
GArray *muster_selection_new (MusterStoredReader *reader, const char *prefix,
                              const char *const *patterns, GError **error);

/* What the work is, for its hidden name. */
guint32 muster_selection_id (const char *prefix, const char *const *patterns);

G_END_DECLS
