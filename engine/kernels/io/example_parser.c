// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/io/example_parser.h"

#include "base/error.h"
#include "base/protowire_private.h"

#include <string.h>

#define TAG(number, type) ((guint8)((number) << 3 | (type)))

static gboolean
at_end (const MusterProtoReader *r)
{
  return muster_proto_at_end (r);
}

static gsize
left (const MusterProtoReader *r)
{
  return at_end (r) ? 0 : (gsize)(r->end - r->at);
}

static gboolean
take_tag (MusterProtoReader *r, guint8 tag)
{
  if (at_end (r) || *r->at != tag)
    return FALSE;
  r->at++;
  return TRUE;
}

static gboolean
read_length (MusterProtoReader *r, gsize *length)
{
  guint64 value;
  if (!muster_proto_read_varint (r, &value))
    return FALSE;
  *length = (guint32)value;
  return TRUE;
}

/* Enters a nested message; if its length is too large, the bytes that are left. */
static gboolean
enter (MusterProtoReader *r, MusterProtoReader *inner)
{
  gsize length;
  if (!read_length (r, &length))
    return FALSE;
  length = MIN (length, left (r));
  *inner = muster_proto_reader (r->at, length);
  r->at += length;
  return TRUE;
}

static gboolean
read_string (MusterProtoReader *r, MusterString *string)
{
  gsize length;
  if (!read_length (r, &length) || length > left (r))
    return FALSE;
  *string = (MusterString){.data = (const char *)r->at, .size = length};
  r->at += length;
  return TRUE;
}

static gboolean
read_feature (MusterProtoReader *r, MusterFeature *feature)
{
  MusterProtoReader entry;
  *feature = (MusterFeature){0};
  if (!take_tag (r, TAG (1, MUSTER_WIRE_BYTES)) || !enter (r, &entry))
    return FALSE;
  for (int part = 0; part < 2; part++)
    if (take_tag (&entry, TAG (1, MUSTER_WIRE_BYTES))
            ? !read_string (&entry, &feature->name)
            : !take_tag (&entry, TAG (2, MUSTER_WIRE_BYTES)) ||
                  !read_string (&entry, &feature->value))
      return FALSE;
  return at_end (&entry);
}

/* Skips a field that isn't in Example. */
static gboolean
skip_field (MusterProtoReader *r)
{
  guint64 tag, value;
  gsize size;
  if (!muster_proto_read_varint (r, &tag))
    return FALSE;
  switch (tag & 7) {
  case MUSTER_WIRE_VARINT:
    return muster_proto_read_varint (r, &value);
  case MUSTER_WIRE_BYTES:
    if (!read_length (r, &size))
      return FALSE;
    r->at += MIN (size, left (r));
    return TRUE;
  case MUSTER_WIRE_FIXED64:
  case MUSTER_WIRE_FIXED32:
    size = (tag & 7) == MUSTER_WIRE_FIXED64 ? 8 : 4;
    if (left (r) < size)
      return FALSE;
    r->at += size;
    return TRUE;
  default:
    return FALSE;
  }
}

static gboolean
refuse_malformed (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Invalid tensorflow.Example");
}

gboolean
muster_example_read (MusterString bytes, MusterText *features, GError **error)
{
  MusterProtoReader r = muster_proto_reader (bytes.data, bytes.size);
  while (!at_end (&r)) {
    MusterProtoReader list;
    MusterFeature feature;
    if (!take_tag (&r, TAG (1, MUSTER_WIRE_BYTES))) {
      if (!skip_field (&r))
        return refuse_malformed (error);
      continue;
    }
    if (!enter (&r, &list))
      return refuse_malformed (error);
    while (!at_end (&list)) {
      if (!read_feature (&list, &feature))
        return refuse_malformed (error);
      muster_text_append (features, &feature, sizeof feature);
      if (features->failed)
        return muster_text_check (features, error);
    }
  }
  return TRUE;
}

gboolean
muster_feature_dtype (MusterString feature, MusterDType *dtype)
{
  static const MusterDType dtypes[] = {MUSTER_STRING, MUSTER_FLOAT, MUSTER_INT64};
  *dtype = MUSTER_INVALID;
  if (feature.size == 0)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++)
    if ((guint8)feature.data[0] == TAG (i + 1, MUSTER_WIRE_BYTES))
      *dtype = dtypes[i];
  return *dtype != MUSTER_INVALID;
}

static gboolean
open_list (MusterString feature, MusterProtoReader *list)
{
  MusterProtoReader r = muster_proto_reader (feature.data, feature.size);
  r.at++; /* the tag, which is the dtype */
  return enter (&r, list);
}

static gint64
walk_strings (MusterProtoReader list, MusterString *strings)
{
  gint64 n = 0;
  for (MusterString string; !at_end (&list); n++) {
    if (!take_tag (&list, TAG (1, MUSTER_WIRE_BYTES)) || !read_string (&list, &string))
      return -1;
    if (strings != NULL)
      strings[n] = string;
  }
  return n;
}

/* In a packed list a truncated value is skipped; otherwise it is an error. */
static gint64
walk_floats (MusterProtoReader list, float *floats)
{
  if (at_end (&list))
    return 0;
  const gboolean is_packed = *list.at == TAG (1, MUSTER_WIRE_BYTES);
  if (is_packed) {
    gsize size;
    list.at++;
    if (!read_length (&list, &size) || size - size % sizeof *floats > left (&list))
      return -1;
    size -= size % sizeof *floats;
    if (floats != NULL && size > 0)
      memcpy (floats, list.at, size);
    return (gint64)(size / sizeof *floats);
  }
  gint64 n = 0;
  for (; !at_end (&list); n++) {
    if (!take_tag (&list, TAG (1, MUSTER_WIRE_FIXED32)) || left (&list) < sizeof *floats)
      return -1;
    if (floats != NULL)
      memcpy (&floats[n], list.at, sizeof *floats);
    list.at += sizeof *floats;
  }
  return n;
}

static gint64
walk_ints (MusterProtoReader list, gint64 *ints)
{
  gint64 n = 0;
  if (at_end (&list))
    return 0;
  const gboolean is_packed = *list.at == TAG (1, MUSTER_WIRE_BYTES);
  if (is_packed) {
    MusterProtoReader packed;
    list.at++;
    if (!enter (&list, &packed))
      return -1;
    list = packed;
  }
  for (guint64 value; !at_end (&list); n++) {
    if ((!is_packed && !take_tag (&list, TAG (1, MUSTER_WIRE_VARINT))) ||
        !muster_proto_read_varint (&list, &value))
      return -1;
    if (ints != NULL)
      ints[n] = (gint64)value;
  }
  return n;
}

static gint64
walk (MusterString feature, MusterDType dtype, void *values)
{
  MusterProtoReader list;
  if (!open_list (feature, &list))
    return -1;
  return dtype == MUSTER_STRING  ? walk_strings (list, values)
         : dtype == MUSTER_FLOAT ? walk_floats (list, values)
                                 : walk_ints (list, values);
}

gint64
muster_feature_count (MusterString feature, MusterDType dtype)
{
  return walk (feature, dtype, NULL);
}

void
muster_feature_copy (MusterString feature, MusterDType dtype, void *values)
{
  (void)walk (feature, dtype, values);
}
