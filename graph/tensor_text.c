// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor.h"

#include <math.h>
#include <string.h>

/* A tensor's values for people. */

typedef struct {
  const MusterTensor *tensor;
  GString *text;
  gint64 next;  /* the element to come */
  gint64 limit; /* elements to show */
} Printer;

/* The shortest decimal that reads back as the same number. */
static void
print_number (GString *text, double value, gboolean is_single)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  const int most = is_single ? 9 : 17;
  if (isnan (value) || isinf (value)) {
    g_string_append (text, isnan (value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  for (int precision = is_single ? 6 : 15; precision <= most; precision++) {
    char format[8];
    g_snprintf (format, sizeof format, "%%.%dg", precision);
    g_ascii_formatd (digits, sizeof digits, format, value);
    const double back = g_ascii_strtod (digits, NULL);
    if (is_single ? (float)back == (float)value : back == value)
      break;
  }
  g_string_append (text, digits);
}

static void
print_complex (GString *text, double real, double imaginary, gboolean is_single)
{
  g_string_append_c (text, '(');
  print_number (text, real, is_single);
  if (!(imaginary < 0))
    g_string_append_c (text, '+');
  print_number (text, imaginary, is_single);
  g_string_append (text, "j)");
}

/* The first most bytes of it. */
static void
print_string (GString *text, MusterString whole, gsize most)
{
  const MusterString string = {.data = whole.data, .size = MIN (whole.size, most)};
  gboolean is_printable = g_utf8_validate_len (string.data, string.size, NULL);
  for (gsize i = 0; i < string.size && is_printable; i++)
    is_printable =
        !g_ascii_iscntrl (string.data[i]) && string.data[i] != '"' && string.data[i] != '\\';
  g_string_append_c (text, '"');
  for (gsize i = 0; i < string.size; i++) {
    const guchar c = (guchar)string.data[i];
    if (is_printable || (c >= 0x20 && c < 0x7f && c != '"' && c != '\\'))
      g_string_append_c (text, (char)c);
    else
      g_string_append_printf (text, "\\x%02x", c);
  }
  g_string_append_c (text, '"');
  if (string.size < whole.size)
    g_string_append_printf (text, "… (%" G_GSIZE_FORMAT " bytes)", whole.size);
}

void
muster_tensor_append_element (GString *text, const MusterTensor *tensor, gint64 i, gsize most)
{
  g_return_if_fail (text != NULL && tensor != NULL);
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_FLOAT:
    print_number (text, ((const float *)data)[i], TRUE);
    break;
  case MUSTER_DOUBLE:
    print_number (text, ((const double *)data)[i], FALSE);
    break;
  case MUSTER_HALF:
    print_number (text, muster_half_to_float (((const guint16 *)data)[i]), TRUE);
    break;
  case MUSTER_BFLOAT16:
    print_number (text, muster_bfloat16_to_float (((const guint16 *)data)[i]), TRUE);
    break;
  case MUSTER_COMPLEX64:
    print_complex (text, ((const float *)data)[2 * i], ((const float *)data)[2 * i + 1], TRUE);
    break;
  case MUSTER_COMPLEX128:
    print_complex (text, ((const double *)data)[2 * i], ((const double *)data)[2 * i + 1], FALSE);
    break;
  case MUSTER_INT8:
    g_string_append_printf (text, "%d", ((const gint8 *)data)[i]);
    break;
  case MUSTER_UINT8:
    g_string_append_printf (text, "%u", ((const guint8 *)data)[i]);
    break;
  case MUSTER_INT16:
    g_string_append_printf (text, "%d", ((const gint16 *)data)[i]);
    break;
  case MUSTER_UINT16:
    g_string_append_printf (text, "%u", ((const guint16 *)data)[i]);
    break;
  case MUSTER_INT32:
    g_string_append_printf (text, "%d", ((const gint32 *)data)[i]);
    break;
  case MUSTER_UINT32:
    g_string_append_printf (text, "%u", ((const guint32 *)data)[i]);
    break;
  case MUSTER_INT64:
    g_string_append_printf (text, "%" G_GINT64_FORMAT, ((const gint64 *)data)[i]);
    break;
  case MUSTER_UINT64:
    g_string_append_printf (text, "%" G_GUINT64_FORMAT, ((const guint64 *)data)[i]);
    break;
  case MUSTER_BOOL:
    g_string_append (text, ((const guint8 *)data)[i] != 0 ? "true" : "false");
    break;
  case MUSTER_STRING:
    print_string (text, muster_tensor_string (tensor, i), most);
    break;
  default:
    g_string_append_c (text, '?');
  }
}

/* Returns FALSE once the limit is reached: nothing but closing brackets follows. */
static gboolean
print_dim (Printer *self, int dim)
{
  gboolean continues = TRUE;
  if (dim == muster_tensor_n_dims (self->tensor)) {
    muster_tensor_append_element (self->text, self->tensor, self->next++, G_MAXSIZE);
    return TRUE;
  }
  g_string_append_c (self->text, '[');
  for (gint64 i = 0; i < muster_tensor_dims (self->tensor)[dim] && continues; i++) {
    if (i > 0)
      g_string_append (self->text, ", ");
    if (self->next >= self->limit) {
      g_string_append (self->text, "…");
      continues = FALSE;
    } else {
      continues = print_dim (self, dim + 1);
    }
  }
  g_string_append_c (self->text, ']');
  return continues;
}

char *
muster_tensor_to_string (const MusterTensor *self, gint64 limit)
{
  g_return_val_if_fail (self != NULL, NULL);
  GString *text = g_string_new (NULL);
  Printer printer = {.tensor = self, .text = text, .limit = limit};
  if (muster_tensor_n_elements (self) == 0)
    g_string_append (text, "[]");
  else
    (void)print_dim (&printer, 0);
  return g_string_free (text, FALSE);
}
