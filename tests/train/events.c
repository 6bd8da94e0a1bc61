// SPDX-License-Identifier: Apache-2.0
#include "tests/train/events.h"

#include "base/crc32c_private.h"
#include "base/protowire_private.h"

/* The field of that number in a message; empty where there is none. */
static MusterProtoField
find (MusterProtoField message, guint32 number)
{
  MusterProtoReader reader = muster_proto_reader (message.data, message.size);
  MusterProtoField field, found = {0};
  while (muster_proto_read_field (&reader, &field))
    if (field.number == number)
      found = field;
  return found;
}

static void
print (GString *lines, MusterProtoField event)
{
  gint64 step = (gint64)find (event, 2).value;
  MusterProtoField summary = find (event, 5), log = find (event, 7), run = find (event, 8);
  MusterProtoField tag = find (find (summary, 1), 1);
  g_string_append_printf (lines, "%" G_GINT64_FORMAT " ", step);
  if (find (event, 3).size > 0)
    g_string_append (lines, "version");
  else if (find (event, 4).size > 0)
    g_string_append (lines, "graph");
  else if (find (event, 9).size > 0)
    g_string_append (lines, "meta");
  else if (log.size > 0)
    g_string_append_printf (lines, "log %d", (int)find (log, 1).value);
  else if (run.size > 0)
    g_string_append_printf (lines, "run %.*s", (int)find (run, 1).size,
                            (const char *)find (run, 1).data);
  else
    g_string_append_printf (lines, "scalar %.*s", (int)tag.size, (const char *)tag.data);
  g_string_append_c (lines, '\n');
}

static gboolean
is_whole (const guint8 *data, gsize size)
{
  guint32 crc;
  memcpy (&crc, data + size, sizeof crc);
  return GUINT32_FROM_LE (crc) == muster_crc32c_mask (muster_crc32c_extend (0, data, size));
}

char *
events_read (const char *path)
{
  enum { HEAD = 12, TAIL = 4 };
  g_autoptr (GString) lines = g_string_new (NULL);
  g_autofree char *contents = NULL;
  gsize size = 0;
  guint64 length;

  g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
  for (const guint8 *at = (const guint8 *)contents, *end = at + size; end - at >= HEAD + TAIL;
       at += HEAD + length + TAIL) {
    memcpy (&length, at, sizeof length);
    length = GUINT64_FROM_LE (length);
    if (!is_whole (at, sizeof length) || length > (gsize)(end - at) - HEAD - TAIL ||
        !is_whole (at + HEAD, length))
      break;
    print (lines, (MusterProtoField){.data = at + HEAD, .size = length});
  }
  return g_strdup (lines->str);
}
