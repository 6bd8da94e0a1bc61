// SPDX-License-Identifier: Apache-2.0
/* The metrics of an evaluation. One of tf.metrics is two ops, NAME/value and NAME/update_op, over
 * local variables, which the local init op resets. Any other tensor is averaged over the rows. */
#include "train/evaluation/evaluation_private.h"

#include "base/error.h"
#include "checkpoint/state/keep_rules_private.h"
#include "graph/graph_nodes_private.h"

#include <string.h>

#define VALUE  "/value"
#define UPDATE "/update_op"

typedef struct {
  char *tag;    /* (owned) its curve's */
  char *tensor; /* (owned) "accuracy/value:0" */
  gboolean is_streaming;
  double sum; /* over the rows */
} Metric;

struct _MusterMetrics {
  GArray *all;        /* (owned) (element-type Metric) */
  GPtrArray *names;   /* (owned) NULL-terminated, as the two below */
  GPtrArray *fetches; /* (owned) borrows */
  GPtrArray *targets; /* (owned) */
  GPtrArray *at_end;  /* (owned) borrows: fetched once */
  double n_rows;
};

static void
metric_clear (gpointer data)
{
  Metric *self = data;
  g_free (self->tag);
  g_free (self->tensor);
}

void
muster_metrics_free (MusterMetrics *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->all);
  g_ptr_array_unref (self->names);
  g_ptr_array_unref (self->fetches);
  g_ptr_array_unref (self->targets);
  g_ptr_array_unref (self->at_end);
  g_free (self);
}

static gboolean
has_pair (MusterGraph *graph, const char *op)
{
  g_autofree char *value = g_strconcat (op, VALUE, NULL);
  g_autofree char *update = g_strconcat (op, UPDATE, NULL);
  return muster_graph_has_node (graph, value) && muster_graph_has_node (graph, update);
}

/* The base of a metric of tf.metrics, which may be named by its value: (transfer full) (nullable)
 */
static char *
streaming_base (MusterGraph *graph, const char *op)
{
  if (has_pair (graph, op))
    return g_strdup (op);
  if (!g_str_has_suffix (op, VALUE))
    return NULL;
  g_autofree char *base = g_strndup (op, strlen (op) - strlen (VALUE));
  return has_pair (graph, base) ? g_steal_pointer (&base) : NULL;
}

static gboolean
find (MusterGraph *graph, const char *name, Metric *metric, GError **error)
{
  g_autofree char *op = NULL;
  const int output = muster_graph_split_input (name, &op);
  g_autofree char *base = output >= 0 ? streaming_base (graph, op) : NULL;
  if (base == NULL && (output < 0 || !muster_graph_has_node (graph, op)))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "metric '%s': the graph has neither such a tensor nor '%s" VALUE
                        "' with '%s" UPDATE "', as one of tf.metrics",
                        name, name, name);
  metric->is_streaming = base != NULL;
  metric->tensor =
      base != NULL ? g_strconcat (base, VALUE ":0", NULL) : g_strdup_printf ("%s:%d", op, output);
  metric->tag = muster_keep_metric_name (base != NULL ? base : name, error);
  return metric->tag != NULL;
}

static gboolean
add (MusterMetrics *self, const MusterEvaluateOptions *options, const char *name, GError **error)
{
  Metric metric = {0};
  const gboolean is_found =
      find (muster_scaffold_graph (options->training.session.scaffold), name, &metric, error);
  if (!is_found) {
    metric_clear (&metric);
    return FALSE;
  }
  g_array_append_val (self->all, metric);
  g_ptr_array_add (
      self->names,
      g_strdup_printf ("%s/%s", options->name != NULL ? options->name : "eval", metric.tag));
  g_ptr_array_add (metric.is_streaming ? self->at_end : self->fetches, metric.tensor);
  if (metric.is_streaming)
    g_ptr_array_add (self->targets,
                     g_strdup_printf ("%.*s" UPDATE,
                                      (int)(strlen (metric.tensor) - strlen (VALUE ":0")),
                                      metric.tensor));
  return TRUE;
}

static gboolean
add_all (MusterMetrics *self, const MusterEvaluateOptions *options, GError **error)
{
  const char *loss = muster_meta_graph_op (
      muster_scaffold_meta_graph (options->training.session.scaffold), "losses");
  const char *const fallback[] = {loss, NULL};
  const char *const *name = options->metrics != NULL ? options->metrics : fallback;
  if (*name == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "nothing to evaluate: the graph has no loss; name a metric, such as "
                        "--metric=accuracy");
  for (; *name != NULL; name++)
    if (!add (self, options, *name, error))
      return FALSE;
  return TRUE;
}

