// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_names.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *text; /* in texts */
  gsize size;
  gsize index;
} Name;

struct _MusterBundleNames {
  gatomicrefcount refs;
  gsize n;
  Name *names; /* (owned) in order */
  char *texts; /* (owned) each ended by a NUL */
};

static int
compare (gconstpointer a, gconstpointer b)
{
  const Name *left = a, *right = b;
  const int order = memcmp (left->text, right->text, MIN (left->size, right->size));
  return order != 0 ? order : (left->size > right->size) - (left->size < right->size);
}

static gboolean
is_name (MusterString text)
{
  return text.size > 0 && g_utf8_validate_len (text.data, text.size, NULL);
}

/* FALSE if an element is no name. */
static gboolean
copy_names (MusterBundleNames *self, MusterTensor *names)
{
  gsize size = 0;
  for (gsize i = 0; i < self->n; i++)
    size += muster_tensor_string (names, (gint64)i).size + 1;
  char *at = self->texts = g_malloc (MAX (size, 1));
  for (gsize i = 0; i < self->n; i++) {
    const MusterString text = muster_tensor_string (names, (gint64)i);
    if (!is_name (text))
      return FALSE;
    memcpy (at, text.data, text.size);
    at[text.size] = '\0';
    self->names[i] = (Name){.text = at, .size = text.size, .index = i};
    at += text.size + 1;
  }
  return TRUE;
}

MusterBundleNames *
muster_bundle_names_new (MusterTensor *names)
{
  g_return_val_if_fail (names != NULL && muster_tensor_dtype (names) == MUSTER_STRING, NULL);
  g_autoptr (MusterBundleNames) self = g_new0 (MusterBundleNames, 1);
  g_atomic_ref_count_init (&self->refs);
  self->n = (gsize)muster_tensor_n_elements (names);
  self->names = g_new (Name, self->n);
  if (!copy_names (self, names))
    return NULL;
  if (self->n > 0)
    qsort (self->names, self->n, sizeof *self->names, compare);
  for (gsize i = 1; i < self->n; i++)
    if (compare (&self->names[i - 1], &self->names[i]) == 0)
      return NULL;
  return g_steal_pointer (&self);
}

MusterBundleNames *
muster_bundle_names_ref (MusterBundleNames *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_bundle_names_unref (MusterBundleNames *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_free (self->names);
  g_free (self->texts);
  g_free (self);
}

gsize
muster_bundle_names_n (const MusterBundleNames *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n;
}

const char *
muster_bundle_names_get (const MusterBundleNames *self, gsize i, gsize *size, gsize *index)
{
  g_return_val_if_fail (self != NULL && i < self->n && size != NULL && index != NULL, NULL);
  const Name *name = &self->names[i];
  *size = name->size;
  *index = name->index;
  return name->text;
}
