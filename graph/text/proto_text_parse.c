// SPDX-License-Identifier: Apache-2.0
/* Parses protobuf's text form into the binary one, along a message's descriptor. Depth is
 * bounded. */
#include "base/error.h"
#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/text/proto_text_private.h"

#include <errno.h>
#include <string.h>

#define LONGEST_WORD 127

typedef struct {
  const char *at, *end;
  guint line;
  MusterProtoTextUnknown unknown;
  GError **error;
} Text;

/* A message being written. Consecutive numbers of a repeated field are packed, as TensorFlow writes
 * them: a graph is identified by its bytes. */
typedef struct {
  GByteArray *bytes;                       /* (owned) */
  GByteArray *packed;                      /* (owned) values of packing, not in bytes yet */
  const ProtobufCFieldDescriptor *packing; /* (nullable) */
} Message;

static gboolean parse_message (Text *self, const ProtobufCMessageDescriptor *descriptor, char end,
                               int depth, Message *out);

static void
message_init (Message *self)
{
  *self = (Message){g_byte_array_new (), g_byte_array_new (), NULL};
}

static void
message_clear (Message *self)
{
  g_clear_pointer (&self->bytes, g_byte_array_unref);
  g_clear_pointer (&self->packed, g_byte_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Message, message_clear)

static void
end_packing (Message *self)
{
  if (self->packing != NULL)
    muster_proto_put_bytes (self->bytes, self->packing->id, self->packed->data, self->packed->len);
  self->packing = NULL;
  g_byte_array_set_size (self->packed, 0);
}

static gboolean G_GNUC_PRINTF (2, 3) fail_at_line (Text *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *what = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return muster_fail (self->error, MUSTER_ERROR_INVALID_ARGUMENT, "Line %u: %s", self->line, what);
}

/* --- words --- */

/* The next character that counts, or NUL at the end. */
static char
peek (Text *self)
{
  while (self->at < self->end) {
    if (*self->at == '#') {
      const char *newline = memchr (self->at, '\n', (gsize)(self->end - self->at));
      self->at = newline != NULL ? newline : self->end;
    } else if (g_ascii_isspace (*self->at)) {
      self->line += *self->at++ == '\n';
    } else {
      return *self->at;
    }
  }
  return '\0';
}

static gboolean
accept (Text *self, char c)
{
  if (peek (self) != c || self->at == self->end)
    return FALSE;
  self->at++;
  return TRUE;
}

static gboolean
is_at_word (const Text *self)
{
  return self->at < self->end && *self->at != '\0' &&
         (g_ascii_isalnum (*self->at) || strchr ("_.+-", *self->at) != NULL);
}

/* Reads a name or a number, with all characters that may be in one. */
static gboolean
read_word (Text *self, char word[LONGEST_WORD + 1])
{
  gsize n = 0;
  (void)peek (self);
  for (; n < LONGEST_WORD && is_at_word (self); self->at++)
    word[n++] = *self->at;
  word[n] = '\0';
  if (is_at_word (self))
    return fail_at_line (self, "a name or a number is too long");
  return n > 0 || fail_at_line (self, "a name or a number is missing");
}

/* Skips an unknown word of any length. */
static gboolean
skip_word (Text *self)
{
  (void)peek (self);
  const char *start = self->at;
  while (is_at_word (self))
    self->at++;
  return self->at > start || fail_at_line (self, "a name or a number is missing");
}

/* --- strings --- */

static gboolean
read_code (Text *self, guint digits, int base, guint32 *code)
{
  guint n = 0;
  for (*code = 0; n < digits && self->at < self->end; n++) {
    const int digit = g_ascii_xdigit_value (*self->at);
    if (digit < 0 || digit >= base)
      break;
    *code = *code * (guint32)base + (guint32)digit;
    self->at++;
  }
  return n > 0 || fail_at_line (self, "an escape in a string lacks its number");
}

static gboolean
read_unicode (Text *self, guint digits, GByteArray *out)
{
  guint32 code;
  char utf8[6];
  const char *start = self->at;
  if (!read_code (self, digits, 16, &code))
    return FALSE;
  if (self->at != start + digits || !g_unichar_validate (code))
    return fail_at_line (self, "an escape in a string is not a valid character");
  g_byte_array_append (out, (const guint8 *)utf8, (guint)g_unichar_to_utf8 (code, utf8));
  return TRUE;
}

/* Reads what follows a '\'. */
static gboolean
read_escape (Text *self, GByteArray *out)
{
  static const char from[] = "nrtabfv\\'\"?";
  static const char to[] = "\n\r\t\a\b\f\v\\'\"?";
  if (self->at == self->end)
    return fail_at_line (self, "a string doesn't end");
  const char c = *self->at;
  const char *simple = c != '\0' ? strchr (from, c) : NULL;
  guint32 code;
  if (c >= '0' && c <= '7') {
    if (!read_code (self, 3, 8, &code))
      return FALSE;
  } else if (self->at++, simple != NULL) {
    code = (guint8)to[simple - from];
  } else if (c == 'x' || c == 'X') {
    if (!read_code (self, 2, 16, &code))
      return FALSE;
  } else if (c == 'u' || c == 'U') {
    return read_unicode (self, c == 'u' ? 4 : 8, out);
  } else {
    return fail_at_line (self, "invalid escape '\\%c'", c);
  }
  if (code > 0xff)
    return fail_at_line (self, "an escape in a string is more than a byte");
  const guint8 byte = (guint8)code;
  g_byte_array_append (out, &byte, 1);
  return TRUE;
}

/* One literal, or several that stand side by side. */
static gboolean
read_string (Text *self, GByteArray *out)
{
  char quote = peek (self);
  if (quote != '"' && quote != '\'')
    return fail_at_line (self, "a string is missing");
  while (quote == '"' || quote == '\'') {
    for (self->at++; self->at < self->end && *self->at != quote;) {
      if (*self->at == '\n')
        return fail_at_line (self, "a string doesn't end in its line");
      const guint8 c = (guint8)*self->at++;
      if (c != '\\')
        g_byte_array_append (out, &c, 1);
      else if (!read_escape (self, out))
        return FALSE;
    }
    if (self->at == self->end)
      return fail_at_line (self, "a string doesn't end");
    self->at++;
    quote = peek (self);
  }
  return TRUE;
}

/* --- numbers --- */

static gboolean
read_real (Text *self, const char *word, double *value)
{
  char *rest;
  *value = g_ascii_strtod (word, &rest);
  if (rest != word && (*rest == '\0' || ((*rest == 'f' || *rest == 'F') && rest[1] == '\0')))
    return TRUE;
  return fail_at_line (self, "invalid number '%s'", word);
}

/* low is at most 0. */
static gboolean
read_integer (Text *self, const char *word, gint64 low, guint64 high, guint64 *value)
{
  const gboolean is_negative = *word == '-';
  const char *digits = word + (is_negative ? 1 : 0);
  const guint64 most = is_negative ? -(guint64)low : high;
  char *rest = NULL;
  if (!g_ascii_isdigit (*digits))
    return fail_at_line (self, "invalid number '%s'", word);
  errno = 0;
  *value = g_ascii_strtoull (digits, &rest, 0);
  if (*rest != '\0')
    return fail_at_line (self, "invalid number '%s'", word);
  if (errno != 0 || *value > most)
    return fail_at_line (self, "%s is out of range", word);
  if (is_negative)
    *value = -*value;
  return TRUE;
}

static gboolean
read_bool (Text *self, const char *word, guint64 *value)
{
  static const char *const words[][2] = {
      {"false", "true"}, {"False", "True"}, {"f", "t"}, {"0", "1"}};
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    for (guint64 j = 0; j < 2; j++)
      if (strcmp (word, words[i][j]) == 0) {
        *value = j;
        return TRUE;
      }
  return fail_at_line (self, "'%s' is neither true nor false", word);
}

static gboolean
read_enum (Text *self, const ProtobufCEnumDescriptor *descriptor, const char *word, guint64 *value)
{
  const ProtobufCEnumValue *named = protobuf_c_enum_descriptor_get_value_by_name (descriptor, word);
  if (named == NULL)
    return read_integer (self, word, G_MININT32, G_MAXINT32, value);
  *value = (guint64)(gint64)named->value;
  return TRUE;
}

static guint64
zigzag (gint64 value)
{
  return ((guint64)value << 1) ^ (guint64)(value >> 63);
}

/* The number's bits as they go out. */
static gboolean
read_number (Text *self, const ProtobufCFieldDescriptor *field, guint64 *bits)
{
  char word[LONGEST_WORD + 1];
  double real;
  if (!read_word (self, word))
    return FALSE;
  switch (field->type) {
  case PROTOBUF_C_TYPE_BOOL:
    return read_bool (self, word, bits);
  case PROTOBUF_C_TYPE_ENUM:
    return read_enum (self, field->descriptor, word, bits);
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_DOUBLE:
    if (!read_real (self, word, &real))
      return FALSE;
    *bits = 0;
    if (field->type == PROTOBUF_C_TYPE_DOUBLE)
      memcpy (bits, &real, sizeof real);
    else {
      const float single = (float)real;
      guint32 low;
      memcpy (&low, &single, sizeof low);
      *bits = low;
    }
    return TRUE;
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_FIXED32:
    return read_integer (self, word, 0, G_MAXUINT32, bits);
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_FIXED64:
    return read_integer (self, word, 0, G_MAXUINT64, bits);
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SFIXED64:
    return read_integer (self, word, G_MININT64, G_MAXINT64, bits);
  case PROTOBUF_C_TYPE_SINT64:
    if (!read_integer (self, word, G_MININT64, G_MAXINT64, bits))
      return FALSE;
    break;
  case PROTOBUF_C_TYPE_SINT32:
    if (!read_integer (self, word, G_MININT32, G_MAXINT32, bits))
      return FALSE;
    break;
  default:
    return read_integer (self, word, G_MININT32, G_MAXINT32, bits);
  }
  *bits = zigzag ((gint64)*bits);
  return TRUE;
}

static guint
wire_type_of (const ProtobufCFieldDescriptor *field)
{
  switch (field->type) {
  case PROTOBUF_C_TYPE_DOUBLE:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_SFIXED64:
    return MUSTER_WIRE_FIXED64;
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_SFIXED32:
    return MUSTER_WIRE_FIXED32;
  default:
    return MUSTER_WIRE_VARINT;
  }
}

static void
put_number (Message *out, const ProtobufCFieldDescriptor *field, guint64 bits)
{
  const guint64 little = GUINT64_TO_LE (bits);
  const guint type = wire_type_of (field);
  GByteArray *to = out->bytes;
  if (field->label == PROTOBUF_C_LABEL_REPEATED) {
    if (out->packing != field)
      end_packing (out);
    out->packing = field;
    to = out->packed;
  } else {
    end_packing (out);
    muster_proto_put_varint (to, (guint64)field->id << 3 | type);
  }
  if (type == MUSTER_WIRE_VARINT)
    muster_proto_put_varint (to, bits);
  else
    g_byte_array_append (to, (const guint8 *)&little, type == MUSTER_WIRE_FIXED64 ? 8 : 4);
}

/* --- fields --- */

static gboolean
parse_submessage (Text *self, const ProtobufCFieldDescriptor *field, int depth, Message *out)
{
  const char end = accept (self, '{') ? '}' : accept (self, '<') ? '>' : '\0';
  g_auto (Message) inner = {0};
  if (end == '\0')
    return fail_at_line (self, "'%s' is a message: a '{' is missing", field->name);
  message_init (&inner);
  if (!parse_message (self, field->descriptor, end, depth + 1, &inner))
    return FALSE;
  end_packing (out);
  muster_proto_put_bytes (out->bytes, field->id, inner.bytes->data, inner.bytes->len);
  return TRUE;
}

static gboolean
parse_value (Text *self, const ProtobufCFieldDescriptor *field, int depth, Message *out)
{
  guint64 bits;
  if (field->type == PROTOBUF_C_TYPE_MESSAGE)
    return parse_submessage (self, field, depth, out);
  if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES) {
    g_autoptr (GByteArray) bytes = g_byte_array_new ();
    if (!read_string (self, bytes))
      return FALSE;
    end_packing (out);
    muster_proto_put_bytes (out->bytes, field->id, bytes->data, bytes->len);
    return TRUE;
  }
  if (!read_number (self, field, &bits))
    return FALSE;
  put_number (out, field, bits);
  return TRUE;
}

