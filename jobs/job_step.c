// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/step_copy_private.h"
#include "jobs/cluster.h"
#include "master/master.h"

/* Steps on the heap, and copies of nodes, for other languages. */

enum { NAME, TARGETS, OWNER };

static const MusterField owned[] = {
    [NAME] = MUSTER_STRING_FIELD (MusterJobStep, name),
    [TARGETS] = MUSTER_TYPED_FIELD (MusterJobStep, targets, g_strv_get_type),
    [OWNER] = MUSTER_TYPED_FIELD (MusterJobStep, func_owner, g_bytes_get_type),
};

MusterJobStep *
muster_job_step_copy (const MusterJobStep *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterJobStep *copy = muster_fields_copy (self, sizeof *self, owned, G_N_ELEMENTS (owned));
  copy->feeds = muster_feeds_copy (self->feeds, self->n_feeds);
  copy->destroy = NULL;
  return copy;
}

void
muster_job_step_free (MusterJobStep *self)
{
  if (self == NULL)
    return;
  muster_feeds_free (self->feeds, self->n_feeds);
  muster_fields_free (self, owned, G_N_ELEMENTS (owned));
}

G_DEFINE_BOXED_TYPE (MusterJobStep, muster_job_step, muster_job_step_copy, muster_job_step_free)

MusterJobStep *
muster_job_step_new (const char *name, const char *const *targets)
{
  const MusterJobStep step = {.name = name, .targets = targets};
  return muster_job_step_copy (&step);
}

void
muster_job_step_add_feed (MusterJobStep *self, const char *name, MusterTensor *tensor)
{
  g_return_if_fail (self != NULL && name != NULL && tensor != NULL);

  self->feeds = muster_feeds_append (self->feeds, &self->n_feeds, name, tensor);
}

void
muster_job_step_set_func (MusterJobStep *self, MusterJobFunc func, gpointer user_data,
                          GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && func != NULL);

  muster_fields_own (self, &owned[OWNER], user_data, destroy);
  self->func = func;
  self->user_data = user_data;
}

static const MusterField node_owned[] = {
    MUSTER_STRING_FIELD (MusterClusterNode, name),
    MUSTER_TYPED_FIELD (MusterClusterNode, master, muster_master_get_type),
    MUSTER_TYPED_FIELD (MusterClusterNode, scaffold, muster_scaffold_get_type),
    MUSTER_TYPED_FIELD (MusterClusterNode, graph, muster_graph_get_type),
    MUSTER_STRING_FIELD (MusterClusterNode, missing_op),
    MUSTER_TYPED_FIELD (MusterClusterNode, session, muster_session_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterClusterNode, muster_cluster_node, node_owned)
