// SPDX-License-Identifier: Apache-2.0
/* Groups of tasks under construction: steps, setups, outputs, reports. job_run.c runs them. */
#include "jobs/job_group.h"

#include "base/check_time_private.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "graph/step_copy_private.h"
#include "jobs/job_group_private.h"

#define DEFAULT_INTERVAL_US MUSTER_SECOND
#define LOCAL_NODE          "local"

static gboolean
refuse_group (GError **error, MusterError code, const char *words)
{
  return muster_fail (error, code, "%s", words);
}

/* --- steps --- */

/* A copy that owns its function's data. */
static MusterJobStep *
own_step (const MusterJobStep *step)
{
  MusterJobStep *self = g_boxed_copy (MUSTER_TYPE_JOB_STEP, step);
  muster_own_more (&self->func_owner, step->user_data, step->destroy);
  return self;
}

static void
step_free (MusterJobStep *step)
{
  if (step != NULL)
    g_boxed_free (MUSTER_TYPE_JOB_STEP, step);
}

/* --- setups --- */

G_DEFINE_FINAL_TYPE (MusterJobSetup, muster_job_setup, G_TYPE_OBJECT)

MusterJobSetup *
muster_job_setup_new (const MusterJobStep *init, const MusterJobStep *exit)
{
  MusterJobSetup *self = g_object_new (MUSTER_TYPE_JOB_SETUP, NULL);
  self->init = init != NULL ? own_step (init) : NULL;
  self->exit = exit != NULL ? own_step (exit) : NULL;
  return self;
}

static void
muster_job_setup_finalize (GObject *object)
{
  MusterJobSetup *self = MUSTER_JOB_SETUP (object);
  step_free (self->init);
  step_free (self->exit);
  G_OBJECT_CLASS (muster_job_setup_parent_class)->finalize (object);
}

static void
muster_job_setup_init (MusterJobSetup *self G_GNUC_UNUSED)
{
}

static void
muster_job_setup_class_init (MusterJobSetupClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_setup_finalize;
}

/* --- outputs --- */

G_DEFINE_FINAL_TYPE (MusterJobOutput, muster_job_output, G_TYPE_OBJECT)

GPtrArray *
muster_job_output_get_list (MusterJobOutput *self, GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->values != NULL)
    return g_ptr_array_ref (self->values);
  muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "Output value not set yet.");
  return NULL;
}

MusterTensor *
muster_job_output_get (MusterJobOutput *self, GError **error)
{
  muster_require (error, NULL, self);

  g_autoptr (GPtrArray) values = muster_job_output_get_list (self, error);
  if (values == NULL)
    return NULL;
  if (values->len == 1)
    return muster_tensor_ref (values->pdata[0]);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "The output is a list of %u tensors: get it as one", values->len);
  return NULL;
}

void
muster_job_output_take (MusterJobOutput *self, MusterSession *session, GPtrArray *values)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_clear_pointer (&self->values, g_ptr_array_unref);
  self->values = values;
  g_set_object (&self->session, session);
}

gboolean
muster_job_output_set (MusterJobOutput *self, MusterTensor *const *values, gsize n, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, values, n);

  if (n != self->n) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Wrong number of output values. (%" G_GSIZE_FORMAT " for %" G_GSIZE_FORMAT ")", n, self->n);
  }
  g_autofree MusterTensor **own = muster_tensors_copy (values, n);
  GPtrArray *taken = muster_tensors_take (own, n);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_clear_pointer (&self->values, g_ptr_array_unref);
  self->values = taken;
  return TRUE;
}

gboolean
muster_job_output_fetch (MusterJobOutput *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, self);

  g_mutex_lock (&self->lock);
  g_autoptr (MusterSession) session = self->session != NULL ? g_object_ref (self->session) : NULL;
  const gboolean is_set = self->tensors == NULL && self->values != NULL;
  g_mutex_unlock (&self->lock);

  if (is_set)
    return TRUE;
  if (session == NULL) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "Cannot fetch value for this output.");
  }
  if (!muster_check_time ("Fetching an output", deadline_us, cancellable, error))
    return FALSE;
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, self->n);
  MusterStep step = {.fetches = (const char *const *)self->tensors,
                     .n_fetches = self->n,
                     .deadline_us = deadline_us};
  if (!muster_session_run (session, &step, fetched, NULL, cancellable, error))
    return FALSE;
  muster_job_output_take (self, session, muster_tensors_take (fetched, self->n));
  return TRUE;
}

