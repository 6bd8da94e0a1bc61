// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/protowire_private.h"
#include "graph/tensor_proto_private.h"
#include "master/session.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* The cases that TensorFlow computed (record.py, a file for each): a graph and steps over it. */

typedef struct {
  char *name;           /* (owned) */
  MusterTensor *tensor; /* (owned) (nullable) */
} Named;

typedef struct {
  GArray *feeds;      /* (owned) of Named */
  GArray *fetches;    /* (owned) of Named */
  GPtrArray *targets; /* (owned) */
  int code;
  char *words; /* (owned) (nullable) */
} Step;

static inline void
named_clear (gpointer data)
{
  Named *self = data;

  g_free (self->name);
  muster_tensor_unref (self->tensor);
}

static inline void
step_init (Step *self)
{
  memset (self, 0, sizeof *self);
  self->feeds = g_array_new (FALSE, TRUE, sizeof (Named));
  self->fetches = g_array_new (FALSE, TRUE, sizeof (Named));
  self->targets = g_ptr_array_new_with_free_func (g_free);
  g_array_set_clear_func (self->feeds, named_clear);
  g_array_set_clear_func (self->fetches, named_clear);
}

static inline void
step_clear (Step *self)
{
  g_array_unref (self->feeds);
  g_array_unref (self->fetches);
  g_ptr_array_unref (self->targets);
  g_free (self->words);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Step, step_clear)

static inline char *
field_text (const MusterProtoField *field)
{
  return g_strndup ((const char *)field->data, field->size);
}

static inline void
golden_read_named (const MusterProtoField *message, GArray *list)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  Named named = {NULL, NULL};

  while (muster_proto_read_field (&reader, &field)) {
    g_autoptr (GError) error = NULL;
    if (field.number == 1)
      named.name = field_text (&field);
    else
      named.tensor = muster_tensor_proto_read (field.data, field.size, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  g_array_append_val (list, named);
}

static inline void
read_step (const MusterProtoField *message, Step *step)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;

  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == 1)
      golden_read_named (&field, step->feeds);
    else if (field.number == 2)
      golden_read_named (&field, step->fetches);
    else if (field.number == 3)
      g_ptr_array_add (step->targets, field_text (&field));
    else if (field.number == 4)
      step->code = (int)field.value;
    else
      step->words = field_text (&field);
  }
}

/* Runs the step; fetched has room for its fetches, and NULL behind them. */
static inline gboolean
golden_run (MusterSession *session, const Step *step, MusterTensor **fetched, GError **error)
{
  g_autoptr (GArray) feeds = g_array_new (FALSE, TRUE, sizeof (MusterFeed));
  g_autoptr (GPtrArray) fetches = g_ptr_array_new ();
  MusterStep wanted = {.deadline_us = MUSTER_WAIT_FOREVER};

  for (guint i = 0; i < step->feeds->len; i++) {
    Named *named = &g_array_index (step->feeds, Named, i);
    MusterFeed feed = {named->name, named->tensor};
    g_array_append_val (feeds, feed);
  }
  for (guint i = 0; i < step->fetches->len; i++)
    g_ptr_array_add (fetches, g_array_index (step->fetches, Named, i).name);
  wanted.feeds = (const MusterFeed *)feeds->data;
  wanted.n_feeds = feeds->len;
  wanted.fetches = (const char *const *)fetches->pdata;
  wanted.n_fetches = fetches->len;
  wanted.targets = (const char *const *)step->targets->pdata;
  wanted.n_targets = step->targets->len;
  return muster_session_run (session, &wanted, fetched, NULL, NULL, error);
}

static inline GBytes *
golden_decompress (const char *data, gsize size, GError **error)
{
  g_autoptr (GConverter) gzip =
      G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, gzip);

  if (!g_output_stream_write_all (stream, data, size, NULL, NULL, error) ||
      !g_output_stream_close (stream, NULL, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

typedef void (*GoldenCase) (const MusterProtoField *message);

/* The number of cases in a file; run is called for each. */
static inline int
golden_run_file (const char *path, GoldenCase run)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *file = NULL;
  g_autoptr (GBytes) data = NULL;
  MusterProtoReader reader;
  gsize size = 0;
  guint64 length;
  int n = 0;

  if (g_file_get_contents (path, &file, &size, &error))
    data = golden_decompress (file, size, &error);
  if (data == NULL) {
    MUSTER_FAIL ("%s: %s", path, error->message);
    return 0;
  }
  reader = muster_proto_reader (g_bytes_get_data (data, NULL), g_bytes_get_size (data));
  while (!muster_proto_at_end (&reader)) {
    if (!muster_proto_read_varint (&reader, &length) || length > (gsize)(reader.end - reader.at)) {
      MUSTER_FAIL ("%s is damaged", path);
      return n;
    }
    run (&(MusterProtoField){.data = reader.at, .size = length});
    reader.at += length;
    n++;
  }
  return n;
}

/* The same for all files. */
static inline int
golden_run_all (GoldenCase run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) folder = g_dir_open ("tests/engine/goldens", 0, &error);
  const char *name;
  int n = 0;

  MUSTER_EXPECT_NO_ERROR (error);
  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    if (g_str_has_suffix (name, ".golden")) {
      g_autofree char *path = g_build_filename ("tests/engine/goldens", name, NULL);
      n += golden_run_file (path, run);
    }
  return n;
}
