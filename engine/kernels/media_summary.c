// SPDX-License-Identifier: Apache-2.0
/* Summaries of images, as PNG, and of sounds, as WAV. */
#include "base/protowire.h"
#include "engine/kernels/strings.h"
#include "graph/tensor_proto.h"

#include <math.h>
#include <string.h>

/* Summary.value = 1; of Summary.Value: */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_IMAGE = 4, VALUE_AUDIO = 6 };
/* Of Summary.Image and Summary.Audio: */
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_COLORS = 3, IMAGE_BYTES = 4 };
enum { AUDIO_RATE = 1, AUDIO_CHANNELS = 2, AUDIO_FRAMES = 3, AUDIO_BYTES = 4, AUDIO_TYPE = 5 };

static void
put_value (GByteArray *summary, MusterString base, const char *kind, gint64 i, gint64 most,
           guint32 number, const GByteArray *message)
{
  g_autoptr (GByteArray) value = g_byte_array_new ();
  g_autoptr (GString) tag = g_string_new (NULL);

  if (base.size > 0)
    g_string_append_len (tag, base.data, (gssize)base.size);
  g_string_append_printf (tag, "/%s", kind);
  if (most > 1)
    g_string_append_printf (tag, "/%" G_GINT64_FORMAT, i);
  muster_proto_put_bytes (value, VALUE_TAG, tag->str, tag->len);
  muster_proto_put_bytes (value, number, message->data, message->len);
  muster_proto_put_bytes (summary, SUMMARY_VALUE, value->data, value->len);
}

