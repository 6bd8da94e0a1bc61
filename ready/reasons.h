// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/**
 * MUSTER_RESET_REASON:
 *
 * A worker's reason after a reset has ended its session.
 */
#define MUSTER_RESET_REASON "the master was reset; waiting for the chief to prepare the model"

/**
 * MusterReason:
 * @component: "server", "job", "chief", "graph", "task" or "variables"; static
 * @owner: its task: "chief:2222", "worker:0", "ps:1" (owned, nullable)
 * @state: its state, static: server up, not-resolved, refused, unreachable, silent, unavailable,
 *   lost; job running, waiting-for-tasks, over; chief never-registered, lost, starting, restoring,
 *   initialising, local-init, prepared, training, unknown (a master that keeps no announcements);
 *   graph same, differs; task missing; variables missing, initialised, unknown
 * @since_us: since when it has been in this state, an instant in microseconds
 * @text: for messages: "missing 92: ps:0 60 (dense_1/kernel, …), …" (owned)
 * @last_error: the last error of the component (owned, nullable)
 * @hint: the remedy (owned, nullable)
 * @is_well: this component isn't a cause
 * @n_missing: "variables": the number without a value
 * @n_total: "variables": the number of all; 0: unknown
 * @names: (array zero-terminated=1): "variables": the missing ones, in one block (owned, nullable)
 *
 * Why a model isn't ready: one reason for each component involved, in the order in which they must
 * be ready: server, job, chief, graph, task, variables. Text and JSON are both produced from these
 * fields.
 */
typedef struct {
  const char *component;
  char *owner;
  const char *state;
  gint64 since_us;
  char *text;
  char *last_error;
  char *hint;
  gboolean is_well;
  guint n_missing;
  guint n_total;
  char **names;
} MusterReason;

#define MUSTER_TYPE_REASON (muster_reason_get_type ())
GType muster_reason_get_type (void);

/**
 * muster_reason_copy:
 * @self: a reason
 *
 * Copies it.
 *
 * Returns: (transfer full): a copy
 */
MusterReason *muster_reason_copy (const MusterReason *self);

/**
 * muster_reason_free:
 * @self: (nullable): a reason
 *
 * Frees it.
 */
void muster_reason_free (MusterReason *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReason, muster_reason_free)

/**
 * muster_reasons_first:
 * @reasons: (nullable) (element-type MusterReason): reasons
 *
 * The first reason that isn't well, for which all later ones wait.
 *
 * Returns: (nullable) (transfer none): the reason, one of @reasons; %NULL if all are well
 */
const MusterReason *muster_reasons_first (GPtrArray *reasons);

/**
 * muster_reasons_find:
 * @reasons: (nullable) (element-type MusterReason): reasons
 * @component: a component
 *
 * The first reason of a component.
 *
 * Returns: (nullable) (transfer none): the reason, one of @reasons; %NULL if there is none
 */
const MusterReason *muster_reasons_find (GPtrArray *reasons, const char *component);

G_END_DECLS
