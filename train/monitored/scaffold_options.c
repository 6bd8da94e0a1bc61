// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/step_copy_private.h"
#include "train/monitored/scaffold.h"

MUSTER_DEFINE_FIELDS (MusterScaffoldOptions, muster_scaffold_options)

static MusterScaffoldOptions *
muster_scaffold_options_copy (const MusterScaffoldOptions *self)
{
  MusterScaffoldOptions *copy = muster_fields_copy (&muster_scaffold_options_fields, self);
  copy->init_feeds = muster_feeds_copy (self->init_feeds, self->n_init_feeds);
  return copy;
}

static void
muster_scaffold_options_free (MusterScaffoldOptions *self)
{
  muster_feeds_free (self->init_feeds, self->n_init_feeds);
  muster_fields_free (&muster_scaffold_options_fields, self);
}

MusterScaffoldOptions *
muster_scaffold_options_new (MusterScaffold *copy_from)
{
  const MusterScaffoldOptions options = {.copy_from = copy_from};
  return muster_scaffold_options_copy (&options);
}

void
muster_scaffold_options_feed (MusterScaffoldOptions *self, const char *name, MusterTensor *value)
{
  g_return_if_fail (self != NULL && name != NULL && value != NULL);

  self->init_feeds = muster_feeds_append (self->init_feeds, &self->n_init_feeds, name, value);
}

void
muster_scaffold_options_set_init_func (MusterScaffoldOptions *self,
                                       MusterScaffoldInitFunc init_func, gpointer user_data,
                                       GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);

  muster_own_data (&self->init_func_owner, user_data, destroy);
  self->init_func = init_func;
  self->init_func_data = user_data;
}
