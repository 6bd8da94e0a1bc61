// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/meta_graph/meta_graph_io.h"

/* Copies of what describes a meta graph, and of the options of its export and import. */

static const MusterField variable_fields[] = {
    MUSTER_STRING_FIELD (MusterVariableInfo, name),
    MUSTER_STRING_FIELD (MusterVariableInfo, initializer),
    MUSTER_STRING_FIELD (MusterVariableInfo, snapshot),
    MUSTER_STRING_FIELD (MusterVariableInfo, device),
    MUSTER_STRING_FIELD (MusterVariableInfo, full_name),
    MUSTER_STRING_FIELD (MusterVariableInfo, slice),
};

G_DEFINE_BOXED_TYPE (MusterVariableInfo, muster_variable_info, muster_variable_info_copy,
                     muster_variable_info_free)

MusterVariableInfo *
muster_variable_info_new (void)
{
  return muster_variable_info_copy (&(MusterVariableInfo){.n_dims = -1});
}

MusterVariableInfo *
muster_variable_info_copy (const MusterVariableInfo *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterVariableInfo *copy =
      muster_fields_copy (self, sizeof *self, variable_fields, G_N_ELEMENTS (variable_fields));
  int n_dims;
  copy->dims = muster_variable_info_shape (self, &n_dims);
  return copy;
}

void
muster_variable_info_free (MusterVariableInfo *self)
{
  if (self == NULL)
    return;
  g_free ((gint64 *)self->dims);
  muster_fields_free (self, variable_fields, G_N_ELEMENTS (variable_fields));
}

gint64 *
muster_variable_info_shape (const MusterVariableInfo *self, int *n_dims)
{
  g_return_val_if_fail (self != NULL && n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return self->n_dims > 0 ? g_memdup2 (self->dims, (gsize)self->n_dims * sizeof *self->dims) : NULL;
}

static const MusterField saver_fields[] = {
    MUSTER_STRING_FIELD (MusterSaverInfo, filename_tensor),
    MUSTER_STRING_FIELD (MusterSaverInfo, save_tensor),
    MUSTER_STRING_FIELD (MusterSaverInfo, restore_op),
};
MUSTER_DEFINE_OPTIONS (MusterSaverInfo, muster_saver_info, saver_fields)

MusterSaverInfo *
muster_saver_info_new (void)
{
  return g_new0 (MusterSaverInfo, 1);
}

static const MusterField export_fields[] = {MUSTER_STRING_FIELD (MusterExport, export_scope)};
MUSTER_DEFINE_OPTIONS (MusterExport, muster_export, export_fields)

MusterExport *
muster_export_new (void)
{
  return g_new0 (MusterExport, 1);
}

static const MusterField import_fields[] = {MUSTER_STRING_FIELD (MusterImport, import_scope)};
MUSTER_DEFINE_OPTIONS (MusterImport, muster_import, import_fields)

MusterImport *
muster_import_new (void)
{
  return g_new0 (MusterImport, 1);
}
