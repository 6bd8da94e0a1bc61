// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/reasons.h"

G_BEGIN_DECLS

/* What is known during a wait; everything is borrowed. */
typedef struct {
  guint64 version;                  /* changes with any of the following; not 0 */
  const char *target;               /* "grpc://chief:2222" */
  const MusterReadiness *readiness; /* (nullable) the last one received */
  const GError *failure;            /* (nullable) why there is no session now */
  const char *diagnosis;            /* (nullable) one line on why the server doesn't answer */
  const char *server_state;         /* (nullable) static; what the diagnosis found */
  const char *const *tasks; /* (nullable) tasks of the cluster that don't answer: "ps:1: refused" */
  const char
      *chief; /* (nullable) "chief:0=HOST:PORT": the chief's sessions are there, not at target */
  gboolean has_cluster;                /* target is a task of a TensorFlow cluster */
  const MusterVariableInfo *variables; /* (nullable) the model's, to name their tasks */
  gsize n_variables;
} MusterSituation;

/* MusterReasons keeps the reasons of one wait, and since when each has been in its state. One
 * thread. */
typedef struct _MusterReasons MusterReasons;

/* clock NULL: the machine's. */
MusterReasons *muster_reasons_new (MusterClock *clock);
void muster_reasons_free (MusterReasons *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReasons, muster_reasons_free)

/* Updates the reasons from a situation; one with the last version is ignored. */
void muster_reasons_update (MusterReasons *self, const MusterSituation *situation);

/* (element-type MusterReason) borrowed, until the next update. */
GPtrArray *muster_reasons_list (MusterReasons *self);

/* (transfer full) (element-type MusterReason) a copy. */
GPtrArray *muster_reasons_copy (MusterReasons *self);

G_END_DECLS
