// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/resource.h"

#include "base/memory_account_private.h"

#include <string.h>

/* What a resource takes beside its names and what grows: its contents, its place in a table. */
#define FIXED_SIZE 1024

struct _MusterResource {
  gatomicrefcount refs;
  const MusterResourceType *type; /* (not owned) */
  char *container;                /* (owned) */
  char *name;                     /* (owned) */
  gpointer data;                  /* (owned) the type's contents */
  gsize n_counted;                /* bytes, in the process's memory */
};

MusterResource *
muster_resource_new (const MusterResourceType *type, const char *container, const char *name,
                     gpointer data)
{
  MusterResource *self = g_new0 (MusterResource, 1);
  g_atomic_ref_count_init (&self->refs);
  self->type = type;
  self->container = g_strdup (container);
  self->name = g_strdup (name);
  self->data = data;
  self->n_counted = FIXED_SIZE + strlen (container) + 2 * strlen (name);
  muster_memory_add (MUSTER_MEMORY_RESOURCES, self->n_counted);
  return self;
}

MusterResource *
muster_resource_ref (MusterResource *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_resource_unref (MusterResource *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  self->type->free (self->data);
  g_free (self->container);
  g_free (self->name);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->n_counted);
  g_free (self);
}

const MusterResourceType *
muster_resource_type (const MusterResource *self)
{
  return self->type;
}

const char *
muster_resource_container (const MusterResource *self)
{
  return self->container;
}

const char *
muster_resource_name (const MusterResource *self)
{
  return self->name;
}

gpointer
muster_resource_data (const MusterResource *self)
{
  return self->data;
}

void
muster_resource_cancel (MusterResource *self)
{
  if (self->type->cancel != NULL)
    self->type->cancel (self->data);
}