static void
muster_job_output_finalize (GObject *object)
{
  MusterJobOutput *self = MUSTER_JOB_OUTPUT (object);
  g_clear_pointer (&self->values, g_ptr_array_unref);
  g_clear_object (&self->session);
  g_strfreev (self->tensors);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_job_output_parent_class)->finalize (object);
}

static void
muster_job_output_init (MusterJobOutput *self)
{
  g_mutex_init (&self->lock);
}

static void
muster_job_output_class_init (MusterJobOutputClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_output_finalize;
}

/* --- tasks --- */

G_DEFINE_FINAL_TYPE (MusterJobTask, muster_job_task, G_TYPE_OBJECT)

MusterJobTask *
muster_job_task_new (const char *name, const char *node, guint n_instances)
{
  MusterJobTask *self = g_object_new (MUSTER_TYPE_JOB_TASK, NULL);
  g_return_val_if_fail (n_instances <= MUSTER_JOB_MAX_INSTANCES, self);
  self->name = g_strdup (name);
  self->node = g_strdup (node != NULL ? node : LOCAL_NODE);
  self->n_instances = MAX (n_instances, 1);
  return self;
}

static gboolean
check_unused (MusterJobTask *self, GError **error)
{
  return !self->is_used || refuse_group (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                         "Cannot modify task since it is already been used.");
}

gboolean
muster_job_task_set_step (MusterJobTask *self, const MusterJobStep *step, GError **error)
{
  muster_require (error, FALSE, self, step);

  if (!check_unused (self, error))
    return FALSE;
  if (self->step != NULL)
    return refuse_group (error, MUSTER_ERROR_FAILED_PRECONDITION,
                         "This Task already has an execution step.");
  self->step = own_step (step);
  return TRUE;
}

static void
add_once (GPtrArray *objects, gpointer object)
{
  if (!g_ptr_array_find (objects, object, NULL))
    g_ptr_array_add (objects, g_object_ref (object));
}

gboolean
muster_job_task_add_setup (MusterJobTask *self, MusterJobSetup *setup, gboolean each_instance,
                           GError **error)
{
  muster_require (error, FALSE, self, setup);

  if (!check_unused (self, error))
    return FALSE;
  add_once (each_instance ? self->instance_setups : self->setups, setup);
  return TRUE;
}

MusterJobOutput *
muster_job_task_add_output (MusterJobTask *self, const char *const *tensors, GError **error)
{
  muster_require (error, NULL, self);

  if (!check_unused (self, error))
    return NULL;
  if (tensors != NULL && *tensors == NULL) {
    refuse_group (error, MUSTER_ERROR_INVALID_ARGUMENT, "an output must name at least one tensor");
    return NULL;
  }
  MusterJobOutput *output = g_object_new (MUSTER_TYPE_JOB_OUTPUT, NULL);
  output->tensors = g_strdupv ((char **)tensors);
  output->n = tensors != NULL ? g_strv_length (output->tensors) : 1;
  g_ptr_array_add (self->outputs, output);
  return output;
}

const char *
muster_job_task_name (MusterJobTask *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (self->full_name != NULL)
    return self->full_name;
  if (self->name != NULL)
    return self->name;
  return self->step != NULL && self->step->name != NULL ? self->step->name : "task";
}

const char *
muster_job_task_node (MusterJobTask *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->node;
}

static void
muster_job_task_finalize (GObject *object)
{
  MusterJobTask *self = MUSTER_JOB_TASK (object);
  step_free (self->step);
  g_ptr_array_unref (self->setups);
  g_ptr_array_unref (self->instance_setups);
  g_ptr_array_unref (self->outputs);
  g_free (self->name);
  g_free (self->full_name);
  g_free (self->node);
  G_OBJECT_CLASS (muster_job_task_parent_class)->finalize (object);
}

