// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* The encoding of string tensors in a data file: the lengths as varints, a masked checksum of the
 * lengths, then the texts without separators. The entry's checksum covers the lengths (as numbers
 * of four bytes, or eight if one needs more), the stored checksum, and the texts. */

/* Appends the bytes before the texts to head. Returns the checksum of the whole (unmasked). */
guint32 muster_strings_encode (const MusterTensor *tensor, GByteArray *head);

/* Finds the n_elements texts in data and checks the entry's masked checksum. strings has room for
 * n_elements, which point into data. FALSE if the bytes are damaged. */
gboolean muster_strings_decode (const guint8 *data, gsize size, gint64 n_elements,
                                guint32 masked_crc, MusterString *strings);

/* Checks strings piece by piece, in order, without memory for the texts. It also checks variants,
 * which muster doesn't read: each is a length, as many bytes, and the checksum of everything before
 * it, in which a length counts as eight bytes. */
typedef struct {
  gboolean is_variant;
  gint64 n_left;      /* lengths not read yet */
  guint64 length;     /* bits of the next length so far */
  guint shift;        /* their number */
  guint64 texts_left; /* bytes of texts not read yet */
  guint8 stored[4];   /* the checksum of the lengths, from the file */
  guint n_stored;
  gboolean has_length; /* for a variant */
  guint32 crc;
} MusterStringsCheck;

void muster_strings_check_init (MusterStringsCheck *self, MusterDType dtype, gint64 n_elements);

/* FALSE if the bytes are damaged. */
gboolean muster_strings_check_feed (MusterStringsCheck *self, const guint8 *data, gsize size);

/* TRUE if all bytes were there and whole. */
gboolean muster_strings_check_end (const MusterStringsCheck *self, guint32 masked_crc);

G_END_DECLS
