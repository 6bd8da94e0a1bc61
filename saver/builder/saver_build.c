// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "saver/builder/saver_builder.h"

/* The options of a saver's graph, which own what they point to. */

MUSTER_DEFINE_FIELDS (MusterSaverBuild, muster_saver_build)

static MusterSaverBuild *
muster_saver_build_copy (const MusterSaverBuild *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterSaverBuild *copy = muster_fields_copy (&muster_saver_build_fields, self);
  copy->map = NULL;
  copy->n_map = 0;
  for (gsize i = 0; i < self->n_map; i++)
    muster_saver_build_add_key (copy, self->map[i].key, self->map[i].variable);
  return copy;
}

static void
muster_saver_build_free (MusterSaverBuild *self)
{
  if (self == NULL)
    return;
  for (gsize i = 0; i < self->n_map; i++) {
    g_free ((char *)self->map[i].key);
    g_free ((char *)self->map[i].variable);
  }
  g_free ((MusterSaverKey *)self->map);
  muster_fields_free (&muster_saver_build_fields, self);
}

void
muster_saver_build_add_key (MusterSaverBuild *self, const char *key, const char *variable)
{
  g_return_if_fail (self != NULL && key != NULL && variable != NULL);
  MusterSaverKey *map = g_renew (MusterSaverKey, (MusterSaverKey *)self->map, self->n_map + 1);
  map[self->n_map] = (MusterSaverKey){.key = g_strdup (key), .variable = g_strdup (variable)};
  self->map = map;
  self->n_map++;
}
