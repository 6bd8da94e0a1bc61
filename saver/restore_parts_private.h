// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "graph/graph_nodes_private.h"
#include "master/session.h"

G_BEGIN_DECLS

/* A large tensor that one variable gets, in parts of at most so many bytes, where a part can be
 * that small: no message has all of it. */
typedef struct {
  MusterSession *session;
  MusterGraph *graph;       /* that has assign */
  const MusterNode *assign; /* Assign or AssignVariableOp */
  MusterBundleReader *reader;
  const MusterBundleEntry *entry; /* the reader's: numbers */
  const char *slice;              /* what is read of it; "": all */
  const char *scope;              /* a prefix that no name in the session has */
  guint64 most;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} MusterPartsOf;

/* Adds its nodes to the session, gives the variable zeros of its shape, and then each part.
 * *is_masters: whether what failed is the session, and not the reading. */
gboolean muster_restore_in_parts (const MusterPartsOf *of, gboolean *is_masters, GError **error);

G_END_DECLS
