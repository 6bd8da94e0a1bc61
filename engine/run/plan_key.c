// SPDX-License-Identifier: Apache-2.0
/* What a plan is found by: the names of feeds, fetches and targets, and a hash of them. */
#include "engine/run/plan.h"

#include <string.h>

static void
put_names (GByteArray *key, const char *const *names, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_byte_array_append (key, (const guint8 *)names[i], (guint)strlen (names[i]) + 1);
  g_byte_array_append (key, (const guint8 *)"", 1); /* no name is empty */
}

GBytes *
muster_step_key (const MusterStep *step)
{
  GByteArray *key = g_byte_array_new ();
  for (gsize i = 0; i < step->n_feeds; i++)
    g_byte_array_append (key, (const guint8 *)step->feeds[i].name,
                         (guint)strlen (step->feeds[i].name) + 1);
  g_byte_array_append (key, (const guint8 *)"", 1);
  put_names (key, step->fetches, step->n_fetches);
  put_names (key, step->targets, step->n_targets);
  return g_byte_array_free_to_bytes (key);
}

static guint64
hash_name (const char *name, guint64 hash)
{
  for (; *name != '\0'; name++)
    hash = (hash ^ (guint8)*name) * G_GUINT64_CONSTANT (0x100000001b3);
  return (hash ^ 0xff) * G_GUINT64_CONSTANT (0x100000001b3);
}

guint64
muster_step_hash (const MusterStep *step)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (gsize i = 0; i < step->n_feeds; i++)
    hash = hash_name (step->feeds[i].name, hash);
  hash = hash_name ("", hash);
  for (gsize i = 0; i < step->n_fetches; i++)
    hash = hash_name (step->fetches[i], hash);
  hash = hash_name ("", hash);
  for (gsize i = 0; i < step->n_targets; i++)
    hash = hash_name (step->targets[i], hash);
  return hash;
}

/* Compares one name with the key at *at and moves on; FALSE at the first difference. */
static gboolean
next_is (const char **at, const char *end, const char *name)
{
  const gsize size = strlen (name) + 1;
  if ((gsize)(end - *at) < size || memcmp (*at, name, size) != 0)
    return FALSE;
  *at += size;
  return TRUE;
}

gboolean
muster_plan_is_for (const MusterPlan *self, const MusterStep *step)
{
  gsize size;
  const char *at = g_bytes_get_data (self->key, &size);
  const char *end = at + size;
  for (gsize i = 0; i < step->n_feeds; i++)
    if (!next_is (&at, end, step->feeds[i].name))
      return FALSE;
  if (!next_is (&at, end, ""))
    return FALSE;
  for (gsize i = 0; i < step->n_fetches; i++)
    if (!next_is (&at, end, step->fetches[i]))
      return FALSE;
  if (!next_is (&at, end, ""))
    return FALSE;
  for (gsize i = 0; i < step->n_targets; i++)
    if (!next_is (&at, end, step->targets[i]))
      return FALSE;
  return next_is (&at, end, "") && at == end;
}
