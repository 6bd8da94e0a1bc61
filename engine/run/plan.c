// SPDX-License-Identifier: Apache-2.0
#include "engine/run/plan.h"

#include "base/error.h"
#include "base/memory_account_private.h"
#include "engine/run/graph_check.h"
#include "engine/run/registry.h"
#include "engine/run/slots.h"
#include "graph/tensor_proto_private.h"

#include <string.h>

/* The limits of a program's cache: plans, and nodes in all of them. */
#define MAX_PLANS      256
#define MAX_PLAN_NODES 1000000

/* A plan of more nodes is kept only if it is asked for again: init ops are large, and run once. */
#define LARGE_PLAN 65536
#define N_MADE     16

/* --- the key of a plan */

static void
put_names (GByteArray *key, const char *const *names, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_byte_array_append (key, (const guint8 *)names[i], (guint)strlen (names[i]) + 1);
  g_byte_array_append (key, (const guint8 *)"", 1); /* no name is empty */
}

static GBytes *
step_key (const MusterStep *step)
{
  GByteArray *key = g_byte_array_new ();
  for (gsize i = 0; i < step->n_feeds; i++)
    g_byte_array_append (key, (const guint8 *)step->feeds[i].name,
                         (guint)strlen (step->feeds[i].name) + 1);
  g_byte_array_append (key, (const guint8 *)"", 1);
  put_names (key, step->fetches, step->n_fetches);
  put_names (key, step->targets, step->n_targets);
  return g_byte_array_free_to_bytes (key);
}

static guint64
hash_name (const char *name, guint64 hash)
{
  for (; *name != '\0'; name++)
    hash = (hash ^ (guint8)*name) * G_GUINT64_CONSTANT (0x100000001b3);
  return (hash ^ 0xff) * G_GUINT64_CONSTANT (0x100000001b3);
}

guint64
muster_step_hash (const MusterStep *step)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (gsize i = 0; i < step->n_feeds; i++)
    hash = hash_name (step->feeds[i].name, hash);
  hash = hash_name ("", hash);
  for (gsize i = 0; i < step->n_fetches; i++)
    hash = hash_name (step->fetches[i], hash);
  hash = hash_name ("", hash);
  for (gsize i = 0; i < step->n_targets; i++)
    hash = hash_name (step->targets[i], hash);
  return hash;
}

/* Compares name with the one at *at in the key and advances; FALSE if they differ. */
static gboolean
next_is (const char **at, const char *end, const char *name)
{
  const gsize size = strlen (name) + 1;
  if ((gsize)(end - *at) < size || memcmp (*at, name, size) != 0)
    return FALSE;
  *at += size;
  return TRUE;
}

gboolean
muster_plan_is_for (const MusterPlan *self, const MusterStep *step)
{
  gsize size;
  const char *at = g_bytes_get_data (self->key, &size);
  const char *end = at + size;
  for (gsize i = 0; i < step->n_feeds; i++)
    if (!next_is (&at, end, step->feeds[i].name))
      return FALSE;
  if (!next_is (&at, end, ""))
    return FALSE;
  for (gsize i = 0; i < step->n_fetches; i++)
    if (!next_is (&at, end, step->fetches[i]))
      return FALSE;
  if (!next_is (&at, end, ""))
    return FALSE;
  for (gsize i = 0; i < step->n_targets; i++)
    if (!next_is (&at, end, step->targets[i]))
      return FALSE;
  return next_is (&at, end, "") && at == end;
}

/* --- creating and freeing --- */

