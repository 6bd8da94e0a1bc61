// SPDX-License-Identifier: Apache-2.0
/* What a guest sends, followed at once and in pieces: both are refused, or neither is. */
#include "rpc/server/frames_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static const char *
read_in_pieces (const guint8 *data, gsize size, gsize piece)
{
  g_autoptr (MusterFrames) frames = muster_frames_new ();
  const char *why = NULL;
  for (gsize at = 0; at < size && why == NULL; at += piece)
    why = muster_frames_read (frames, data + at, MIN (piece, size - at));
  return why;
}

/* The first byte is the size of the pieces. */
int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  const char *why = read_in_pieces (data + 1, size - 1, size);
  g_assert_cmpstr (read_in_pieces (data + 1, size - 1, (gsize)data[0] + 1), ==, why);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char seed[] = PREFACE "\0\0\0\4\0\0\0\0\0" /* settings, acknowledged */
                                     "\0\0\0\4\1\0\0\0\0"
                                     "\0\0\2\1\0\0\0\0\1ab" /* a call, in two pieces */
                                     "\0\0\1\11\4\0\0\0\1c"
                                     "\0\0\5\0\1\0\0\0\1\0\0\0\0\0" /* its message */
                                     "\0\0\4\3\0\0\0\0\1\0\0\0\10"; /* taken back */
  for (guint8 piece = 0; piece < 30; piece += 7)
    muster_fuzz_seed (&piece, seed, sizeof seed - 1);
}
