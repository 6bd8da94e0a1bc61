// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/written.h"

void
written_check (GError *error)
{
  if (error != NULL)
    g_error ("%s", error->message);
}

MusterBundleWriter *
written_begin (const char *directory, const char *name)
{
  GError *error = NULL;
  g_autofree char *prefix = g_build_filename (directory, name, NULL);
  MusterBundleWriter *writer = muster_bundle_writer_new (NULL, prefix, &error);
  written_check (error);
  return writer;
}

void
written_add (MusterBundleWriter *writer, const char *name, const char *slice, MusterTensor *tensor)
{
  GError *error = NULL;
  if (slice != NULL)
    muster_bundle_writer_add_slice (writer, name, slice, tensor, &error);
  else
    muster_bundle_writer_add (writer, name, tensor, &error);
  written_check (error);
  muster_tensor_unref (tensor);
}

void
written_finish (MusterBundleWriter *writer)
{
  GError *error = NULL;
  muster_bundle_writer_finish (writer, &error);
  written_check (error);
  muster_bundle_writer_free (writer);
}

MusterTensor *
written_counting (gint64 rows, gint64 columns, gint32 first)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT32, 2, (const gint64[]){rows, columns});
  for (gint64 k = 0; k < rows * columns; k++)
    ((gint32 *)muster_tensor_data_mutable (tensor))[k] = first + (gint32)k;
  return tensor;
}
