// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "saver/directory/checkpoint_directory_private.h"

#include <string.h>

/* Which checkpoints of a directory are a saver's: those that its state file names, then those
 * that the side file says this saver published. Restoring and removing follow the same rule. Any
 * other file may be somebody's only copy, whatever its name. */

#define MOST_NAMED 5

static gboolean
has_base (const char *prefix, const char *base_name)
{
  g_autofree char *name = g_path_get_basename (prefix);
  const gsize n = strlen (base_name);
  return strncmp (name, base_name, n) == 0 &&
         (name[n] == '\0' || (name[n] == '-' && name[n + 1] != '\0' &&
                              strspn (name + n + 1, "0123456789") == strlen (name + n + 1)));
}

gboolean
muster_checkpoint_directory_names (const MusterCheckpointDirectory *self, const char *prefix)
{
  return has_base (prefix, self->base_name);
}

/* A checkpoint without files doesn't count, even if the record describes it. */
static gboolean
is_published (const MusterSideCheckpoint *one)
{
  return one != NULL && one->files->len > 0;
}

gboolean
muster_checkpoint_is_published_by (const MusterSideCheckpoint *one, const char *base_name,
                                   const char *state_file)
{
  return is_published (one) && one->bad == NULL &&
         (base_name == NULL || has_base (one->name, base_name)) &&
         g_strcmp0 (one->state_file, state_file) == 0;
}

gboolean
muster_checkpoint_directory_is_stranger (const MusterCheckpointDirectory *self,
                                         const MusterCheckpointRecord *record, const char *prefix)
{
  return !self->adopt_unknown && muster_checkpoint_directory_names (self, prefix) &&
         muster_checkpoint_step (prefix) >= 0 &&
         !is_published (muster_checkpoint_record_find (record, prefix));
}

char **
muster_checkpoint_directory_nobodys (MusterStorage *storage, const char *directory)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  g_auto (GStrv) all = muster_checkpoint_list (storage, directory, NULL);
  g_autoptr (GStrvBuilder) found = g_strv_builder_new ();

  for (guint i = all != NULL ? g_strv_length (all) : 0; i-- > 0;)
    if (record == NULL || !is_published (muster_checkpoint_record_find (record, all[i])))
      g_strv_builder_add (found, all[i]);
  return g_strv_builder_end (found);
}

char *
muster_checkpoint_directory_describe_nobodys (const char *directory, const char *const *prefixes)
{
  const guint n = g_strv_length ((char **)prefixes);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (
      text, "'%s' has %u checkpoint%s that neither its state file nor '%s' names: ", directory, n,
      n == 1 ? "" : "s", MUSTER_RECORD_FILE);
  for (guint i = 0; i < MIN (n, MOST_NAMED); i++) {
    g_autofree char *name = g_path_get_basename (prefixes[i]);
    g_string_append_printf (text, "%s'%s'", i > 0 ? ", " : "", name);
  }
  if (n > MOST_NAMED)
    g_string_append (text, ", …");
  return g_string_free (g_steal_pointer (&text), FALSE);
}