MusterPlan *
muster_plan_ref (MusterPlan *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_plan_node_clear (MusterPlanNode *node)
{
  if (node->is_constant)
    muster_tensor_unref (node->constant);
  else
    g_free (node->resource);
  if (node->memo != NULL)
    node->memo->free (node->memo);
}

void
muster_plan_unref (MusterPlan *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  for (int i = 0; i < MUSTER_N_SPARES; i++)
    muster_run_free_scratch (self->spares[i]);
  for (guint32 i = 0; i < self->n_nodes; i++)
    muster_plan_node_clear (&self->nodes[i]);
  for (guint32 i = 0; i < self->n_feeds; i++)
    g_free (self->feeds[i].dims);
  g_free (self->nodes);
  g_free (self->inputs);
  g_free (self->controls);
  g_free (self->slot_dtypes);
  g_free (self->slot_nodes);
  g_free (self->feeds);
  g_free (self->fetches);
  g_clear_pointer (&self->texts, g_string_chunk_free);
  g_clear_pointer (&self->key, g_bytes_unref);
  muster_graph_unref (self->graph);
  muster_memory_release (MUSTER_MEMORY_GRAPHS, self->n_bytes);
  g_free (self);
}

/* Its arrays. A run counts its own. */
static gsize
size_of_plan (const MusterPlan *self)
{
  return self->n_nodes * (sizeof (MusterPlanNode) + 2 * sizeof (MusterPlanInput)) +
         ((gsize)self->n_slots + self->n_nodes) * sizeof (guint32) +
         self->n_feeds * sizeof (MusterPlanFeed) + self->n_fetches * sizeof (MusterPlanFetch) +
         g_bytes_get_size (self->key);
}

static gboolean
count_memory (MusterPlan *self, GError **error)
{
  const gsize n_bytes = size_of_plan (self);
  if (!muster_memory_take (MUSTER_MEMORY_GRAPHS, n_bytes, error))
    return FALSE;
  self->n_bytes = n_bytes;
  return TRUE;
}

/* --- a graph and its plans --- */

struct _MusterProgram {
  gatomicrefcount refs;
  MusterGraph *graph; /* (owned) */
  char **lacks;       /* (owned) */
  GMutex lock;
  GPtrArray *plans;        /* (owned) of MusterPlan; guarded by lock */
  guint64 clock;           /* counts look-ups; guarded by lock */
  guint64 made[N_MADE];    /* hashes of large plans that weren't kept; guarded by lock */
  guint n_made;            /* guarded by lock */
  GHashTable *constants;   /* (owned) node to MusterTensor; guarded by lock */
  gsize budget;            /* bytes by which constants may still expand; guarded by lock */
  gboolean is_checked;     /* guarded by lock, with the two results: */
  GError *graph_error;     /* (owned) (nullable) the graph's error */
  GError *placement_error; /* (owned) (nullable) an error unless placement is soft */
};

MusterProgram *
muster_program_new (MusterGraph *graph)
{
  MusterProgram *self = g_new0 (MusterProgram, 1);
  g_atomic_ref_count_init (&self->refs);
  self->graph = muster_graph_ref (graph);
  self->lacks = muster_op_lacking (graph);
  g_mutex_init (&self->lock);
  self->plans = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_plan_unref);
  self->constants = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify)muster_tensor_unref);
  self->budget = MUSTER_MAX_EXPANSION;
  return self;
}

MusterProgram *
muster_program_ref (MusterProgram *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_program_unref (MusterProgram *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_ptr_array_unref (self->plans);
  g_hash_table_unref (self->constants);
  g_clear_error (&self->graph_error);
  g_clear_error (&self->placement_error);
  g_strfreev (self->lacks);
  muster_graph_unref (self->graph);
  g_mutex_clear (&self->lock);
  g_free (self);
}

MusterGraph *
muster_program_graph (MusterProgram *self)
{
  return self->graph;
}

const char *const *
muster_program_lacks (MusterProgram *self)
{
  return (const char *const *)self->lacks;
}

gboolean
muster_program_check (MusterProgram *self, gboolean soft_placement, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!self->is_checked && muster_graph_check (self->graph, &self->graph_error))
    (void)muster_graph_check_placement (self->graph, &self->placement_error);
  self->is_checked = TRUE;
  const GError *found =
      self->graph_error != NULL || soft_placement ? self->graph_error : self->placement_error;
  if (found != NULL)
    g_propagate_error (error, g_error_copy (found));
  return found == NULL;
}

