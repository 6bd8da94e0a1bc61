// SPDX-License-Identifier: Apache-2.0
/* libFuzzer changes bytes; in a message within messages that breaks the lengths around them, and
 * hardly anything new comes through. Here a field is changed, doubled, moved, dropped or made
 * somewhere in the tree, and what is around it is written anew. No schema: bytes that read as a
 * message are taken for one. */
#include <string.h>

#include "base/protowire_private.h"
#include "tests/fuzz/fuzz.h"

#define MAX_DEPTH   12
#define MAX_COPIES  300
#define EXTRA_BYTES 64 /* by which a value may grow */

gsize LLVMFuzzerMutate (guint8 *data, gsize size, gsize max_size);
gsize LLVMFuzzerCustomMutator (guint8 *data, gsize size, gsize max_size, guint seed);

typedef struct {
  const guint8 *start, *end;
  MusterProtoField field;
} Part;

static guint32 state;

/* 0 to n - 1, the same for the same seed. */
static guint32
pick (guint32 n)
{
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % n;
}

/* NULL for what is no message, or an empty one. */
static GArray *
take_apart (const guint8 *data, gsize size)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  g_autoptr (GArray) parts = g_array_new (FALSE, FALSE, sizeof (Part));
  for (;;) {
    Part part = {.start = reader.at};
    if (!muster_proto_read_field (&reader, &part.field))
      break;
    part.end = reader.at;
    g_array_append_val (parts, part);
  }
  if (!muster_proto_at_end (&reader) || parts->len == 0)
    return NULL;
  return g_steal_pointer (&parts);
}

static void
put_part (GByteArray *out, const Part *part)
{
  g_byte_array_append (out, part->start, (guint)(part->end - part->start));
}

static void
put_mutated_raw (GByteArray *out, const guint8 *data, gsize size)
{
  const gsize max_size = size + EXTRA_BYTES;
  g_autofree guint8 *copy = g_malloc (max_size);
  memcpy (copy, data, size);
  g_byte_array_append (out, copy, (guint)LLVMFuzzerMutate (copy, size, max_size));
}

/* What isn't a message may be a name: another output of that node, or a control input. */
static void
put_mutated_leaf (GByteArray *out, const guint8 *data, gsize size)
{
  static const char *const outputs[] = {":0", ":1", ":2", ":999999999"};
  const char *output = outputs[pick (G_N_ELEMENTS (outputs))];
  switch (pick (8)) {
  case 0:
    g_byte_array_append (out, data, (guint)size);
    g_byte_array_append (out, (const guint8 *)output, (guint)strlen (output));
    break;
  case 1:
    g_byte_array_append (out, (const guint8 *)"^", 1);
    g_byte_array_append (out, data, (guint)size);
    break;
  default:
    put_mutated_raw (out, data, size);
  }
}

static guint64
mutated_number (guint64 value)
{
  switch (pick (5)) {
  case 0:
    return pick (4);
  case 1:
    return value + 1;
  case 2:
    return value - 1;
  case 3:
    return (guint64)1 << pick (64);
  default:
    return ((guint64)1 << pick (64)) - 1;
  }
}

static void mutate_bytes (GByteArray *out, const guint8 *data, gsize size, int depth);

static void
mutate_part (GByteArray *out, const Part *part, int depth)
{
  const MusterProtoField *field = &part->field;
  if (field->type == MUSTER_WIRE_BYTES) {
    g_autoptr (GByteArray) payload = g_byte_array_new ();
    mutate_bytes (payload, field->data, field->size, depth + 1);
    muster_proto_put_bytes (out, field->number, payload->data, payload->len);
  } else if (field->type == MUSTER_WIRE_VARINT) {
    muster_proto_put_varint (out, (guint64)field->number << 3);
    muster_proto_put_varint (out, mutated_number (field->value));
  } else {
    const gsize width = field->type == MUSTER_WIRE_FIXED32 ? 4 : 8;
    g_autofree guint8 *value = g_memdup2 (part->end - width, width);
    (void)LLVMFuzzerMutate (value, width, width);
    g_byte_array_append (out, part->start, (guint)(part->end - part->start - width));
    g_byte_array_append (out, value, (guint)width);
  }
}

static void
put_new_part (GByteArray *out)
{
  static const guint8 some[] = ":1^x\x08\1\x12\2\x08\1";
  const guint32 number = 1 + pick (20);
  if (pick (2) == 0) {
    muster_proto_put_varint (out, (guint64)number << 3);
    muster_proto_put_varint (out, mutated_number (0));
  } else {
    const guint32 from = pick (sizeof some);
    muster_proto_put_bytes (out, number, some + from, pick ((guint32)sizeof some - from));
  }
}

/* One part becomes another, none, or several. */
static void
change_part (GByteArray *out, const GArray *parts, guint i, int depth)
{
  const Part *part = &g_array_index (parts, Part, i);
  switch (pick (10)) {
  case 0:
    for (guint32 n = 2 + pick (pick (10) == 0 ? MAX_COPIES : 4); n > 0; n--)
      put_part (out, part);
    break;
  case 1:
    break;
  case 2:
    put_part (out, &g_array_index (parts, Part, pick (parts->len)));
    put_part (out, part);
    break;
  case 3:
    put_part (out, part);
    put_new_part (out);
    break;
  default:
    mutate_part (out, part, depth);
  }
}

static void
mutate_bytes (GByteArray *out, const guint8 *data, gsize size, int depth)
{
  g_autoptr (GArray) parts = depth < MAX_DEPTH ? take_apart (data, size) : NULL;
  if (parts == NULL) {
    put_mutated_leaf (out, data, size);
    return;
  }
  if (pick (16) == 0) {
    put_mutated_raw (out, data, size);
    return;
  }
  const guint32 chosen = pick (parts->len);
  for (guint i = 0; i < parts->len; i++)
    if (i == chosen)
      change_part (out, parts, i, depth);
    else
      put_part (out, &g_array_index (parts, Part, i));
}

gsize
LLVMFuzzerCustomMutator (guint8 *data, gsize size, gsize max_size, guint seed)
{
  const gsize n_picks = muster_fuzz_n_picks;
  state = seed | 1;
  if (size <= n_picks || pick (8) == 0)
    return LLVMFuzzerMutate (data, size, max_size);
  g_autoptr (GByteArray) out = g_byte_array_new ();
  mutate_bytes (out, data + n_picks, size - n_picks, 0);
  if (n_picks + out->len > max_size)
    return LLVMFuzzerMutate (data, size, max_size);
  if (out->len > 0)
    memcpy (data + n_picks, out->data, out->len);
  return n_picks + out->len;
}