static void
set_summary (MusterKernel *k, const GByteArray *summary)
{
  const MusterString bytes = {(const char *)summary->data, summary->len};

  muster_kernel_set_output (k, 0, muster_tensor_new_strings (0, NULL, &bytes));
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
put_number (GByteArray *out, guint32 number)
{
  const guint32 big = GUINT32_TO_BE (number);

  g_byte_array_append (out, (const guint8 *)&big, sizeof big);
}

static void
put_chunk (GByteArray *png, const char *name, const void *data, gsize size)
{
  const guint at = png->len + 4;

  put_number (png, (guint32)size);
  g_byte_array_append (png, (const guint8 *)name, 4);
  if (size > 0)
    g_byte_array_append (png, data, (guint)size);
  put_number (png, check_sum (png->data + at, png->len - at));
}

static GBytes *
compress (const guint8 *data, gsize size, GError **error)
{
  g_autoptr (GConverter) zlib =
      G_CONVERTER (g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_ZLIB, -1));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, zlib);

  if (!g_output_stream_write_all (stream, data, size, NULL, NULL, error) ||
      !g_output_stream_close (stream, NULL, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

/* Bytes of an image as it is: TensorFlow takes eight times as much, which nobody has looked at. */
#define MAX_IMAGE (1 << 28)

typedef struct {
  gint64 n, height, width, colors;
} Images;

/* rows: each with a zero in front, PNG's word for "as it is". */
static gboolean
put_image (GByteArray *message, const Images *s, const GByteArray *rows, GError **error)
{
  static const guint8 signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  g_autoptr (GByteArray) png = g_byte_array_new (), head = g_byte_array_new ();
  g_autoptr (GBytes) packed = compress (rows->data, rows->len, error);
  /* 8 bits; grey, colours, or colours with opacity; nothing else */
  const guint8 kind[] = {8, s->colors == 1 ? 0 : s->colors == 3 ? 2 : 6, 0, 0, 0};

  if (packed == NULL)
    return FALSE;
  put_number (head, (guint32)s->width);
  put_number (head, (guint32)s->height);
  g_byte_array_append (head, kind, sizeof kind);
  g_byte_array_append (png, signature, sizeof signature);
  put_chunk (png, "IHDR", head->data, head->len);
  put_chunk (png, "IDAT", g_bytes_get_data (packed, NULL), g_bytes_get_size (packed));
  put_chunk (png, "IEND", NULL, 0);
  muster_proto_put_uint (message, IMAGE_HEIGHT, (guint64)s->height);
  muster_proto_put_uint (message, IMAGE_WIDTH, (guint64)s->width);
  muster_proto_put_uint (message, IMAGE_COLORS, (guint64)s->colors);
  muster_proto_put_bytes (message, IMAGE_BYTES, png->data, png->len);
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

/* Only positive values: the largest becomes 255. Else zero becomes 128, and the one furthest from
 * it 1 or 255. */
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
put_pixels (const double *image, const Images *s, const guint8 *bad_color, GByteArray *rows)
{
  double scale, offset;

  find_scale (image, s, &scale, &offset);
  for (gint64 y = 0; y < s->height; y++) {
    g_byte_array_append (rows, (const guint8 *)"", 1);
    for (gint64 x = 0; x < s->width; x++, image += s->colors) {
      guint8 pixel[4];
      const gboolean is_good = is_finite (image, s->colors);
      for (gint64 c = 0; c < s->colors; c++)
        pixel[c] = is_good ? (guint8)CLAMP ((float)(image[c] * scale) + (float)offset, 0, 255)
                           : bad_color[c];
      g_byte_array_append (rows, pixel, (guint)s->colors);
    }
  }
}

static void
put_bytes (const guint8 *image, const Images *s, GByteArray *rows)
{
  for (gint64 y = 0; y < s->height; y++, image += s->width * s->colors) {
    g_byte_array_append (rows, (const guint8 *)"", 1);
    g_byte_array_append (rows, image, (guint)(s->width * s->colors));
  }
}

/* An image's elements as double, (transfer full); NULL with an error. */
static double *
image_values (MusterTensor *wide, gint64 i, gint64 n, GError **error)
{
  double *values = g_try_new (double, n);

  if (values == NULL)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "There is no memory for an image of %" G_GINT64_FORMAT " values", n);
  for (gint64 j = 0; values != NULL && j < n; j++)
    values[j] = muster_tensor_dtype (wide) == MUSTER_DOUBLE
                    ? ((const double *)muster_tensor_data (wide))[i * n + j]
                    : (double)((const float *)muster_tensor_data (wide))[i * n + j];
  return values;
}

/* What stands for a pixel that is no number; red where the node doesn't say. */
static gboolean
read_bad_color (MusterKernel *k, gint64 colors, guint8 bad_color[4], GError **error)
{
  const Tensorflow__AttrValue *value = muster_kernel_attr (k, "bad_color");
  g_autoptr (MusterTensor) tensor = NULL;

  memcpy (bad_color, (const guint8[]){255, 0, 0, 255}, 4);
  if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR)
    return TRUE;
  tensor = muster_tensor_proto_read (value->tensor.data, value->tensor.len, NULL, error);
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

static gboolean
compute_image_summary (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  const gboolean is_bytes = muster_tensor_dtype (x) == MUSTER_UINT8;
  const gint64 most = muster_kernel_attr_int (k, "max_images", 3);
  g_autoptr (MusterTensor) wide = NULL;
  g_autoptr (GByteArray) summary = g_byte_array_new ();
  guint8 bad_color[4];
  Images s = {0};

  if (!muster_check_scalar (k, 0, "Tags", error) || !check_images (x, &s, error) ||
      (!is_bytes && (!read_bad_color (k, s.colors, bad_color, error) ||
                     (wide = muster_wide_input (k, 1, error)) == NULL)))
    return FALSE;
  for (gint64 i = 0; i < MIN (most, s.n); i++) {
    const gint64 n = s.height * s.width * s.colors;
    g_autoptr (GByteArray) message = g_byte_array_new (), rows = g_byte_array_new ();
    g_autofree double *values = is_bytes ? NULL : image_values (wide, i, n, error);
    if (!is_bytes && values == NULL)
      return FALSE;
    if (is_bytes)
      put_bytes ((const guint8 *)muster_tensor_data (x) + i * n, &s, rows);
    else
      put_pixels (values, &s, bad_color, rows);
    if (!put_image (message, &s, rows, error))
      return FALSE;
    put_value (summary, muster_tensor_string (muster_kernel_input (k, 0), 0), "image", i, most,
               VALUE_IMAGE, message);
  }
  set_summary (k, summary);
  return TRUE;
}

static void
put_little (GByteArray *out, guint32 number, guint size)
{
  const guint32 little = GUINT32_TO_LE (number);

  g_byte_array_append (out, (const guint8 *)&little, size);
}

/* 16 bits for each sample of -1 to 1. */
static GByteArray *
encode_sound (const float *samples, guint32 rate, gint64 channels, gint64 frames)
{
  GByteArray *wav = g_byte_array_new ();
  const guint32 size = (guint32)(channels * frames * 2);

  g_byte_array_append (wav, (const guint8 *)"RIFF", 4);
  put_little (wav, 36 + size, 4);
  g_byte_array_append (wav, (const guint8 *)"WAVEfmt ", 8);
  put_little (wav, 16, 4); /* what follows of the format */
  put_little (wav, 1, 2);  /* numbers, not compressed */
  put_little (wav, (guint32)channels, 2);
  put_little (wav, rate, 4);
  put_little (wav, rate * (guint32)channels * 2, 4);
  put_little (wav, (guint32)channels * 2, 2);
  put_little (wav, 16, 2);
  g_byte_array_append (wav, (const guint8 *)"data", 4);
  put_little (wav, size, 4);
  for (gint64 i = 0; i < channels * frames; i++) {
    const float sample = roundf (samples[i] * 32768);
    const int number = isnan (sample) ? 0 : (int)CLAMP (sample, -32768, 32767);
    put_little (wav, (guint32)number, 2);
  }
  return wav;
}

static gboolean
summarise_sounds (MusterKernel *k, double rate, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  const gint64 *dims = muster_tensor_dims (x), most = muster_kernel_attr_int (k, "max_outputs", 3);
  g_autoptr (GByteArray) summary = g_byte_array_new ();
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
  for (gint64 i = 0; i < MIN (most, dims[0]); i++) {
    g_autoptr (GByteArray) message = g_byte_array_new ();
    g_autoptr (GByteArray) wav =
        encode_sound ((const float *)muster_tensor_data (x) + i * dims[1] * channels, (guint32)rate,
                      channels, dims[1]);
    muster_proto_put_float (message, AUDIO_RATE, (float)rate);
    muster_proto_put_uint (message, AUDIO_CHANNELS, (guint64)channels);
    muster_proto_put_uint (message, AUDIO_FRAMES, (guint64)dims[1]);
    muster_proto_put_bytes (message, AUDIO_BYTES, wav->data, wav->len);
    muster_proto_put_bytes (message, AUDIO_TYPE, "audio/wav", 9);
    put_value (summary, muster_tensor_string (muster_kernel_input (k, 0), 0), "audio", i, most,
               VALUE_AUDIO, message);
  }
  set_summary (k, summary);
  return TRUE;
}

static gboolean
compute_audio_summary (MusterKernel *k, GError **error)
{
  return muster_check_scalar (k, 2, "sample_rate", error) &&
         summarise_sounds (k, muster_kernel_input_double (k, 2), error);
}

const MusterOp muster_media_summary_ops[] = {
    {"ImageSummary", "tag:string, tensor:T -> summary:string", "T:uint8|float|half|double",
     compute_image_summary, 0},
    {"AudioSummaryV2", "tag:string, tensor:float, sample_rate:float -> summary:string", "",
     compute_audio_summary, 0},
    {NULL, NULL, NULL, NULL, 0},
};