MusterMetrics *
muster_metrics_new (const MusterEvaluateOptions *options, GError **error)
{
  g_autoptr (MusterMetrics) self = g_new0 (MusterMetrics, 1);
  self->all = g_array_new (FALSE, FALSE, sizeof (Metric));
  g_array_set_clear_func (self->all, metric_clear);
  self->names = g_ptr_array_new_with_free_func (g_free);
  self->fetches = g_ptr_array_new ();
  self->targets = g_ptr_array_new_with_free_func (g_free);
  self->at_end = g_ptr_array_new ();
  if (!add_all (self, options, error))
    return NULL;
  g_ptr_array_add (self->names, NULL);
  g_ptr_array_add (self->fetches, NULL);
  g_ptr_array_add (self->targets, NULL);
  g_ptr_array_add (self->at_end, NULL);
  return g_steal_pointer (&self);
}

static const char *const *
strings_of (const GPtrArray *array)
{
  return (const char *const *)array->pdata;
}

const char *const *
muster_metrics_names (const MusterMetrics *self)
{
  return strings_of (self->names);
}

const char *
muster_metrics_tag (const MusterMetrics *self, gsize i)
{
  return g_array_index (self->all, Metric, i).tag;
}

const char *const *
muster_metrics_fetches (const MusterMetrics *self)
{
  return strings_of (self->fetches);
}

const char *const *
muster_metrics_targets (const MusterMetrics *self)
{
  return strings_of (self->targets);
}

char **
muster_metrics_all (const MusterMetrics *self)
{
  g_autoptr (GStrvBuilder) all = g_strv_builder_new ();
  for (guint i = 0; i < self->all->len; i++)
    g_strv_builder_add (all, g_array_index (self->all, Metric, i).tensor);
  g_strv_builder_addv (all, (const char **)self->targets->pdata);
  return g_strv_builder_end (all);
}

/* --- a run --- */

void
muster_metrics_begin (MusterMetrics *self)
{
  self->n_rows = 0;
  for (guint i = 0; i < self->all->len; i++)
    g_array_index (self->all, Metric, i).sum = 0;
}

static gboolean
read_value (const Metric *metric, const MusterTensor *tensor, double *value, GError **error)
{
  if (muster_tensor_get_double (tensor, value, error))
    return TRUE;
  g_prefix_error (error, "metric '%s': ", metric->tensor);
  return FALSE;
}

gboolean
muster_metrics_add (MusterMetrics *self, MusterTensor *const *fetched, gint64 n_rows,
                    GError **error)
{
  self->n_rows += (double)n_rows;
  for (guint i = 0; i < self->all->len; i++) {
    Metric *metric = &g_array_index (self->all, Metric, i);
    double value;
    if (metric->is_streaming)
      continue;
    if (!read_value (metric, *fetched++, &value, error))
      return FALSE;
    metric->sum += value * (double)n_rows;
  }
  return TRUE;
}

static gboolean
collect (const MusterMetrics *self, MusterTensor *const *fetched, GArray *values, GError **error)
{
  for (guint i = 0; i < self->all->len; i++) {
    const Metric *metric = &g_array_index (self->all, Metric, i);
    double value = metric->sum / self->n_rows;
    if (metric->is_streaming && !read_value (metric, *fetched++, &value, error))
      return FALSE;
    g_array_append_val (values, value);
  }
  return TRUE;
}

GArray *
muster_metrics_end (MusterMetrics *self, MusterSession *session, GCancellable *cancellable,
                    GError **error)
{
  const MusterStep step = {.fetches = strings_of (self->at_end),
                           .n_fetches = self->at_end->len - 1,
                           .deadline_us = MUSTER_WAIT_FOREVER};
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->at_end->len);
  if (step.n_fetches > 0 && !muster_session_run (session, &step, fetched, NULL, cancellable, error))
    return NULL;
  const gboolean is_read = collect (self, fetched, values, error);
  for (gsize i = 0; i < step.n_fetches; i++)
    muster_tensor_unref (fetched[i]);
  return is_read ? g_steal_pointer (&values) : NULL;
}
