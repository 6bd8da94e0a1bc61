// SPDX-License-Identifier: Apache-2.0
/* Recognises what a file is by its beginning, so that an error can name it: a checkpoint, an
 * archive, another program's model. */
#include "base/protowire_private.h"
#include "graph/meta_graph/graph_file_private.h"

#include <string.h>

#define EXPORT "export the graph from its program with tf.compat.v1.train.export_meta_graph ()"
#define META   "the graph is in the .meta file beside it"

/* A frozen one, or a graph.pbtxt beside a checkpoint: nodes alone. */
#define GRAPH        "a GraphDef, such as a frozen graph: it names no initialisers and no saver"
#define GRAPH_REMEDY "use the .meta file beside its checkpoint, or " EXPORT

/* The beginning of a kind of file, at an offset. */
typedef struct {
  const char *start;
  gsize size;
  gsize offset;
  const char *what;
  const char *remedy;
} Magic;

#define STARTS(text, what, remedy)                                                                 \
  {                                                                                                \
    text, sizeof (text) - 1, 0, what, remedy                                                       \
  }
#define HAS_AT(offset, text, what, remedy)                                                         \
  {                                                                                                \
    text, sizeof (text) - 1, offset, what, remedy                                                  \
  }

static const Magic magics[] = {
    STARTS ("version https://git-lfs", "a Git LFS pointer", "fetch the file with `git lfs pull`"),
    STARTS ("<!doctype", "an HTML page", "download the file itself"),
    STARTS ("<html", "an HTML page", "download the file itself"),
    STARTS ("<?xml", "an XML page", "download the file itself"),
    STARTS ("\x1f\x8b", "compressed by gzip", "decompress it with `gunzip`"),
    STARTS ("BZh", "compressed by bzip2", "decompress it with `bunzip2`"),
    STARTS ("\xfd"
            "7zXZ",
            "compressed by xz", "decompress it with `unxz`"),
    STARTS ("\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it with `unzstd`"),
    STARTS ("PK\x03\x04", "a ZIP archive", "unpack it first"),
    STARTS ("\x89HDF\r\n", "a Keras model or its weights in HDF5", EXPORT),
    STARTS ("\x93NUMPY", "a NumPy array", "name the graph; arrays are for --feed=NAME=@FILE.npy"),
    STARTS ("{", "JSON", EXPORT),
    HAS_AT (4, "TFL3", "a TensorFlow Lite model, which can't be trained", EXPORT),
    HAS_AT (257, "ustar", "a tar archive", "unpack it with `tar -xf`"),
    HAS_AT (23, "brain.Event", "an event file for TensorBoard", META),
};

