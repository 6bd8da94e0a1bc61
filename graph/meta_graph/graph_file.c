// SPDX-License-Identifier: Apache-2.0
/* The one way from a name to a meta graph. */
#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/files/read_file_private.h"
#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/meta_graph/graph_file_private.h"
#include "graph/meta_graph/meta_graph_io.h"
#include "graph/proto/meta_graph_text.pb-c.h"
#include "graph/text/proto_text_private.h"

#include <glib/gstdio.h>
#include <string.h>

/* tensorflow.SavedModel, MetaGraphDef and MetaInfoDef */
enum { SAVED_META_GRAPH = 2, META_INFO = 1, INFO_TAG = 4 };

/* --- files --- */

/* The .meta file in a directory that was written last (nullable). */
static char *
latest_meta (const char *directory)
{
  g_autoptr (GDir) dir = g_dir_open (directory, 0, NULL);
  char *latest = NULL;
  gint64 when = 0;
  for (const char *name = NULL; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (directory, name, NULL);
    GStatBuf is;
    if (!g_str_has_suffix (name, ".meta") || g_stat (path, &is) != 0 ||
        (latest != NULL && is.st_mtime <= when))
      continue;
    g_free (latest);
    latest = g_steal_pointer (&path);
    when = is.st_mtime;
  }
  return latest;
}

/* The file of the SavedModel in a directory. */
static char *
saved_model_file (const char *directory, GError **error)
{
  static const char *const names[] = {"saved_model.pb", "saved_model.pbtxt"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    char *path = g_build_filename (directory, names[i], NULL);
    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return path;
    g_free (path);
  }
  g_autofree char *meta = latest_meta (directory);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "it is a directory without a SavedModel (saved_model.pb); name a graph's file%s%s%s",
               meta != NULL ? ", such as '" : "", meta != NULL ? meta : "",
               meta != NULL ? "'" : "");
  return NULL;
}

/* The file, and in *tags what stands behind the name of a SavedModel. */
static char *
find_file (const char *path, char **tags, GError **error)
{
  const char *colon = strrchr (path, ':');
  g_autofree char *place = g_strdup (path);
  if (colon != NULL && !g_file_test (path, G_FILE_TEST_EXISTS)) {
    place[colon - path] = '\0';
    if (g_file_test (place, G_FILE_TEST_EXISTS))
      *tags = g_strdup (colon + 1);
    else
      place[colon - path] = ':';
  }
  return g_file_test (place, G_FILE_TEST_IS_DIR) ? saved_model_file (place, error)
                                                 : g_steal_pointer (&place);
}

/* The contents of what a user named. *tags (transfer full) is NULL where there are none. */
static GBytes *
read_file (const char *path, char **tags, GError **error)
{
  g_autofree char *named = NULL;
  g_autofree char *file = find_file (muster_local_path (path), &named, error);
  const MusterFile from = {file, NULL, MUSTER_MAX_PROTO_FILE, TRUE};
  char *data;
  gsize size;
  if (file == NULL || !muster_file_read (&from, &data, &size, error))
    return NULL;
  *tags = g_steal_pointer (&named);
  return g_bytes_new_take (data, size);
}

/* --- SavedModels --- */

static void
append_tags (GPtrArray *tags, const guint8 *info, gsize size)
{
  MusterProtoReader reader = muster_proto_reader (info, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == INFO_TAG && field.type == MUSTER_WIRE_BYTES) {
      g_autofree char *raw = g_strndup ((const char *)field.data, field.size);
      g_ptr_array_add (tags, g_utf8_make_valid (raw, -1));
    }
}

static gint
compare_tags (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Sorted and joined, each once: "gpu,serve". (transfer full) */
static char *
join_tags (GPtrArray *tags)
{
  GString *text = g_string_new (NULL);
  g_ptr_array_sort (tags, compare_tags);
  for (guint i = 0; i < tags->len; i++)
    if (i == 0 || strcmp (tags->pdata[i], tags->pdata[i - 1]) != 0)
      g_string_append_printf (text, "%s%s", text->len > 0 ? "," : "", (char *)tags->pdata[i]);
  return g_string_free (text, FALSE);
}

static char *
tags_of (const guint8 *meta_graph, gsize size)
{
  g_autoptr (GPtrArray) tags = g_ptr_array_new_with_free_func (g_free);
  MusterProtoReader reader = muster_proto_reader (meta_graph, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == META_INFO && field.type == MUSTER_WIRE_BYTES)
      append_tags (tags, field.data, field.size);
  return join_tags (tags);
}

static char *
sorted_tags (const char *given)
{
  g_autoptr (GPtrArray) tags = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) parts = g_strsplit (given, ",", -1);
  for (char **it = parts; *it != NULL; it++)
    if (**it != '\0')
      g_ptr_array_add (tags, g_strdup (*it));
  return join_tags (tags);
}

/* Several meta graphs and no tags, or tags of none. */
static void
fail_to_choose (GPtrArray *all, const char *tags, GError **error)
{
  g_ptr_array_add (all, NULL);
  g_autofree char *list = g_strjoinv ("', '", (char **)all->pdata);
  if (tags == NULL)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the SavedModel has %u meta graphs; append the tags of one of them to the "
                 "directory's name, as in DIR:%s: '%s'",
                 all->len - 1, (char *)all->pdata[0], list);
  else
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the SavedModel has no meta graph with the tags '%s'; it has '%s'", tags, list);
}