static void
muster_job_task_init (MusterJobTask *self)
{
  self->setups = g_ptr_array_new_with_free_func (g_object_unref);
  self->instance_setups = g_ptr_array_new_with_free_func (g_object_unref);
  self->outputs = g_ptr_array_new_with_free_func (g_object_unref);
}

static void
muster_job_task_class_init (MusterJobTaskClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_task_finalize;
}

/* --- groups --- */

G_DEFINE_FINAL_TYPE (MusterJobGroup, muster_job_group, G_TYPE_OBJECT)

MusterJobGroup *
muster_job_group_new (void)
{
  return g_object_new (MUSTER_TYPE_JOB_GROUP, NULL);
}

static gboolean
check_open (MusterJobGroup *self, GError **error)
{
  return !self->is_used || refuse_group (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                         "Cannot add Task to an already used TaskGroup.");
}

/* "d/n", else "d/n:1" and on. */
static char *
free_name (MusterJobGroup *self, MusterJobTask *task)
{
  g_autofree char *first = g_strdup_printf ("%s/%s", task->node, muster_job_task_name (task));

  for (guint i = 0;; i++) {
    char *name = i == 0 ? g_strdup (first) : g_strdup_printf ("%s:%u", first, i);
    if (!g_hash_table_contains (self->names, name))
      return name;
    g_free (name);
  }
}

gboolean
muster_job_group_add (MusterJobGroup *self, MusterJobTask *task, GError **error)
{
  muster_require (error, FALSE, self, task);

  if (!check_open (self, error))
    return FALSE;
  if (task->full_name != NULL) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "Task '%s' is in a group already",
                        task->full_name);
  }
  task->full_name = free_name (self, task);
  g_hash_table_add (self->names, task->full_name);
  g_ptr_array_add (self->tasks, g_object_ref (task));
  return TRUE;
}

static void
beside_free (gpointer data)
{
  MusterJobBeside *self = data;
  g_clear_object (&self->setup);
  step_free (self->report);
  g_free (self->node);
  g_free (self);
}

static MusterJobBeside *
add_beside (MusterJobGroup *self, const char *node)
{
  MusterJobBeside *beside = g_new0 (MusterJobBeside, 1);
  beside->node = g_strdup (node != NULL ? node : LOCAL_NODE);
  g_ptr_array_add (self->beside, beside);
  return beside;
}

gboolean
muster_job_group_add_setup (MusterJobGroup *self, const char *node, MusterJobSetup *setup,
                            GError **error)
{
  muster_require (error, FALSE, self, node, setup);

  if (!check_open (self, error))
    return FALSE;
  add_beside (self, node)->setup = g_object_ref (setup);
  return TRUE;
}

gboolean
muster_job_group_add_report (MusterJobGroup *self, const char *node, const MusterJobStep *step,
                             gint64 interval_us, GError **error)
{
  muster_require (error, FALSE, self, node, step);

  if (!check_open (self, error))
    return FALSE;
  if (interval_us < 0)
    return refuse_group (error, MUSTER_ERROR_INVALID_ARGUMENT,
                         "invalid report interval (use 0 or more)");
  MusterJobBeside *beside = add_beside (self, node);
  beside->report = own_step (step);
  beside->interval_us = interval_us > 0 ? interval_us : DEFAULT_INTERVAL_US;
  return TRUE;
}

char **
muster_job_group_nodes (MusterJobGroup *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GStrvBuilder) nodes = g_strv_builder_new ();
  for (guint i = 0; i < self->tasks->len; i++) {
    MusterJobTask *task = self->tasks->pdata[i];
    if (g_hash_table_add (seen, task->node))
      g_strv_builder_add (nodes, task->node);
  }
  return g_strv_builder_end (nodes);
}

GPtrArray *
muster_job_group_tasks (MusterJobGroup *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  self->is_used = TRUE;
  for (guint i = 0; i < self->tasks->len; i++)
    ((MusterJobTask *)self->tasks->pdata[i])->is_used = TRUE;
  return self->tasks;
}