/* With the lock held. */
static MusterPlan *
find_plan (MusterProgram *self, const MusterStep *step, guint64 hash)
{
  for (guint i = 0; i < self->plans->len; i++) {
    MusterPlan *plan = g_ptr_array_index (self->plans, i);
    if (plan->hash == hash && muster_plan_is_for (plan, step)) {
      plan->used = ++self->clock;
      return plan;
    }
  }
  return NULL;
}

/* With the lock held: drops plans until one of n_nodes more fits. */
static void
drop_oldest_plans (MusterProgram *self, guint n_nodes)
{
  while (self->plans->len > 0) {
    guint oldest = 0;
    guint64 total = n_nodes;
    for (guint i = 0; i < self->plans->len; i++) {
      const MusterPlan *plan = g_ptr_array_index (self->plans, i);
      total += plan->n_nodes;
      if (plan->used < ((MusterPlan *)g_ptr_array_index (self->plans, oldest))->used)
        oldest = i;
    }
    if (self->plans->len < MAX_PLANS && total <= MAX_PLAN_NODES)
      return;
    g_ptr_array_remove_index_fast (self->plans, oldest);
  }
}

/* With the lock held: whether the plan is small, or was made before. */
static gboolean
is_worth_keeping (MusterProgram *self, const MusterPlan *plan)
{
  if (plan->n_nodes <= LARGE_PLAN)
    return TRUE;
  for (guint i = 0; i < MIN (self->n_made, N_MADE); i++)
    if (self->made[i] == plan->hash)
      return TRUE;
  self->made[self->n_made++ % N_MADE] = plan->hash;
  return FALSE;
}

MusterPlan *
muster_program_plan (MusterProgram *self, const MusterStep *step, guint64 hash, GError **error)
{
  g_mutex_lock (&self->lock);
  MusterPlan *found = find_plan (self, step, hash);
  if (found != NULL)
    muster_plan_ref (found);
  g_mutex_unlock (&self->lock);
  if (found != NULL)
    return found;

  g_autoptr (MusterPlan) plan = muster_plan_new (self, step, error);
  if (plan == NULL)
    return NULL;
  plan->hash = hash;
  plan->key = step_key (step);
  if (!count_memory (plan, error))
    return NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  found = find_plan (self, step, hash);
  if (found != NULL) /* another thread has added it meanwhile */
    return muster_plan_ref (found);
  plan->is_kept = is_worth_keeping (self, plan);
  if (!plan->is_kept)
    return g_steal_pointer (&plan);
  drop_oldest_plans (self, plan->n_nodes);
  plan->used = ++self->clock;
  g_ptr_array_add (self->plans, muster_plan_ref (plan));
  return g_steal_pointer (&plan);
}

MusterTensor *
muster_program_constant (MusterProgram *self, guint32 node, GError **error)
{
  const MusterNode *def = muster_graph_node (self->graph, node);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterTensor *known = g_hash_table_lookup (self->constants, GUINT_TO_POINTER (node));
  if (known != NULL)
    return muster_tensor_ref (known);
  const Tensorflow__AttrValue *value = muster_node_attr (def, "value");
  if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Node '%s' (op 'Const') has no attr 'value'",
                 def->name);
    return NULL;
  }
  g_autoptr (MusterTensor) tensor = muster_tensor_proto_read_within (
      value->tensor.data, value->tensor.len, NULL, &self->budget, error);
  if (tensor == NULL) {
    g_prefix_error (error, "Node '%s' (op 'Const'): ", def->name);
    return NULL;
  }
  const MusterDType dtype = muster_node_dtype (def, "dtype", MUSTER_INVALID);
  if (muster_tensor_dtype (tensor) != dtype) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Node '%s' (op 'Const') has a value of type %s, but its attr 'dtype' is %s",
                 def->name, muster_dtype_name (muster_tensor_dtype (tensor)),
                 muster_dtype_name (dtype));
    return NULL;
  }
  g_hash_table_insert (self->constants, GUINT_TO_POINTER (node), muster_tensor_ref (tensor));
  return g_steal_pointer (&tensor);
}