/* The meta graph whose tags are all of those, as TensorFlow chooses it. */
static GBytes *
choose_meta_graph (GBytes *saved_model, const char *tags, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (saved_model, &size);
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *wanted = tags != NULL ? sorted_tags (tags) : NULL;
  g_autoptr (GBytes) chosen = NULL;
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != SAVED_META_GRAPH || field.type != MUSTER_WIRE_BYTES)
      continue;
    char *has = tags_of (field.data, field.size);
    g_ptr_array_add (all, has);
    if (chosen == NULL && (wanted == NULL || strcmp (wanted, has) == 0))
      chosen = g_bytes_new_from_bytes (saved_model, (gsize)(field.data - data), field.size);
  }
  if (!muster_proto_at_end (&reader) || all->len == 0) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the SavedModel is malformed, truncated or without a meta graph");
    return NULL;
  }
  if (chosen != NULL && (wanted != NULL || all->len == 1))
    return g_steal_pointer (&chosen);
  fail_to_choose (all, wanted, error);
  return NULL;
}

/* --- forms --- */

static GBytes *
from_text (const ProtobufCMessageDescriptor *descriptor, GBytes *text, GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (text, &size);
  GByteArray *parsed =
      muster_proto_text_parse (descriptor, MUSTER_PROTO_TEXT_SKIP_UNKNOWN, data, size, error);
  return parsed != NULL ? g_byte_array_free_to_bytes (parsed) : NULL;
}

static MusterMetaGraph *
new_from (GBytes *bytes, GError **error)
{
  return bytes != NULL ? muster_meta_graph_new (bytes, error) : NULL;
}

static MusterMetaGraph *
from_saved_model (GBytes *saved_model, const char *tags, GError **error)
{
  g_autoptr (GBytes) bytes =
      saved_model != NULL ? choose_meta_graph (saved_model, tags, error) : NULL;
  return new_from (bytes, error);
}

/* What a user named, in memory. */
typedef struct {
  GBytes *contents; /* (owned) */
  char *tags;       /* (owned) (nullable) of a SavedModel's meta graph */
  MusterGraphFileKind kind;
} Read;

static void
read_clear (Read *self)
{
  g_clear_pointer (&self->contents, g_bytes_unref);
  g_free (self->tags);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Read, read_clear)

static gboolean
read_kind (Read *self, const char *path, GError **error)
{
  gsize size;
  self->contents = read_file (path, &self->tags, error);
  if (self->contents == NULL)
    return FALSE;
  const char *data = g_bytes_get_data (self->contents, &size);
  self->kind = muster_graph_file_kind (path, data, size);
  return TRUE;
}

static MusterMetaGraph *
parse_meta_graph (const Read *self, GError **error)
{
  g_autoptr (GBytes) binary = NULL;
  switch (self->kind.form) {
  case MUSTER_GRAPH_FILE_META:
    return muster_meta_graph_new (self->contents, error);
  case MUSTER_GRAPH_FILE_META_TEXT:
    binary = from_text (&tensorflow_text__meta_graph_def__descriptor, self->contents, error);
    return new_from (binary, error);
  case MUSTER_GRAPH_FILE_SAVED_MODEL:
    return from_saved_model (self->contents, self->tags, error);
  case MUSTER_GRAPH_FILE_SAVED_MODEL_TEXT:
    binary = from_text (&tensorflow_text__saved_model__descriptor, self->contents, error);
    return from_saved_model (binary, self->tags, error);
  default:
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "it is %s, not a MetaGraphDef; %s",
                 self->kind.what, self->kind.remedy);
    return NULL;
  }
}

MusterMetaGraph *
muster_meta_graph_load (const char *path, GError **error)
{
  muster_require (error, NULL, path);
  g_auto (Read) read = {0};
  MusterMetaGraph *self = read_kind (&read, path, error) ? parse_meta_graph (&read, error) : NULL;
  if (self == NULL)
    g_prefix_error (error, "Loading the meta graph '%s': ", path);
  return self;
}

static MusterGraph *
parse_graph (const Read *self, GError **error)
{
  g_autoptr (GBytes) binary = NULL;
  if (self->kind.form == MUSTER_GRAPH_FILE_GRAPH)
    binary = g_bytes_ref (self->contents);
  else if (self->kind.form == MUSTER_GRAPH_FILE_GRAPH_TEXT)
    binary = from_text (&tensorflow_text__graph_def__descriptor, self->contents, error);
  else {
    g_autoptr (MusterMetaGraph) meta_graph = parse_meta_graph (self, error);
    return meta_graph != NULL ? muster_graph_ref (muster_meta_graph_graph (meta_graph)) : NULL;
  }
  g_autoptr (MusterGraph) graph = binary != NULL ? muster_graph_new (binary) : NULL;
  return graph != NULL && muster_graph_parse (graph, error) ? g_steal_pointer (&graph) : NULL;
}

MusterGraph *
muster_graph_load (const char *path, GError **error)
{
  muster_require (error, NULL, path);
  g_auto (Read) read = {0};
  MusterGraph *graph = read_kind (&read, path, error) ? parse_graph (&read, error) : NULL;
  if (graph == NULL)
    g_prefix_error (error, "Loading the graph '%s': ", path);
  return graph;
}
