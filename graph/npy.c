// SPDX-License-Identifier: Apache-2.0
/* Reads and writes NumPy's .npy files: the header is a Python literal, of which only what NumPy
 * writes is accepted. */
#include "graph/npy.h"

#include "base/error.h"
#include "base/files/read_file_private.h"
#include "base/require_private.h"
#include "base/safe_text_private.h"
#include "graph/npy_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */

#define MAX_HEADER (64 * 1024)
/* The largest file that is read; larger ones are mapped. */
#define MAX_IN_MEMORY (256 * 1024 * 1024)
/* Maximum length of a header in errors. */
#define MAX_SHOWN 64
/* The offset of the header, and the alignment of the elements. */
#define START     10
#define ALIGNMENT 64

static const struct {
  const char *descr;
  MusterDType dtype;
} descrs[] = {
    {"|b1", MUSTER_BOOL},      {"|i1", MUSTER_INT8},        {"|u1", MUSTER_UINT8},
    {"<i2", MUSTER_INT16},     {"<u2", MUSTER_UINT16},      {"<i4", MUSTER_INT32},
    {"<u4", MUSTER_UINT32},    {"<i8", MUSTER_INT64},       {"<u8", MUSTER_UINT64},
    {"<f2", MUSTER_HALF},      {"<f4", MUSTER_FLOAT},       {"<f8", MUSTER_DOUBLE},
    {"<c8", MUSTER_COMPLEX64}, {"<c16", MUSTER_COMPLEX128},
};

static gboolean
malformed (GError **error, const char *what)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "not a NumPy array that muster reads: %s", what);
}

/* Returns the value of 'key' in the header, a Python dictionary; NULL if it has no such key. */
static const char *
value_of (const char *header, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("'%s':", key);
  const char *at = strstr (header, quoted);
  if (at == NULL)
    return NULL;
  at += strlen (quoted);
  return at + strspn (at, " ");
}

/* "|S5'", "<U5'" */
static gboolean
read_string_type (const char *descr, MusterNpyStrings *strings)
{
  char *end;
  strings->is_text = g_str_has_prefix (descr, "<U");
  if ((!strings->is_text && !g_str_has_prefix (descr, "|S")) || !g_ascii_isdigit (descr[2]))
    return FALSE;
  const guint64 n = g_ascii_strtoull (descr + 2, &end, 10);
  strings->width = strings->is_text ? 4 * (gsize)n : (gsize)n;
  return n > 0 && n <= G_MAXINT32 && *end == '\'';
}

static gboolean
read_dtype (const char *header, MusterDType *dtype, MusterNpyStrings *strings, GError **error)
{
  const char *descr = value_of (header, "descr");
  if (descr == NULL || *descr != '\'')
    return malformed (error, "its header has no simple 'descr'");
  if (read_string_type (descr + 1, strings)) {
    *dtype = MUSTER_STRING;
    return TRUE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS (descrs); i++) {
    gsize n = strlen (descrs[i].descr);
    if (strncmp (descr + 1, descrs[i].descr, n) == 0 && descr[1 + n] == '\'') {
      *dtype = descrs[i].dtype;
      return TRUE;
    }
  }
  g_autofree char *found = muster_safe_text (descr, (gssize)strcspn (descr, ","), MAX_SHOWN);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "unsupported element type %s; save the array as little-endian numbers, such "
                      "as float32 or int64, or as strings ('S' or 'U')",
                      found);
}

/* Reads "(3, 4)"; returns the rank, or -1 with an error. */
static int
read_shape (const char *header, gint64 *dims, GError **error)
{
  const char *at = value_of (header, "shape");
  if (at == NULL || *at != '(') {
    malformed (error, "its header has no 'shape'");
    return -1;
  }
  int n = 0;
  for (at++; *at != ')';) {
    char *end = NULL;
    gint64 size = g_ascii_strtoll (at, &end, 10);
    if (end == at || size < 0 || n == MUSTER_MAX_DIMS) {
      malformed (error, "its 'shape' is malformed");
      return -1;
    }
    dims[n++] = size;
    at = end + strspn (end, ", ");
  }
  return n;
}

/* Locates the header, whose start and length depend on the version. Returns FALSE if the file is
 * too short or the header too long. */
