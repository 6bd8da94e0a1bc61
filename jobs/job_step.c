// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/step_copy_private.h"
#include "jobs/cluster.h"
#include "master/master.h"

/* Steps on the heap, and copies of nodes, for other languages. */

MUSTER_DEFINE_FIELDS (MusterJobStep, muster_job_step)

static MusterJobStep *
muster_job_step_copy (const MusterJobStep *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterJobStep *copy = muster_fields_copy (&muster_job_step_fields, self);
  copy->feeds = muster_feeds_copy (self->feeds, self->n_feeds);
  copy->destroy = NULL;
  return copy;
}

static void
muster_job_step_free (MusterJobStep *self)
{
  if (self == NULL)
    return;
  muster_feeds_free (self->feeds, self->n_feeds);
  muster_fields_free (&muster_job_step_fields, self);
}

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

  muster_own_data (&self->func_owner, user_data, destroy);
  self->func = func;
  self->user_data = user_data;
}

MUSTER_DEFINE_OPTIONS (MusterClusterNode, muster_cluster_node)
