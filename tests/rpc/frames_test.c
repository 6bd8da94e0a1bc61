// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/frames_private.h"

#include "tests/gtest_shim.h"

#include <string.h>

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, CONTINUATION = 9 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static MusterFrames *
begin (void)
{
  MusterFrames *frames = muster_frames_new ();
  MUSTER_EXPECT_NULL (muster_frames_read (frames, (const guint8 *)preface, sizeof preface - 1));
  return frames;
}

static const char *
send (MusterFrames *frames, guint8 type, guint8 flags, guint32 id, gsize size)
{
  g_autofree guint8 *frame = g_malloc0 (9 + size);
  const guint8 head[9] = {
      (guint8)(size >> 16), (guint8)(size >> 8), (guint8)size,      type,      flags,
      (guint8)(id >> 24),   (guint8)(id >> 16),  (guint8)(id >> 8), (guint8)id};
  memcpy (frame, head, sizeof head);
  return muster_frames_read (frames, frame, 9 + size);
}

static const char *
settle (MusterFrames *frames)
{
  const char *why = send (frames, SETTINGS, 0, 0, 6);
  return why != NULL ? why : send (frames, SETTINGS, ACK, 0, 0);
}

MUSTER_TEST (Frames, let_whole_calls_pass_without_end)
{
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (settle (frames));
  for (guint32 i = 0; i < 200000; i++) {
    MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS, 2 * i + 1, 200) == NULL);
    MUSTER_ASSERT_TRUE (send (frames, DATA, 0, 2 * i + 1, 3) == NULL);
    MUSTER_ASSERT_TRUE (send (frames, DATA, END_STREAM, 2 * i + 1, 0) == NULL);
  }
}

MUSTER_TEST (Frames, refuse_calls_of_a_client_that_ignores_the_settings)
{
  muster_frames_allow (100, 0);
  g_autoptr (MusterFrames) frames = begin ();
  for (guint32 i = 0; i < 100; i++)
    MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, 10) == NULL);
  MUSTER_EXPECT_STREQ (send (frames, HEADERS, END_HEADERS | END_STREAM, 201, 10),
                       "too many calls before it acknowledged the settings");
}

MUSTER_TEST (Frames, refuse_calls_whose_requests_do_not_end)
{
  muster_frames_allow (0, 70);
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (settle (frames));
  for (guint32 i = 0; i < 70; i++)
    MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS, 2 * i + 1, 10) == NULL);
  MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS | END_STREAM, 201, 10) == NULL);
  /* One that has ended counts once, however often it ends. */
  MUSTER_ASSERT_TRUE (send (frames, RST_STREAM, 0, 201, 4) == NULL);
  MUSTER_ASSERT_TRUE (send (frames, RST_STREAM, 0, 1, 4) == NULL);
  MUSTER_ASSERT_TRUE (send (frames, DATA, END_STREAM, 1, 4) == NULL);
  MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS, 203, 10) == NULL);
  MUSTER_EXPECT_STREQ (send (frames, HEADERS, END_HEADERS, 205, 10),
                       "too many calls whose request doesn't end");
}

/* gRPC passes over a call with an even id, which isn't a client's, and takes the odd ones below. */
MUSTER_TEST (Frames, count_calls_below_one_with_an_even_id)
{
  muster_frames_allow (0, 70);
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (settle (frames));
  MUSTER_EXPECT_NULL (send (frames, HEADERS, END_HEADERS, 0x7ffffffe, 10));
  for (guint32 i = 0; i < 70; i++)
    MUSTER_ASSERT_TRUE (send (frames, HEADERS, END_HEADERS, 2 * i + 1, 10) == NULL);
  MUSTER_EXPECT_STREQ (send (frames, HEADERS, END_HEADERS, 205, 10),
                       "too many calls whose request doesn't end");
}

