// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/state_text_private.h"

#include "base/error.h"
#include "base/unpack_private.h"
#include "checkpoint/proto/checkpoint_state.pb-c.h"
#include "graph/text/proto_text_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *
take_path (const ProtobufCBinaryData *path, GError **error)
{
  if (path->len > 0 && memchr (path->data, '\0', path->len) == NULL)
    return g_strndup ((const char *)path->data, path->len);
  muster_fail (error, MUSTER_ERROR_DATA_LOSS, "a path is empty or has a NUL in it");
  return NULL;
}

static gboolean
take_state (const Tensorflow__CheckpointState *message, MusterCheckpointState *state,
            GError **error)
{
  if (message->model_checkpoint_path.len > 0) {
    state->latest = take_path (&message->model_checkpoint_path, error);
    if (state->latest == NULL)
      return FALSE;
  }
  for (gsize i = 0; i < message->n_all_model_checkpoint_paths; i++) {
    char *path = take_path (&message->all_model_checkpoint_paths[i], error);
    if (path == NULL)
      return FALSE;
    g_ptr_array_add (state->all, path);
  }
  g_array_append_vals (state->timestamps, message->all_model_checkpoint_timestamps,
                       (guint)message->n_all_model_checkpoint_timestamps);
  state->last_preserved = message->last_preserved_timestamp;
  return TRUE;
}

MusterCheckpointState *
muster_state_text_parse (const char *text, gsize size, GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) why = NULL;
  text = size > 0 ? text : ""; /* an empty file's bytes are NULL */
  g_autoptr (GByteArray) bytes = muster_proto_text_parse (
      &tensorflow__checkpoint_state__descriptor, MUSTER_PROTO_TEXT_SKIP_UNKNOWN, text, size, &why);
  const Tensorflow__CheckpointState *message =
      bytes != NULL ? muster_unpack (&tensorflow__checkpoint_state__descriptor, bytes->data,
                                     bytes->len, arena, "checkpoint state", &why)
                    : NULL;
  if (message == NULL) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "%s", why->message);
    return NULL;
  }
  return take_state (message, state, error) ? g_steal_pointer (&state) : NULL;
}

static void
print_path (GString *out, const char *field, const char *path)
{
  static const char plain[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
  g_string_append_printf (out, "%s: \"", field);
  for (const char *at = path; *at != '\0'; at++) {
    const char *known = strchr (plain, *at);
    if (known != NULL) {
      g_string_append_printf (out, "\\%c", letters[known - plain]);
    } else if ((guint8)*at >= 0x80 && g_utf8_get_char_validated (at, -1) < (gunichar)-2) {
      const char *next = g_utf8_next_char (at);
      g_string_append_len (out, at, next - at);
      at = next - 1;
    } else if ((guint8)*at < 0x20 || (guint8)*at >= 0x7f) {
      g_string_append_printf (out, "\\%03o", (guint)(guint8)*at);
    } else {
      g_string_append_c (out, *at);
    }
  }
  g_string_append (out, "\"\n");
}

/* Prints a double as Python does: the fewest digits that restore it, always with a point or an
 * exponent. */
static void
print_number (GString *out, const char *field, double number)
{
  char format[16], text[64];
  int precision = 0; /* digits after the first */
  if (!isfinite (number)) {
    const char *word = isnan (number) ? "nan" : (number > 0 ? "inf" : "-inf");
    g_string_append_printf (out, "%s: %s\n", field, word);
    return;
  }
  do {
    g_snprintf (format, sizeof format, "%%.%de", precision);
    g_ascii_formatd (text, sizeof text, format, number);
  } while (g_ascii_strtod (text, NULL) != number && ++precision < 17);
  const int exponent = atoi (strchr (text, 'e') + 1);
  if (exponent >= -4 && exponent < 16) {
    g_snprintf (format, sizeof format, "%%.%df", MAX (precision - exponent, 1));
    g_ascii_formatd (text, sizeof text, format, number);
  }
  g_string_append_printf (out, "%s: %s\n", field, text);
}

char *
muster_state_text_print (const MusterCheckpointState *state)
{
  GString *out = g_string_new (NULL);
  if (state->latest != NULL)
    print_path (out, "model_checkpoint_path", state->latest);
  for (guint i = 0; i < state->all->len; i++)
    print_path (out, "all_model_checkpoint_paths", state->all->pdata[i]);
  for (guint i = 0; i < state->timestamps->len; i++)
    print_number (out, "all_model_checkpoint_timestamps",
                  g_array_index (state->timestamps, double, i));
  if (state->last_preserved != 0)
    print_number (out, "last_preserved_timestamp", state->last_preserved);
  return g_string_free (out, FALSE);
}
