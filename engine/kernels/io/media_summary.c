// SPDX-License-Identifier: Apache-2.0
/* Summaries of images, as PNG, and of sounds, as WAV. */
#include "base/protowire_private.h"
#include "engine/kernels/common/strings.h"
#include "engine/kernels/io/io_op_tables.h"
#include "graph/tensor_proto_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Summary.value = 1; of Summary.Value: */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_IMAGE = 4, VALUE_AUDIO = 6 };
/* Of Summary.Image and Summary.Audio: */
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_COLORS = 3, IMAGE_BYTES = 4 };
enum { AUDIO_RATE = 1, AUDIO_CHANNELS = 2, AUDIO_FRAMES = 3, AUDIO_BYTES = 4, AUDIO_TYPE = 5 };

/* A message with a file's bytes, and the fields before and after them. */
typedef struct {
  guint32 number, file_number;
  GByteArray *before, *after; /* (owned) */
  MusterText file;
} Media;

static Media
media_new (MusterKernel *k, guint32 number, guint32 file_number)
{
  return (Media){.number = number,
                 .file_number = file_number,
                 .before = g_byte_array_new (),
                 .after = g_byte_array_new (),
                 .file = MUSTER_TEXT_INIT (k)};
}

static void
media_clear (Media *self)
{
  g_byte_array_unref (self->before);
  g_byte_array_unref (self->after);
  muster_text_clear (&self->file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Media, media_clear)

/* One value: its tag, and the message. */
static gboolean
put_value (MusterText *summary, MusterString base, const char *rest, Media *media, GError **error)
{
  const gsize tag_size = base.size + strlen (rest), file_size = media->file.size;
  const gsize size = media->before->len + muster_text_head_size (media->file_number, file_size) +
                     file_size + media->after->len;
  if (!muster_text_check (&media->file, error))
    return FALSE;
  muster_text_put_head (summary, SUMMARY_VALUE,
                        muster_text_head_size (VALUE_TAG, tag_size) + tag_size +
                            muster_text_head_size (media->number, size) + size);
  muster_text_put_head (summary, VALUE_TAG, tag_size);
  muster_text_append_string (summary, base);
  muster_text_put (summary, rest);
  muster_text_put_head (summary, media->number, size);
  muster_text_append (summary, media->before->data, media->before->len);
  muster_text_put_head (summary, media->file_number, file_size);
  muster_text_append (summary, media->file.data, file_size);
  muster_text_append (summary, media->after->data, media->after->len);
  return muster_text_check (summary, error);
}

/* The suffix of a tag (transfer full). */
static char *
tag_end (const char *kind, gint64 i, gint64 most)
{
  return most > 1 ? g_strdup_printf ("/%s/%" G_GINT64_FORMAT, kind, i)
                  : g_strdup_printf ("/%s", kind);
}

static guint32
check_sum (const guint8 *data, gsize size)
{
  guint32 sum = 0xffffffff;
  for (gsize i = 0; i < size; i++) {
    sum ^= data[i];
    for (int bit = 0; bit < 8; bit++)
      sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

static void
put_number (MusterText *out, guint32 number)
{
  const guint32 big = GUINT32_TO_BE (number);
  muster_text_append (out, &big, sizeof big);
}

static void
put_chunk (MusterText *png, const char *name, const void *data, gsize size)
{
  const gsize at = png->size + 4;
  put_number (png, (guint32)size);
  muster_text_append (png, name, 4);
  muster_text_append (png, data, size);
  if (!png->failed)
    put_number (png, check_sum ((const guint8 *)png->data + at, png->size - at));
}

static GBytes *
compress (const guint8 *data, gsize size, GError **error)
{
  g_autoptr (GConverter) zlib =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_ZLIB, -1));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new (NULL, 0, realloc, free);
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, zlib);

  if (!g_output_stream_write_all (stream, data, size, NULL, NULL, error) ||
      !g_output_stream_close (stream, NULL, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

/* The maximum size of an uncompressed image; TensorFlow allows eight times as much. */
#define MAX_IMAGE (1 << 28)

typedef struct {
  gint64 n, height, width, colors;
} Images;

/* rows: each starts with a zero, PNG's filter type "none". */
static gboolean
put_image (Media *media, const Images *s, const guint8 *rows, gsize size, GError **error)
{
  static const guint8 signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  g_autoptr (GBytes) packed = compress (rows, size, error);
  const guint32 places[] = {GUINT32_TO_BE ((guint32)s->width), GUINT32_TO_BE ((guint32)s->height)};
  /* 8 bits; grey, colours, or colours with opacity; nothing else */
  const guint8 kind[] = {8, s->colors == 1 ? 0 : s->colors == 3 ? 2 : 6, 0, 0, 0};
  guint8 head[sizeof places + sizeof kind];

  if (packed == NULL)
    return FALSE;
  memcpy (head, places, sizeof places);
  memcpy (head + sizeof places, kind, sizeof kind);
  muster_text_append (&media->file, signature, sizeof signature);
  put_chunk (&media->file, "IHDR", head, sizeof head);
  put_chunk (&media->file, "IDAT", g_bytes_get_data (packed, NULL), g_bytes_get_size (packed));
  put_chunk (&media->file, "IEND", NULL, 0);
  muster_proto_put_uint (media->before, IMAGE_HEIGHT, (guint64)s->height);
  muster_proto_put_uint (media->before, IMAGE_WIDTH, (guint64)s->width);
  muster_proto_put_uint (media->before, IMAGE_COLORS, (guint64)s->colors);
  return TRUE;
}

static gboolean
is_finite (const double *pixel, gint64 colors)
{
  for (gint64 c = 0; c < colors; c++)
    if (!isfinite (pixel[c]))
      return FALSE;
  return TRUE;
}

/* If no value is negative, the largest becomes 255. Otherwise zero becomes 128, and the value
 * furthest from it 1 or 255. */
static void
find_scale (const double *image, const Images *s, double *scale, double *offset)
{
  double least = INFINITY, most = -INFINITY, furthest;
  for (const double *at = image, *end = at + s->height * s->width * s->colors; at < end;
       at += s->colors)
    for (gint64 c = 0; c < s->colors && is_finite (at, s->colors); c++) {
      least = MIN (least, at[c]);
      most = MAX (most, at[c]);
    }
  *offset = least < 0 ? 128 : 0;
  furthest = least < 0 ? MAX (fabs (least), fabs (most)) : most;
  *scale = furthest < 1e-6 ? 0 : (double)((least < 0 ? 127.0f : 255.0f) / (float)furthest);
}

static void
put_pixels (const double *image, const Images *s, const guint8 *bad_color, guint8 *rows)
{
  double scale, offset;
  find_scale (image, s, &scale, &offset);
  for (gint64 y = 0; y < s->height; y++) {
    *rows++ = 0;
    for (gint64 x = 0; x < s->width; x++, image += s->colors) {
      const gboolean is_good = is_finite (image, s->colors);
      for (gint64 c = 0; c < s->colors; c++)
        *rows++ = is_good ? (guint8)CLAMP ((float)(image[c] * scale) + (float)offset, 0, 255)
                          : bad_color[c];
    }
  }
}

static void
put_bytes (const guint8 *image, const Images *s, guint8 *rows)
{
  const gsize row = (gsize)(s->width * s->colors);
  for (gint64 y = 0; y < s->height; y++, image += row, rows += row + 1) {
    rows[0] = 0;
    memcpy (rows + 1, image, row);
  }
}

/* An image's elements as double, (transfer full); NULL with an error. */
static double *
image_values (MusterKernel *k, MusterTensor *wide, gint64 i, gint64 n, GError **error)
{
  double *values = muster_kernel_alloc (k, n, sizeof (double), error);
  for (gint64 j = 0; values != NULL && j < n; j++)
    values[j] = muster_tensor_dtype (wide) == MUSTER_DOUBLE
                    ? ((const double *)muster_tensor_data (wide))[i * n + j]
                    : (double)((const float *)muster_tensor_data (wide))[i * n + j];
  return values;
}

/* The maximum size of bad_color. */
#define MAX_BAD_COLOR 64

/* The colour of a pixel that isn't finite; red by default. */
static gboolean
read_bad_color (MusterKernel *k, gint64 colors, guint8 bad_color[4], GError **error)
{
  const Tensorflow__AttrValue *value = muster_kernel_attr (k, "bad_color");
  g_autoptr (MusterTensor) tensor = NULL;
  memcpy (bad_color, (const guint8[]){255, 0, 0, 255}, 4);
  if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR)
    return TRUE;
  tensor = muster_tensor_proto_read_within (value->tensor.data, value->tensor.len, NULL,
                                            &(gsize){MAX_BAD_COLOR}, error);
  if (tensor == NULL)
    return FALSE;
  if (muster_tensor_dtype (tensor) != MUSTER_UINT8 || muster_tensor_n_dims (tensor) != 1)
    return muster_invalid (error, "bad_color must be a vector of uint8");
  if (muster_tensor_n_elements (tensor) < colors)
    return muster_invalid (error,
                           "expected depth <= bad_color.size, got depth = %" G_GINT64_FORMAT
                           ", bad_color.size = %" G_GINT64_FORMAT,
                           colors, muster_tensor_n_elements (tensor));
  memcpy (bad_color, muster_tensor_data (tensor),
          (gsize)MIN (muster_tensor_n_elements (tensor), 4));
  return TRUE;
}

static gboolean
check_images (MusterTensor *x, Images *s, GError **error)
{
  const gint64 *dims = muster_tensor_dims (x);
  g_autofree char *shape = muster_shape_text (x);

  if (muster_tensor_n_dims (x) != 4 || (dims[3] != 1 && dims[3] != 3 && dims[3] != 4))
    return muster_invalid (error, "Tensor must be 4-D with last dim 1, 3, or 4, not %s", shape);
  *s = (Images){dims[0], dims[1], dims[2], dims[3]};
  if (s->n > G_MAXINT32 || s->height > G_MAXINT32 || s->width > G_MAXINT32 ||
      s->height * s->width > MAX_IMAGE / s->colors)
    return muster_invalid (error, "Tensor too large for summary %s", shape);
  if (s->n > 0 && s->height * s->width == 0)
    return muster_invalid (error, "An image of a summary has no pixels: %s", shape);
  return TRUE;
}

static gint64
max_images (MusterKernel *k)
{
  return muster_kernel_attr_int (k, "max_images", 3);
}

/* wide is NULL for bytes. Each image takes its rows twice: once compressed. */
static gboolean
summarise_image (MusterKernel *k, MusterTensor *wide, const Images *s, gint64 i,
                 const guint8 *bad_color, MusterText *summary, GError **error)
{
  const gint64 n = s->height * s->width * s->colors, most = max_images (k);
  const gsize size = (gsize)(n + s->height);
  g_auto (Media) media = media_new (k, VALUE_IMAGE, IMAGE_BYTES);
  g_autofree char *rest = tag_end ("image", i, most);
  g_autofree guint8 *rows = muster_kernel_alloc (k, 2, size, error);
  g_autofree double *values = NULL;

  if (rows == NULL || (wide != NULL && (values = image_values (k, wide, i, n, error)) == NULL))
    return FALSE;
  if (wide == NULL)
    put_bytes ((const guint8 *)muster_tensor_data (muster_kernel_input (k, 1)) + i * n, s, rows);
  else
    put_pixels (values, s, bad_color, rows);
  if (!put_image (&media, s, rows, size, error) ||
      !put_value (summary, muster_tensor_string (muster_kernel_input (k, 0), 0), rest, &media,
                  error))
    return FALSE;
  muster_budget_release (muster_kernel_budget (k),
                         2 * size + (wide != NULL ? (gsize)n * sizeof *values : 0));
  return TRUE;
}

static gboolean
compute_image_summary (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  const gboolean is_bytes = muster_tensor_dtype (x) == MUSTER_UINT8;
  g_autoptr (MusterTensor) wide = NULL;
  g_auto (MusterText) summary = MUSTER_TEXT_INIT (k);
  guint8 bad_color[4];
  Images s = {0};
  if (!muster_check_scalar (k, 0, "Tags", error) || !check_images (x, &s, error) ||
      (!is_bytes && (!read_bad_color (k, s.colors, bad_color, error) ||
                     (wide = muster_wide_input (k, 1, error)) == NULL)))
    return FALSE;
  for (gint64 i = 0; i < MIN (max_images (k), s.n); i++)
    if (!summarise_image (k, wide, &s, i, bad_color, &summary, error))
      return FALSE;
  return muster_text_end (&summary, k, 0, error);
}

static char *
store_little (char *out, guint32 number, gsize size)
{
  const guint32 little = GUINT32_TO_LE (number);
  memcpy (out, &little, size);
  return out + size;
}

#define WAV_HEADER_SIZE 44

/* 16 bits for each sample of -1 to 1. */
static void
encode_sound (MusterText *wav, const float *samples, guint32 rate, gint64 channels, gint64 frames)
{
  const guint32 size = (guint32)(channels * frames * 2);
  char *out = muster_text_extend (wav, WAV_HEADER_SIZE + (gsize)size);
  if (out == NULL)
    return;
  out = (char *)memcpy (out, "RIFF", 4) + 4;
  out = store_little (out, 36 + size, 4);
  out = (char *)memcpy (out, "WAVEfmt ", 8) + 8;
  out = store_little (out, 16, 4); /* the size of the rest of the format chunk */
  out = store_little (out, 1, 2);  /* PCM */
  out = store_little (out, (guint32)channels, 2);
  out = store_little (out, rate, 4);
  out = store_little (out, rate * (guint32)channels * 2, 4);
  out = store_little (out, (guint32)channels * 2, 2);
  out = store_little (out, 16, 2);
  out = (char *)memcpy (out, "data", 4) + 4;
  out = store_little (out, size, 4);
  for (gint64 i = 0; i < channels * frames; i++) {
    const float sample = roundf (samples[i] * 32768);
    const int number = isnan (sample) ? 0 : (int)CLAMP (sample, -32768, 32767);
    out = store_little (out, (guint32)number, 2);
  }
}

static gboolean
summarise_sound (MusterKernel *k, gint64 i, guint32 rate, gint64 channels, gint64 most,
                 MusterText *summary, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  const gint64 frames = muster_tensor_dims (x)[1];
  g_auto (Media) media = media_new (k, VALUE_AUDIO, AUDIO_BYTES);
  g_autofree char *rest = tag_end ("audio", i, most);

  encode_sound (&media.file, (const float *)muster_tensor_data (x) + i * frames * channels, rate,
                channels, frames);
  muster_proto_put_float (media.before, AUDIO_RATE, (float)rate);
  muster_proto_put_uint (media.before, AUDIO_CHANNELS, (guint64)channels);
  muster_proto_put_uint (media.before, AUDIO_FRAMES, (guint64)frames);
  muster_proto_put_bytes (media.after, AUDIO_TYPE, "audio/wav", 9);
  return put_value (summary, muster_tensor_string (muster_kernel_input (k, 0), 0), rest, &media,
                    error);
}

static gboolean
summarise_sounds (MusterKernel *k, double rate, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  const gint64 *dims = muster_tensor_dims (x), most = muster_kernel_attr_int (k, "max_outputs", 3);
  g_auto (MusterText) summary = MUSTER_TEXT_INIT (k);
  gint64 channels;
  if (!muster_check_scalar (k, 0, "tag", error))
    return FALSE;
  if (muster_tensor_n_dims (x) != 2 && muster_tensor_n_dims (x) != 3) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "Tensor must be 2-D or 3-D, got: %s", shape);
  }
  channels = muster_tensor_n_dims (x) == 2 ? 1 : dims[2];
  if (!(rate > 0) || rate > G_MAXUINT32)
    return muster_invalid (error, "sample_rate must be > 0");
  if (channels < 1 || channels > G_MAXINT16 || dims[1] < 1 ||
      dims[1] > (gint64)(G_MAXINT32 / 2 - 64) / channels)
    return muster_invalid (error,
                           "A sound of %" G_GINT64_FORMAT " frames and %" G_GINT64_FORMAT
                           " channels can't be written as WAV",
                           dims[1], channels);
  for (gint64 i = 0; i < MIN (most, dims[0]); i++)
    if (!summarise_sound (k, i, (guint32)rate, channels, most, &summary, error))
      return FALSE;
  return muster_text_end (&summary, k, 0, error);
}

static gboolean
compute_audio_summary (MusterKernel *k, GError **error)
{
  return muster_check_scalar (k, 2, "sample_rate", error) &&
         summarise_sounds (k, muster_kernel_input_double (k, 2), error);
}

const MusterOp muster_media_summary_ops[] = {
    {"ImageSummary", "tag:string, tensor:T -> summary:string",
     "T:uint8|float|half|double max_images bad_color", compute_image_summary, 0},
    {"AudioSummaryV2", "tag:string, tensor:float, sample_rate:float -> summary:string",
     "max_outputs", compute_audio_summary, 0},
    {NULL, NULL, NULL, NULL, 0},
};