/* "[1, 2]" */
static gboolean
parse_list (Text *self, const ProtobufCFieldDescriptor *field, int depth, Message *out)
{
  if (field->label != PROTOBUF_C_LABEL_REPEATED)
    return fail_at_line (self, "'%s' takes one value", field->name);
  if (accept (self, ']'))
    return TRUE;
  do
    if (!parse_value (self, field, depth, out))
      return FALSE;
  while (accept (self, ','));
  return accept (self, ']') || fail_at_line (self, "a ']' is missing");
}

static gboolean skip_fields (Text *self, char end, int depth);

/* One value of an unknown field: a message, strings, or a word. */
static gboolean
skip_value (Text *self, int depth)
{
  const char end = accept (self, '{') ? '}' : accept (self, '<') ? '>' : '\0';
  if (end != '\0')
    return skip_fields (self, end, depth + 1);
  if (peek (self) != '"' && peek (self) != '\'')
    return skip_word (self);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  return read_string (self, bytes);
}

/* Skips the value of an unknown field. */
static gboolean
skip_content (Text *self, int depth)
{
  const gboolean has_colon = accept (self, ':');
  if (!has_colon && peek (self) != '{' && peek (self) != '<')
    return fail_at_line (self, "a ':' is missing");
  if (!has_colon || !accept (self, '['))
    return skip_value (self, depth);
  if (accept (self, ']'))
    return TRUE;
  do
    if (!skip_value (self, depth))
      return FALSE;
  while (accept (self, ','));
  return accept (self, ']') || fail_at_line (self, "a ']' is missing");
}

