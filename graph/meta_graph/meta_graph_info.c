// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/meta_graph/meta_graph_io.h"

/* Copies of what describes a meta graph, and of the options of its export and import. */

MUSTER_DEFINE_FIELDS (MusterVariableInfo, muster_variable_info)

MusterVariableInfo *
muster_variable_info_new (void)
{
  return muster_variable_info_copy (&(MusterVariableInfo){.n_dims = -1});
}

static MusterVariableInfo *
muster_variable_info_copy (const MusterVariableInfo *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterVariableInfo *copy = muster_fields_copy (&muster_variable_info_fields, self);
  int n_dims;
  copy->dims = muster_variable_info_shape (self, &n_dims);
  return copy;
}

static void
muster_variable_info_free (MusterVariableInfo *self)
{
  if (self == NULL)
    return;
  g_free ((gint64 *)self->dims);
  muster_fields_free (&muster_variable_info_fields, self);
}

gint64 *
muster_variable_info_shape (const MusterVariableInfo *self, int *n_dims)
{
  g_return_val_if_fail (self != NULL && n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return self->n_dims > 0 ? g_memdup2 (self->dims, (gsize)self->n_dims * sizeof *self->dims) : NULL;
}

MUSTER_DEFINE_OPTIONS (MusterSaverInfo, muster_saver_info)

MUSTER_DEFINE_OPTIONS (MusterExport, muster_export)

MUSTER_DEFINE_OPTIONS (MusterImport, muster_import)