/* --- by node --- */

static void
part_free (gpointer data)
{
  MusterJobPart *self = data;
  g_ptr_array_unref (self->tasks);
  g_ptr_array_unref (self->setups);
  g_ptr_array_unref (self->reports);
  g_free (self->node);
  g_free (self);
}

/* The part of a node, created if necessary. */
static MusterJobPart *
part_of (GPtrArray *parts, GHashTable *names, const char *node)
{
  const char *mapped = names != NULL ? g_hash_table_lookup (names, node) : NULL;
  node = mapped != NULL ? mapped : node;
  for (guint i = 0; i < parts->len; i++)
    if (g_str_equal (((MusterJobPart *)parts->pdata[i])->node, node))
      return parts->pdata[i];
  MusterJobPart *part = g_new0 (MusterJobPart, 1);
  part->node = g_strdup (node);
  part->tasks = g_ptr_array_new ();
  part->setups = g_ptr_array_new_with_free_func (g_object_unref);
  part->reports = g_ptr_array_new ();
  g_ptr_array_add (parts, part);
  return part;
}

static gboolean
same_names (GHashTable *a, GHashTable *b)
{
  GHashTableIter iter;
  gpointer from, to;
  if ((a != NULL ? g_hash_table_size (a) : 0) != (b != NULL ? g_hash_table_size (b) : 0))
    return FALSE;
  if (a == NULL || b == NULL)
    return TRUE;
  g_hash_table_iter_init (&iter, a);
  while (g_hash_table_iter_next (&iter, &from, &to))
    if (g_strcmp0 (to, g_hash_table_lookup (b, from)) != 0)
      return FALSE;
  return TRUE;
}

static GHashTable *
copy_names (GHashTable *names)
{
  GHashTable *copy = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  GHashTableIter iter;
  gpointer from, to;
  if (names == NULL)
    return copy;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &from, &to))
    g_hash_table_insert (copy, g_strdup (from), g_strdup (to));
  return copy;
}

GPtrArray *
muster_job_group_tasks_by_node (MusterJobGroup *self, GHashTable *names, GError **error)
{
  muster_require (error, NULL, self);

  if (self->parts != NULL && same_names (self->mapped, names))
    return self->parts;
  if (self->parts != NULL) {
    refuse_group (error, MUSTER_ERROR_FAILED_PRECONDITION,
                  "Cannot call tasks_by_node multiple times.");
    return NULL;
  }
  GPtrArray *tasks = muster_job_group_tasks (self);
  self->parts = g_ptr_array_new_with_free_func (part_free);
  self->mapped = copy_names (names);
  for (guint i = 0; i < tasks->len; i++) {
    MusterJobTask *task = tasks->pdata[i];
    g_ptr_array_add (part_of (self->parts, names, task->node)->tasks, task);
  }
  for (guint i = 0; i < self->beside->len; i++) {
    MusterJobBeside *beside = self->beside->pdata[i];
    MusterJobPart *part = part_of (self->parts, names, beside->node);
    if (beside->setup != NULL)
      add_once (part->setups, beside->setup);
    else
      g_ptr_array_add (part->reports, beside);
  }
  return self->parts;
}

static void
muster_job_group_finalize (GObject *object)
{
  MusterJobGroup *self = MUSTER_JOB_GROUP (object);
  g_clear_pointer (&self->parts, g_ptr_array_unref);
  g_clear_pointer (&self->mapped, g_hash_table_unref);
  g_hash_table_unref (self->names);
  g_ptr_array_unref (self->beside);
  g_ptr_array_unref (self->tasks);
  g_free (self->compiled_for);
  G_OBJECT_CLASS (muster_job_group_parent_class)->finalize (object);
}

static void
muster_job_group_init (MusterJobGroup *self)
{
  self->tasks = g_ptr_array_new_with_free_func (g_object_unref);
  self->names = g_hash_table_new (g_str_hash, g_str_equal);
  self->beside = g_ptr_array_new_with_free_func (beside_free);
}

static void
muster_job_group_class_init (MusterJobGroupClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_group_finalize;
}
