// SPDX-License-Identifier: Apache-2.0
/* Runs a ready op and judges its value: nothing missing, a list of names, or a boolean, as
 * TensorFlow's. */
#include "ready/readiness_private.h"

#include "base/names_private.h"
#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "master/step_check_private.h"

void
muster_ready_op_result_clear (MusterReadyOpResult *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->missing, g_free);
  g_clear_pointer (&self->why_not, g_free);
  self->is_ready = FALSE;
}

/* A name as text: invalid UTF-8 becomes "\xNN". */
static char *
decode_name (MusterString name)
{
  GString *text = g_string_sized_new (name.size);
  while (name.size > 0) {
    const char *end;
    g_utf8_validate_len (name.data, name.size, &end);
    gsize valid = (gsize)(end - name.data);
    g_string_append_len (text, name.data, (gssize)valid);
    if (valid < name.size)
      g_string_append_printf (text, "\\x%02X", (guint8)name.data[valid++]);
    name.data += valid;
    name.size -= valid;
  }
  return g_string_free (text, FALSE);
}

static gboolean
refuse_value (const char *op, const MusterTensor *value, GError **error)
{
  g_autofree char *shape =
      muster_shape_to_string (muster_tensor_n_dims (value), muster_tensor_dims (value));
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "ready op '%s' returned %s of shape %s; it must return a vector of the names "
                      "of uninitialised variables",
                      op, muster_dtype_name (muster_tensor_dtype (value)), shape);
}

static gboolean
judge_value (const char *op, const MusterTensor *value, MusterReadyOpResult *readiness,
             GError **error)
{
  gint64 n = value == NULL ? 0 : muster_tensor_n_elements (value);
  g_autoptr (GPtrArray) missing = g_ptr_array_new_with_free_func (g_free);
  readiness->is_ready = n == 0 || muster_tensor_dtype (value) == MUSTER_INT32;
  if (readiness->is_ready)
    return TRUE;
  if (muster_tensor_dtype (value) != MUSTER_STRING || muster_tensor_n_dims (value) != 1)
    return refuse_value (op, value, error);

  for (gint64 i = 0; i < n; i++)
    g_ptr_array_add (missing, decode_name (muster_tensor_string (value, i)));
  readiness->missing = muster_names_pack ((char *const *)missing->pdata, missing->len);
  g_autofree char *list = g_strjoinv (", ", readiness->missing);
  readiness->why_not = g_strconcat ("Variables not initialized: ", list, NULL);
  return TRUE;
}

gboolean
muster_ready_op_judge (const char *op, const MusterTensor *value, const GError *failure,
                       MusterReadyOpResult *readiness, GError **error)
{
  muster_require (error, FALSE, op, readiness);

  *readiness = (MusterReadyOpResult){0};

  if (failure == NULL)
    return judge_value (op, value, readiness, error);
  if (muster_step_lacks_value (failure)) {
    readiness->why_not = g_strdup (failure->message);
    return TRUE;
  }
  if (error != NULL)
    *error = g_error_copy (failure);
  return FALSE;
}

/* Ops without an output that a ready op may be. */
static gboolean
is_without_output (MusterGraph *graph, const char *name)
{
  static const char *const types[] = {"NoOp",
                                      "Assert",
                                      "AssignVariableOp",
                                      "InitializeTableV2",
                                      "InitializeTableFromTextFileV2",
                                      "LookupTableInsertV2",
                                      "LookupTableImportV2",
                                      NULL};
  const MusterNode *node = graph == NULL ? NULL : muster_graph_find_node (graph, name);
  return node != NULL && g_strv_contains (types, node->kind->op);
}

void
muster_ready_op_find (MusterReadyOp *self, const char *op, MusterGraph *graph)
{
  g_return_if_fail (self != NULL);

  *self = (MusterReadyOp){.name = g_strdup (op), .is_known = graph != NULL};
  if (op == NULL)
    return;
  muster_graph_split_input (op, &self->target);
  if (!is_without_output (graph, self->target))
    self->fetch = strchr (op, ':') != NULL ? g_strdup (op) : g_strconcat (op, ":0", NULL);
}

void
muster_ready_op_clear (MusterReadyOp *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->name, g_free);
  g_clear_pointer (&self->fetch, g_free);
  g_clear_pointer (&self->target, g_free);
}

/* Fetches op; for one without an output returns NULL without a failure. */
static MusterTensor *
evaluate (MusterSession *session, const MusterReadyOp *op, gint64 deadline_us,
          GCancellable *cancellable, GError **failure)
{
  g_autoptr (GError) refused = NULL;
  if (op->fetch == NULL) {
    muster_session_run_op (session, op->target, deadline_us, cancellable, failure);
    return NULL;
  }
  MusterTensor *value =
      muster_session_fetch (session, op->fetch, deadline_us, cancellable, &refused);
  if (value != NULL)
    return value;
  /* If only the master has the graph, the op may have no output. If the graph is known, a failed
   * fetch doesn't concern readiness, even if the op could be run. */
  if (!op->is_known && muster_error_is (refused, MUSTER_ERROR_INVALID_ARGUMENT) &&
      muster_session_run_op (session, op->target, deadline_us, cancellable, NULL))
    return NULL;
  g_propagate_error (failure, g_steal_pointer (&refused));
  return NULL;
}

gboolean
muster_ready_op_run (MusterSession *session, const MusterReadyOp *op, gint64 deadline_us,
                     GCancellable *cancellable, MusterReadyOpResult *readiness, GError **error)
{
  muster_require (error, FALSE, session, op, readiness);

  *readiness = (MusterReadyOpResult){.is_ready = op->name == NULL};
  if (op->name == NULL)
    return TRUE;

  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterTensor) value = evaluate (session, op, deadline_us, cancellable, &failure);
  return muster_ready_op_judge (op->name, value, failure, readiness, error);
}

gboolean
muster_ready_op_probe (MusterSession *session, const char *op, gint64 deadline_us,
                       GCancellable *cancellable, MusterReadyOpResult *readiness, GError **error)
{
  muster_require (error, FALSE, session, readiness);

  g_auto (MusterReadyOp) found = {0};
  muster_ready_op_find (&found, op, muster_session_graph (session));
  return muster_ready_op_run (session, &found, deadline_us, cancellable, readiness, error);
}

gboolean
muster_readiness_probe (MusterSession *session, const MusterReadyOp *gate_op,
                        const MusterReadyOp *ready_op, gint64 deadline_us,
                        GCancellable *cancellable, MusterReadiness *readiness, GError **error)
{
  muster_require (error, FALSE, session, gate_op, ready_op, readiness);

  g_auto (MusterReadyOpResult) gate = {0};
  g_auto (MusterReadyOpResult) ready = {0};
  if (!muster_ready_op_run (session, gate_op, deadline_us, cancellable, &gate, error))
    return FALSE;
  if (gate.is_ready &&
      !muster_ready_op_run (session, ready_op, deadline_us, cancellable, &ready, error))
    return FALSE;

  *readiness = (MusterReadiness){.gate_open = gate.is_ready,
                                 .is_ready = ready.is_ready,
                                 .why_gate = g_steal_pointer (&gate.why_not),
                                 .why_not_ready = g_steal_pointer (&ready.why_not),
                                 .missing = gate.is_ready ? g_steal_pointer (&ready.missing)
                                                          : g_steal_pointer (&gate.missing)};
  return TRUE;
}
