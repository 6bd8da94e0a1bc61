// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/edit/selection_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/format/object_graph.h"

#include <string.h>

typedef struct {
  const char *const *patterns; /* (not owned) */
  GPtrArray *specs;            /* (owned) (element-type GPatternSpec) one for each */
  gboolean *is_used;           /* (owned) for each */
  MusterObjectNames *names;    /* (owned) (nullable) */
} Matcher;

static void
matcher_clear (Matcher *self)
{
  g_clear_pointer (&self->specs, g_ptr_array_unref);
  g_clear_pointer (&self->is_used, g_free);
  g_clear_pointer (&self->names, muster_object_names_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Matcher, matcher_clear)

static void
selected_clear (gpointer data)
{
  g_free (((MusterSelected *)data)->name);
}

static gboolean
fits (GPatternSpec *spec, const char *name)
{
  return name != NULL && g_pattern_spec_match_string (spec, name);
}

/* Marks every pattern that fits as used. *is_named (in and out): one of them is a plain name. */
static gboolean
matches (Matcher *self, const char *key, const MusterObjectName *object, gboolean *is_named)
{
  gboolean is_any = FALSE;
  for (guint i = 0; i < self->specs->len; i++) {
    GPatternSpec *spec = self->specs->pdata[i];
    if (!fits (spec, key) &&
        (object == NULL || (!fits (spec, object->path) && !fits (spec, object->full_name))))
      continue;
    self->is_used[i] = TRUE;
    *is_named = *is_named || strpbrk (self->patterns[i], "*?") == NULL;
    is_any = TRUE;
  }
  return is_any;
}

static gboolean
check_used (const Matcher *self, const char *prefix, const char *const *patterns, GError **error)
{
  for (guint i = 0; i < self->specs->len; i++)
    if (!self->is_used[i])
      return muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                          "no tensor of the checkpoint '%s' matches '%s'", prefix, patterns[i]);
  return TRUE;
}

static void
read_patterns (Matcher *self, const char *const *patterns)
{
  self->patterns = patterns;
  self->specs = g_ptr_array_new_with_free_func ((GDestroyNotify)g_pattern_spec_free);
  for (const char *const *pattern = patterns; *pattern != NULL; pattern++)
    g_ptr_array_add (self->specs, g_pattern_spec_new (*pattern));
  self->is_used = g_new0 (gboolean, self->specs->len);
}

/* Reads the names of an object-based checkpoint, the only kind whose names differ from its keys.
 * */
static gboolean
read_names (Matcher *self, MusterStoredReader *reader, const char *prefix, GError **error)
{
  g_autoptr (GError) why = NULL;
  if (muster_bundle_index_find (reader->index, MUSTER_OBJECT_GRAPH_KEY,
                                strlen (MUSTER_OBJECT_GRAPH_KEY)) == NULL)
    return TRUE;
  g_autoptr (MusterBundleReader) bundle =
      muster_bundle_reader_open (reader->work->storage, prefix, error);
  if (bundle == NULL)
    return FALSE;
  self->names = muster_object_names_read (bundle, &why);
  if (why == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

GArray *
muster_selection_new (MusterStoredReader *reader, const char *prefix, const char *const *patterns,
                      GError **error)
{
  const GArray *entries = reader->index->entries;
  g_auto (Matcher) matcher = {0};
  g_autoptr (GArray) selected = g_array_new (FALSE, FALSE, sizeof (MusterSelected));
  g_array_set_clear_func (selected, selected_clear);
  read_patterns (&matcher, patterns);
  if (matcher.specs->len == 0) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "no names of variables to extract");
    return NULL;
  }
  if (!read_names (&matcher, reader, prefix, error))
    return NULL;
  for (guint i = reader->index->n_parts; i < entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (entries, MusterIndexEntry, i);
    const char *key = entry->entry.name;
    const MusterObjectName *object =
        matcher.names != NULL ? muster_object_names_find (matcher.names, key) : NULL;
    gboolean is_named = FALSE;
    if (!matches (&matcher, key, object, &is_named))
      continue;
    const MusterSelected one = {.entry = entry,
                                .is_named = is_named,
                                .name = g_strdup (object != NULL ? object->path : key)};
    g_array_append_val (selected, one);
  }
  return check_used (&matcher, prefix, patterns, error) ? g_steal_pointer (&selected) : NULL;
}

guint32
muster_selection_id (const char *prefix, const char *const *patterns)
{
  guint32 id = muster_crc32c_extend (0, prefix, strlen (prefix) + 1);
  for (const char *const *pattern = patterns; *pattern != NULL; pattern++)
    id = muster_crc32c_extend (id, *pattern, strlen (*pattern) + 1);
  return id;
}