/* The magic number at the end of a LevelDB table. */
static const guint8 table_end[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

/* A text form begins with a field of its message. */
static const struct {
  const char *field;
  MusterGraphFileForm form;
} fields[] = {
    {"meta_info_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"graph_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"saver_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"collection_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"signature_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"asset_file_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"object_graph_def", MUSTER_GRAPH_FILE_META_TEXT},
    {"saved_model_schema_version", MUSTER_GRAPH_FILE_SAVED_MODEL_TEXT},
    {"meta_graphs", MUSTER_GRAPH_FILE_SAVED_MODEL_TEXT},
    {"node", MUSTER_GRAPH_FILE_GRAPH_TEXT},
    {"versions", MUSTER_GRAPH_FILE_GRAPH_TEXT},
    {"library", MUSTER_GRAPH_FILE_GRAPH_TEXT},
    {"model_checkpoint_path", MUSTER_GRAPH_FILE_OTHER},
    {"all_model_checkpoint_paths", MUSTER_GRAPH_FILE_OTHER},
};

static gboolean
is_blank (char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Skips spaces and comments. */
static gsize
skip_blank (const char *data, gsize size, gsize at)
{
  while (at < size && (is_blank (data[at]) || data[at] == '#')) {
    const char *newline = data[at] == '#' ? memchr (data + at, '\n', size - at) : data + at;
    at = newline != NULL ? (gsize)(newline - data) + 1 : size;
  }
  return at;
}

/* "graph_def {": a name, then what stands behind a field's. */
static gboolean
has_field (const char *data, gsize size, gsize at, const char *name)
{
  const gsize length = strlen (name);
  if (size - at <= length || memcmp (data + at, name, length) != 0)
    return FALSE;
  at = skip_blank (data, size, at + length);
  return at < size && strchr (":{<", data[at]) != NULL && data[at] != '\0';
}

static MusterGraphFileKind
kind_of (MusterGraphFileForm form)
{
  if (form == MUSTER_GRAPH_FILE_GRAPH || form == MUSTER_GRAPH_FILE_GRAPH_TEXT)
    return (MusterGraphFileKind){form, GRAPH, GRAPH_REMEDY};
  if (form == MUSTER_GRAPH_FILE_OTHER)
    return (MusterGraphFileKind){form, "a checkpoint state file", META};
  return (MusterGraphFileKind){form, NULL, NULL};
}

static gboolean
is_text (const char *data, gsize size, MusterGraphFileKind *kind)
{
  const gsize at = skip_blank (data, size, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (fields); i++)
    if (has_field (data, size, at, fields[i].field)) {
      *kind = kind_of (fields[i].form);
      return TRUE;
    }
  return FALSE;
}

static gboolean
is_magic (const char *data, gsize size, MusterGraphFileKind *kind)
{
  for (gsize i = 0; i < G_N_ELEMENTS (magics); i++) {
    const Magic *magic = &magics[i];
    if (size >= magic->offset + magic->size &&
        g_ascii_strncasecmp (data + magic->offset, magic->start, magic->size) == 0) {
      *kind = (MusterGraphFileKind){MUSTER_GRAPH_FILE_OTHER, magic->what, magic->remedy};
      return TRUE;
    }
  }
  return FALSE;
}

/* A checkpoint's own files. A V1 checkpoint is one table of any name. */
static gboolean
is_checkpoint (const char *path, const char *data, gsize size, MusterGraphFileKind *kind)
{
  const char *what = NULL;
  if (size >= sizeof table_end &&
      memcmp (data + size - sizeof table_end, table_end, sizeof table_end) == 0)
    what = g_str_has_suffix (path, ".index") ? "the index of a checkpoint" : "a V1 checkpoint";
  else if (g_strrstr (path, ".data-") != NULL)
    what = "a data file of a checkpoint";
  if (what != NULL)
    *kind = (MusterGraphFileKind){MUSTER_GRAPH_FILE_OTHER, what, META};
  return what != NULL;
}

/* A program, a page, a list: no message of ours begins with so much text. */
static gboolean
is_other_text (const char *data, gsize size, MusterGraphFileKind *kind)
{
  for (gsize i = 0; i < MIN (size, 256); i++)
    if (!g_ascii_isprint (data[i]) && !is_blank (data[i]))
      return FALSE;
  *kind = (MusterGraphFileKind){MUSTER_GRAPH_FILE_OTHER, "a text of another kind", EXPORT};
  return TRUE;
}

/* "MatMul", "Placeholder"; not what a MetaInfoDef has in this field: a serialised OpList. */
static gboolean
is_op (const MusterProtoField *field)
{
  gboolean is_op = field->size > 0 && (g_ascii_isupper (field->data[0]) || field->data[0] == '_');
  for (gsize i = 0; is_op && i < field->size; i++)
    is_op = g_ascii_isalnum (field->data[i]) || strchr ("_>.", field->data[i]) != NULL;
  return is_op;
}

/* A SavedModel's first field is its version; a GraphDef's a node; a MetaGraphDef's its MetaInfoDef.
 */
static MusterGraphFileForm
binary_form (const char *data, gsize size)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField first, part;
  if (!muster_proto_read_field (&reader, &first) || first.number != 1)
    return MUSTER_GRAPH_FILE_META;
  if (first.type == MUSTER_WIRE_VARINT)
    return MUSTER_GRAPH_FILE_SAVED_MODEL;
  MusterProtoReader node = muster_proto_reader (first.data, first.size);
  while (first.type == MUSTER_WIRE_BYTES && muster_proto_read_field (&node, &part))
    if (part.number == 2 && part.type == MUSTER_WIRE_BYTES)
      return is_op (&part) ? MUSTER_GRAPH_FILE_GRAPH : MUSTER_GRAPH_FILE_META;
  return MUSTER_GRAPH_FILE_META;
}

MusterGraphFileKind
muster_graph_file_kind (const char *path, const char *data, gsize size)
{
  MusterGraphFileKind kind;
  if (size == 0)
    return (MusterGraphFileKind){MUSTER_GRAPH_FILE_OTHER, "empty", "copy the file again"};
  return is_text (data, size, &kind) || is_magic (data, size, &kind) ||
                 is_checkpoint (path, data, size, &kind) || is_other_text (data, size, &kind)
             ? kind
             : kind_of (binary_form (data, size));
}