static gboolean
find_header (const guint8 *data, gsize size, gsize *start, gsize *length)
{
  if (size < 12 || memcmp (data, "\x93NUMPY", 6) != 0 || data[6] < 1 || data[6] > 3)
    return FALSE;
  *start = data[6] == 1 ? 10 : 12;
  *length = data[8] | (gsize)data[9] << 8;
  if (data[6] > 1)
    *length |= (gsize)data[10] << 16 | (gsize)data[11] << 24;
  return *length <= MIN (size - *start, MAX_HEADER);
}

MusterTensor *
muster_npy_read (GBytes *bytes, GError **error)
{
  muster_require (error, NULL, bytes);
  gsize size = 0, start = 0, length = 0;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  if (!find_header (data, size, &start, &length)) {
    malformed (error, "it doesn't start with a complete .npy header");
    return NULL;
  }
  g_autofree char *header = g_strndup ((const char *)data + start, length);
  const char *order = value_of (header, "fortran_order");
  if (order == NULL || !g_str_has_prefix (order, "False")) {
    malformed (error,
               "its elements are in Fortran order; save numpy.ascontiguousarray (a) instead");
    return NULL;
  }
  MusterDType dtype = MUSTER_INVALID;
  gint64 dims[MUSTER_MAX_DIMS];
  int n_dims = 0;
  MusterNpyStrings strings;
  if (!read_dtype (header, &dtype, &strings, error) ||
      (n_dims = read_shape (header, dims, error)) < 0)
    return NULL;
  g_autoptr (GBytes) elements =
      g_bytes_new_from_bytes (bytes, start + length, size - start - length);
  return dtype == MUSTER_STRING
             ? muster_npy_read_strings (&strings, n_dims, dims, elements, error)
             : muster_tensor_new_from_bytes (dtype, n_dims, dims, elements, error);
}

/* Reads a file or a pipe; maps a large file, because the array may be larger than memory. Memory
 * stays as it is whoever writes to the file; a mapped one that is cut short ends the process. */
static GBytes *
load (const char *path, GError **error)
{
  const MusterFile file = {path, NULL, MUSTER_MAX_PROTO_FILE, TRUE};
  g_autoptr (GMappedFile) mapped = NULL;
  char *data;
  gsize size;
  struct stat is;
  const int fd = muster_file_open (&file, &is, error);
  if (fd < 0)
    return NULL;
  const gboolean is_large = S_ISREG (is.st_mode) && is.st_size > MAX_IN_MEMORY;
  const gboolean is_read = !is_large && muster_file_read_fd (&file, fd, &is, &data, &size, error);
  if (is_large)
    mapped = g_mapped_file_new_from_fd (fd, FALSE, error);
  close (fd);
  return mapped != NULL ? g_mapped_file_get_bytes (mapped)
         : is_read      ? g_bytes_new_take (data, size)
                        : NULL;
}

MusterTensor *
muster_npy_load (const char *path, GError **error)
{
  muster_require (error, NULL, path);
  g_autoptr (GBytes) bytes = load (path, error);
  if (bytes == NULL)
    return NULL;
  MusterTensor *tensor = muster_npy_read (bytes, error);
  if (tensor == NULL)
    g_prefix_error (error, "'%s': ", path);
  return tensor;
}

static const char *
descr_of (MusterDType dtype)
{
  for (gsize i = 0; i < G_N_ELEMENTS (descrs); i++)
    if (descrs[i].dtype == dtype)
      return descrs[i].descr;
  return NULL;
}

/* Ends in a newline, and the elements begin at a multiple of ALIGNMENT, as NumPy writes it. */
GBytes *
muster_npy_header (MusterDType dtype, int n_dims, const gint64 *dims, GError **error)
{
  muster_require_array (error, NULL, dims, n_dims);
  const char *descr = descr_of (dtype);
  if (descr == NULL) {
    muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "a NumPy file has no elements of type %s",
                 muster_dtype_name (dtype));
    return NULL;
  }
  GString *file = g_string_new_len ("\x93NUMPY\x01\x00..", START);
  g_string_append_printf (file, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
  for (int d = 0; d < n_dims; d++)
    g_string_append_printf (file, "%s%" G_GINT64_FORMAT "%s", d > 0 ? " " : "", dims[d],
                            d == 0 || d + 1 < n_dims ? "," : "");
  g_string_append (file, "), }");
  while ((file->len + 1) % ALIGNMENT != 0)
    g_string_append_c (file, ' ');
  g_string_append_c (file, '\n');
  const gsize length = file->len - START; /* at most MUSTER_MAX_DIMS numbers: it fits */
  file->str[START - 2] = (char)(length & 0xff);
  file->str[START - 1] = (char)(length >> 8);
  return g_string_free_to_bytes (file);
}
