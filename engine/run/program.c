// SPDX-License-Identifier: Apache-2.0
#include "engine/run/program.h"

#include "engine/run/graph_check.h"
#include "graph/tensor_proto.h"

/* What a program keeps at most: plans, and nodes in all of them. */
#define MAX_PLANS      256
#define MAX_PLAN_NODES 1000000

struct _MusterProgram {
  gatomicrefcount refs;
  MusterGraph *graph; /* (owned) */
  GMutex lock;
  GPtrArray *plans;      /* (owned) of MusterPlan; guarded by lock */
  guint64 clock;         /* counts look-ups; guarded by lock */
  GHashTable *constants; /* (owned) node to MusterTensor; guarded by lock */
  gsize budget;          /* how much constants may yet expand; guarded by lock */
  gboolean is_checked;   /* guarded by lock, as what was found: */
  GError *wrong;         /* (owned) (nullable) with the graph */
  GError *misplaced;     /* (owned) (nullable) unless placement is soft */
};

MusterProgram *
muster_program_new (MusterGraph *graph)
{
  MusterProgram *self = g_new0 (MusterProgram, 1);
  g_atomic_ref_count_init (&self->refs);
  self->graph = muster_graph_ref (graph);
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
  g_clear_error (&self->wrong);
  g_clear_error (&self->misplaced);
  muster_graph_unref (self->graph);
  g_mutex_clear (&self->lock);
  g_free (self);
}

MusterGraph *
muster_program_graph (MusterProgram *self)
{
  return self->graph;
}

gboolean
muster_program_check (MusterProgram *self, gboolean soft_placement, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!self->is_checked && muster_graph_check (self->graph, &self->wrong))
    (void)muster_graph_check_placement (self->graph, &self->misplaced);
  self->is_checked = TRUE;
  const GError *found = self->wrong != NULL || soft_placement ? self->wrong : self->misplaced;
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
make_room (MusterProgram *self, guint n_nodes)
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
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  found = find_plan (self, step, hash);
  if (found != NULL) /* another thread was quicker */
    return muster_plan_ref (found);
  make_room (self, plan->n_nodes);
  plan->used = ++self->clock;
  g_ptr_array_add (self->plans, muster_plan_ref (plan));
  return g_steal_pointer (&plan);
}

MusterTensor *
muster_program_constant (MusterProgram *self, guint32 node, GError **error)
{
  const Tensorflow__NodeDef *def = muster_graph_node (self->graph, node);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterTensor *known = g_hash_table_lookup (self->constants, GUINT_TO_POINTER (node));
  if (known != NULL)
    return muster_tensor_ref (known);
  const Tensorflow__AttrValue *value = muster_node_attr (def, "value");
  if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Node '%s' (op 'Const') has no attr 'value'", def->name);
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
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Node '%s' (op 'Const') has a value of type %s, but its attr 'dtype' says %s",
                 def->name, muster_dtype_name (muster_tensor_dtype (tensor)),
                 muster_dtype_name (dtype));
    return NULL;
  }
  g_hash_table_insert (self->constants, GUINT_TO_POINTER (node), muster_tensor_ref (tensor));
  return g_steal_pointer (&tensor);
}