/* "[an.extension]", as far as its bracket has been read. */
static gboolean
skip_extension (Text *self)
{
  while (self->at < self->end && *self->at != ']' && *self->at != '\n')
    self->at++;
  return accept (self, ']') || fail_at_line (self, "a ']' is missing");
}

static void
end_field (Text *self)
{
  if (!accept (self, ','))
    (void)accept (self, ';');
}

static gboolean
skip_fields (Text *self, char end, int depth)
{
  if (depth >= MUSTER_MAX_DEPTH)
    return fail_at_line (self, "messages nest too deep");
  while (!accept (self, end)) {
    if (!(accept (self, '[') ? skip_extension (self) : skip_word (self)) ||
        !skip_content (self, depth))
      return FALSE;
    end_field (self);
  }
  return TRUE;
}

static gboolean
parse_field (Text *self, const ProtobufCMessageDescriptor *descriptor, int depth, Message *out)
{
  char name[LONGEST_WORD + 1];
  const gboolean skips = self->unknown == MUSTER_PROTO_TEXT_SKIP_UNKNOWN;
  const gboolean is_extension = skips && accept (self, '[');
  if (!(is_extension ? skip_extension (self) : read_word (self, name)))
    return FALSE;
  const ProtobufCFieldDescriptor *field =
      is_extension ? NULL : protobuf_c_message_descriptor_get_field_by_name (descriptor, name);
  if (field == NULL && skips) {
    const gboolean skipped = skip_content (self, depth);
    end_field (self);
    return skipped;
  }
  if (field == NULL)
    return fail_at_line (self, "unknown field '%s' in %s", name, descriptor->short_name);
  const gboolean has_colon = accept (self, ':');
  if (!has_colon && field->type != PROTOBUF_C_TYPE_MESSAGE)
    return fail_at_line (self, "a ':' is missing behind '%s'", name);
  const gboolean parsed = accept (self, '[') ? parse_list (self, field, depth, out)
                                             : parse_value (self, field, depth, out);
  end_field (self);
  return parsed;
}