MUSTER_TEST (Frames, refuse_headers_without_end)
{
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (send (frames, HEADERS, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send (frames, CONTINUATION, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send (frames, CONTINUATION, 0, 1, 16384));
  MUSTER_EXPECT_STREQ (send (frames, CONTINUATION, 0, 1, 16384), "headers without end");

  g_autoptr (MusterFrames) empty = begin ();
  const char *why = send (empty, HEADERS, 0, 1, 0);
  for (int i = 0; i < 2000 && why == NULL; i++)
    why = send (empty, CONTINUATION, 0, 1, 0);
  MUSTER_EXPECT_STREQ (why, "headers without end");

  g_autoptr (MusterFrames) large = begin ();
  MUSTER_EXPECT_NULL (send (large, HEADERS, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send (large, CONTINUATION, END_HEADERS, 1, 16384));
  MUSTER_EXPECT_NULL (send (large, HEADERS, 0, 3, 16384));
  MUSTER_EXPECT_NULL (send (large, CONTINUATION, END_HEADERS, 3, 16384));
}

MUSTER_TEST (Frames, refuse_calls_that_are_taken_back_at_once)
{
  g_autoptr (MusterFrames) frames = begin ();
  const char *why = settle (frames);
  guint n = 0;
  for (; n < 100000 && why == NULL; n++) {
    why = send (frames, HEADERS, END_HEADERS, 2 * n + 1, 10);
    MUSTER_ASSERT_TRUE (why == NULL);
    why = send (frames, RST_STREAM, 0, 2 * n + 1, 4);
  }
  MUSTER_EXPECT_STREQ (why, "too many cancelled calls");
  MUSTER_EXPECT_GT (n, 1000);
}

MUSTER_TEST (Frames, see_the_same_however_the_bytes_are_cut)
{
  g_autoptr (MusterFrames) frames = muster_frames_new ();
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_byte_array_append (bytes, (const guint8 *)preface, sizeof preface - 1);
  for (guint i = 0; i < 5; i++) { /* 65536 bytes in all, and the heads */
    const guint8 head[9] = {0, 0x40, 0, i == 0 ? HEADERS : CONTINUATION, 0, 0, 0, 0, 1};
    g_autofree guint8 *payload = g_malloc0 (0x4000);
    g_byte_array_append (bytes, head, sizeof head);
    g_byte_array_append (bytes, payload, 0x4000);
  }
  const char *why = NULL;
  for (guint i = 0; i < bytes->len && why == NULL; i++)
    why = muster_frames_read (frames, bytes->data + i, 1);
  MUSTER_EXPECT_STREQ (why, "headers without end");
}

static void
put (GByteArray *bytes, guint8 type, guint8 flags, guint32 id, gsize size)
{
  g_autofree guint8 *payload = g_malloc0 (size);
  const guint8 head[9] = {
      (guint8)(size >> 16), (guint8)(size >> 8), (guint8)size,      type,      flags,
      (guint8)(id >> 24),   (guint8)(id >> 16),  (guint8)(id >> 8), (guint8)id};
  g_byte_array_append (bytes, head, sizeof head);
  g_byte_array_append (bytes, payload, (guint)size);
}

/* How many bytes are read in pieces of that size, after a first one, until it is refused. */
static gsize
read_until_refused (const GByteArray *bytes, gsize first, gsize piece)
{
  g_autoptr (MusterFrames) frames = muster_frames_new ();
  for (gsize at = 0, n = first; at < bytes->len; at += n, n = piece) {
    n = MIN (n, bytes->len - at);
    if (muster_frames_read (frames, bytes->data + at, n) != NULL)
      return at + n;
  }
  return 0;
}

/* With every kind of frame that matters, and one that doesn't. */
MUSTER_TEST (Frames, refuse_the_same_frame_wherever_the_bytes_are_cut)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_byte_array_append (bytes, (const guint8 *)preface, sizeof preface - 1);
  put (bytes, SETTINGS, 0, 0, 6);
  put (bytes, SETTINGS, ACK, 0, 0);
  for (guint32 i = 0; i < 200; i++) { /* three times what any test allows */
    put (bytes, HEADERS, i % 2 == 0 ? END_HEADERS : 0, 2 * i + 1, i % 5);
    if (i % 2 == 1)
      put (bytes, CONTINUATION, END_HEADERS, 2 * i + 1, 3);
    put (bytes, DATA, i % 7 == 0 ? END_STREAM : 0, 2 * i + 1, i % 11);
    put (bytes, 6, 0, 0, 8);
    if (i % 13 == 0)
      put (bytes, RST_STREAM, 0, 2 * i + 1, 4);
  }
  const gsize end = read_until_refused (bytes, 0, 1);
  MUSTER_ASSERT_TRUE (end > 0);
  for (gsize cut = 1; cut < bytes->len; cut++) {
    const gsize found = read_until_refused (bytes, cut, bytes->len);
    MUSTER_ASSERT_EQ (found, cut >= end ? cut : bytes->len);
  }
  for (gsize piece = 2; piece < 100; piece++)
    MUSTER_ASSERT_EQ (read_until_refused (bytes, 0, piece), (end + piece - 1) / piece * piece);
}

/* What comes before the settings were sent acknowledges none. */
MUSTER_TEST (Frames, ignore_an_acknowledgement_that_comes_too_early)
{
  muster_frames_allow (100, 0);
  for (guint n = 0; n < 2; n++) {
    g_autoptr (MusterFrames) frames = begin ();
    muster_frames_has_answered (frames, FALSE);
    MUSTER_EXPECT_NULL (settle (frames));
    muster_frames_has_answered (frames, TRUE);
    if (n == 1)
      MUSTER_EXPECT_NULL (settle (frames));
    const char *why = NULL;
    for (guint32 i = 0; i < 1000 && why == NULL; i++)
      why = send (frames, HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, 10);
    MUSTER_EXPECT_TRUE ((why == NULL) == (n == 1));
  }
}

MUSTER_TEST (Frames, do_not_follow_another_protocol)
{
  g_autoptr (MusterFrames) frames = muster_frames_new ();
  const char get[] = "PRI / HTTP/1.1\r\n\r\n";
  MUSTER_EXPECT_NULL (muster_frames_read (frames, (const guint8 *)get, sizeof get));
  for (int i = 0; i < 1000; i++)
    MUSTER_EXPECT_NULL (send (frames, CONTINUATION, 0, 1, 16384));
}
