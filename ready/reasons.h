// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/* A worker's reason after a reset has ended its session. */
#define MUSTER_RESET_REASON "the chief reset the master; waiting for it to initialise the model"

/* Why a model isn't ready: one reason for each component involved, in the order in which they must
 * be ready: server, job, chief, graph, task, variables. Text and JSON are both produced from these
 * fields. */

typedef struct {
  const char *component; /* static: "server", "job", "chief", "graph", "task", "variables" */
  char *owner;           /* (owned) (nullable) its task: "chief:2222", "worker:0", "ps:1" */
  const char *state;     /* static; see below */
  gint64 since_us;       /* on the given clock: since when it has been in this state */
  char *text;       /* (owned) for messages: "missing 92: ps:0 60 (dense_1/kernel, …), …" */
  char *last_error; /* (owned) (nullable) */
  char *hint;       /* (owned) (nullable) the remedy */
  gboolean is_well; /* this component isn't a cause */
  guint n_missing;  /* "variables": the number without a value, … */
  guint n_total;    /* … of this number; 0: unknown */
  char **names;     /* (owned) (nullable) "variables": the missing ones, in one block */
} MusterReason;

/* States: server up, not-resolved, refused, unreachable, silent, lost; job running, over; chief
 * never-registered, lost, starting, restoring, initialising, local-init, prepared, training,
 * unknown (a master that keeps no announcements); graph same, differs; task missing; variables
 * missing, initialised, unknown. */

void muster_reason_free (MusterReason *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReason, muster_reason_free)

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

/* The first reason in reasons (nullable) that isn't well, for which all later ones wait; NULL if
 * all are well. */
const MusterReason *muster_reasons_first (GPtrArray *reasons);
/* The first reason of a component in reasons (nullable), or NULL. */
const MusterReason *muster_reasons_find (GPtrArray *reasons, const char *component);

/* (transfer full) (element-type MusterReason) a copy. */
GPtrArray *muster_reasons_copy (MusterReasons *self);

G_END_DECLS