/* Parses up to the message's end: '}', '>', or NUL for the whole text. */
static gboolean
parse_message (Text *self, const ProtobufCMessageDescriptor *descriptor, char end, int depth,
               Message *out)
{
  if (depth >= MUSTER_MAX_DEPTH)
    return fail_at_line (self, "messages are nested too deeply");
  for (;;) {
    (void)peek (self);
    if (self->at == self->end && end != '\0')
      return fail_at_line (self, "a '%c' is missing at the end", end);
    if (self->at == self->end || (end != '\0' && accept (self, end))) {
      end_packing (out);
      return TRUE;
    }
    if (!parse_field (self, descriptor, depth, out))
      return FALSE;
    if (out->bytes->len > G_MAXINT32)
      return fail_at_line (self, "the message is larger than 2 GiB");
  }
}

GByteArray *
muster_proto_text_parse (const ProtobufCMessageDescriptor *descriptor,
                         MusterProtoTextUnknown unknown, const char *text, gsize size,
                         GError **error)
{
  g_auto (Message) out = {0};
  Text self = {.at = text, .end = text + size, .line = 1, .unknown = unknown, .error = error};
  if (size > G_MAXINT32) {
    (void)fail_at_line (&self, "the text is larger than 2 GiB");
    return NULL;
  }
  message_init (&out);
  if (!parse_message (&self, descriptor, '\0', 0, &out) ||
      !muster_unpack_check (descriptor, out.bytes->data, out.bytes->len, descriptor->short_name,
                            error))
    return NULL;
  return g_steal_pointer (&out.bytes);
}
