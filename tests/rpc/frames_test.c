// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/frames_private.h"

#include "base/memory_account_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, CONTINUATION = 9 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static MusterFrames *
begin (void)
{
  MusterFrames *frames = muster_frames_new (NULL);
  MUSTER_EXPECT_NULL (muster_frames_read (frames, (const guint8 *)preface, sizeof preface - 1));
  return frames;
}

static const char *
send_frame (MusterFrames *frames, guint8 type, guint8 flags, guint32 id, gsize size)
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
  const char *why = send_frame (frames, SETTINGS, 0, 0, 6);
  return why != NULL ? why : send_frame (frames, SETTINGS, ACK, 0, 0);
}

MUSTER_TEST (Frames, let_whole_calls_pass_without_end)
{
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (settle (frames));
  for (guint32 i = 0; i < 200000; i++) {
    MUSTER_ASSERT_TRUE (send_frame (frames, HEADERS, END_HEADERS, 2 * i + 1, 200) == NULL);
    MUSTER_ASSERT_TRUE (send_frame (frames, DATA, 0, 2 * i + 1, 3) == NULL);
    MUSTER_ASSERT_TRUE (send_frame (frames, DATA, END_STREAM, 2 * i + 1, 0) == NULL);
  }
}

MUSTER_TEST (Frames, refuse_calls_of_a_client_that_ignores_the_settings)
{
  muster_frames_allow (&(MusterFramesLimits){.max_unsettled = 100});
  g_autoptr (MusterFrames) frames = begin ();
  for (guint32 i = 0; i < 100; i++)
    MUSTER_ASSERT_TRUE (send_frame (frames, HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, 10) ==
                        NULL);
  MUSTER_EXPECT_STREQ (send_frame (frames, HEADERS, END_HEADERS | END_STREAM, 201, 10),
                       "too many calls before it acknowledged the settings");
}

MUSTER_TEST (Frames, refuse_calls_whose_requests_do_not_end)
{
  muster_frames_allow (&(MusterFramesLimits){.max_unended = 70});
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (settle (frames));
  for (guint32 i = 0; i < 70; i++)
    MUSTER_ASSERT_TRUE (send_frame (frames, HEADERS, END_HEADERS, 2 * i + 1, 10) == NULL);
  MUSTER_ASSERT_TRUE (send_frame (frames, HEADERS, END_HEADERS | END_STREAM, 201, 10) == NULL);
  /* One that has ended counts once, however often it ends. */
  MUSTER_ASSERT_TRUE (send_frame (frames, RST_STREAM, 0, 201, 4) == NULL);
  MUSTER_ASSERT_TRUE (send_frame (frames, RST_STREAM, 0, 1, 4) == NULL);
  MUSTER_ASSERT_TRUE (send_frame (frames, DATA, END_STREAM, 1, 4) == NULL);
  MUSTER_ASSERT_TRUE (send_frame (frames, HEADERS, END_HEADERS, 203, 10) == NULL);
  MUSTER_EXPECT_STREQ (send_frame (frames, HEADERS, END_HEADERS, 205, 10),
                       "too many calls whose request doesn't end");
}

MUSTER_TEST (Frames, refuse_headers_without_end)
{
  g_autoptr (MusterFrames) frames = begin ();
  MUSTER_EXPECT_NULL (send_frame (frames, HEADERS, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send_frame (frames, CONTINUATION, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send_frame (frames, CONTINUATION, 0, 1, 16384));
  MUSTER_EXPECT_STREQ (send_frame (frames, CONTINUATION, 0, 1, 16384), "headers without end");

  g_autoptr (MusterFrames) empty = begin ();
  const char *why = send_frame (empty, HEADERS, 0, 1, 0);
  for (int i = 0; i < 2000 && why == NULL; i++)
    why = send_frame (empty, CONTINUATION, 0, 1, 0);
  MUSTER_EXPECT_STREQ (why, "headers without end");

  g_autoptr (MusterFrames) large = begin ();
  MUSTER_EXPECT_NULL (send_frame (large, HEADERS, 0, 1, 16384));
  MUSTER_EXPECT_NULL (send_frame (large, CONTINUATION, END_HEADERS, 1, 16384));
  MUSTER_EXPECT_NULL (send_frame (large, HEADERS, 0, 3, 16384));
  MUSTER_EXPECT_NULL (send_frame (large, CONTINUATION, END_HEADERS, 3, 16384));
}

MUSTER_TEST (Frames, refuse_calls_that_are_taken_back_at_once)
{
  g_autoptr (MusterFrames) frames = begin ();
  const char *why = settle (frames);
  guint n = 0;
  for (; n < 100000 && why == NULL; n++) {
    why = send_frame (frames, HEADERS, END_HEADERS, 2 * n + 1, 10);
    MUSTER_ASSERT_TRUE (why == NULL);
    why = send_frame (frames, RST_STREAM, 0, 2 * n + 1, 4);
  }
  MUSTER_EXPECT_STREQ (why, "too many calls taken back");
  MUSTER_EXPECT_GT (n, 1000);
}

MUSTER_TEST (Frames, see_the_same_however_the_bytes_are_cut)
{
  g_autoptr (MusterFrames) frames = muster_frames_new (NULL);
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
  g_autoptr (MusterFrames) frames = muster_frames_new (NULL);
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
  muster_frames_allow (&(MusterFramesLimits){.max_unsettled = 100});
  for (guint n = 0; n < 2; n++) {
    g_autoptr (MusterFrames) frames = begin ();
    muster_frames_has_answered (frames, FALSE);
    MUSTER_EXPECT_NULL (settle (frames));
    muster_frames_has_answered (frames, TRUE);
    if (n == 1)
      MUSTER_EXPECT_NULL (settle (frames));
    const char *why = NULL;
    for (guint32 i = 0; i < 1000 && why == NULL; i++)
      why = send_frame (frames, HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, 10);
    MUSTER_EXPECT_TRUE ((why == NULL) == (n == 1));
  }
}

MUSTER_TEST (Frames, do_not_follow_another_protocol)
{
  g_autoptr (MusterFrames) frames = muster_frames_new (NULL);
  const char get[] = "PRI / HTTP/1.1\r\n\r\n";
  MUSTER_EXPECT_NULL (muster_frames_read (frames, (const guint8 *)get, sizeof get));
  for (int i = 0; i < 1000; i++)
    MUSTER_EXPECT_NULL (send_frame (frames, CONTINUATION, 0, 1, 16384));
}

/* --- what they hold --- */

#define PIECE 16384
#define MIB   (1 << 20)

static guint n_logged;

static void
on_ended (int fd G_GNUC_UNUSED, const char *why)
{
  MUSTER_EXPECT_STREQ (why, "requests that don't end, over the limit of memory");
  n_logged++;
}

/* A connection, and its other end. */
typedef struct {
  int fds[2];
  MusterFrames *frames; /* (owned) */
} Held;

static void
held_start (Held *self, MusterFakeClock *clock)
{
  MUSTER_ASSERT_TRUE (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, self->fds) == 0);
  self->frames =
      muster_frames_new (muster_unended_new (self->fds[0], MUSTER_CLOCK (clock), on_ended));
  MUSTER_EXPECT_NULL (
      muster_frames_read (self->frames, (const guint8 *)preface, sizeof preface - 1));
  MUSTER_EXPECT_NULL (settle (self->frames));
}

static void
held_clear (Held *self)
{
  muster_frames_free (self->frames);
  close (self->fds[0]);
  close (self->fds[1]);
  muster_memory_set_limit (0);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Held, held_clear)

/* The beginning of a request. Why the connection is to be ended. */
static const char *
begin_request (Held *self, guint32 id, gsize size)
{
  const char *why = send_frame (self->frames, HEADERS, END_HEADERS, id, 10);
  for (gsize i = 0; i < size / PIECE && why == NULL; i++)
    why = send_frame (self->frames, DATA, 0, id, PIECE);
  return why;
}

static gboolean
held_is_ended (const Held *self)
{
  char byte;
  return recv (self->fds[1], &byte, 1, 0) == 0;
}

/* A frame without a payload, in two pieces. */
static void
answer (Held *self, guint8 type, guint8 flags, guint8 id)
{
  const guint8 head[9] = {0, 0, 0, type, flags, 0, 0, 0, id};
  muster_frames_sent (self->frames, head, 4);
  muster_frames_sent (self->frames, head + 4, 5);
}

/* A thread counts up to 16 KiB on its own. */
static void
expect_held (guint64 before, gsize n_bytes)
{
  const guint64 used = muster_memory_used_in_all ();
  MUSTER_EXPECT_LE (used, before + n_bytes + PIECE);
  MUSTER_EXPECT_GE (used + PIECE, before + n_bytes);
}

MUSTER_TEST (Frames, count_requests_until_either_end_ends_them)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const guint64 before = muster_memory_used_in_all ();
  g_auto (Held) held = {0};
  held_start (&held, clock);
  for (guint32 id = 1; id <= 9; id += 2)
    MUSTER_EXPECT_NULL (begin_request (&held, id, MIB));
  expect_held (before, 5 * MIB);

  MUSTER_EXPECT_NULL (send_frame (held.frames, DATA, END_STREAM, 1, PIECE));
  expect_held (before, 4 * MIB);
  MUSTER_EXPECT_NULL (send_frame (held.frames, RST_STREAM, 0, 3, 4));
  expect_held (before, 3 * MIB);
  answer (&held, HEADERS, END_HEADERS, 5); /* its answer begins */
  expect_held (before, 3 * MIB);
  answer (&held, HEADERS, END_HEADERS | END_STREAM, 5);
  expect_held (before, 2 * MIB);
  answer (&held, RST_STREAM, 0, 7);
  expect_held (before, MIB);
  for (int i = 0; i < 100; i++) /* gRPC keeps nothing of it */
    MUSTER_EXPECT_NULL (send_frame (held.frames, DATA, 0, 7, PIECE));
  expect_held (before, MIB);
  muster_frames_end (held.frames);
  expect_held (before, 0);
}

MUSTER_TEST (Frames, end_the_connection_that_holds_most_for_longest_where_no_memory_is_left)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const guint64 before = muster_memory_used_in_all ();
  g_auto (Held) stalled = {0}, quick = {0};
  held_start (&stalled, clock);
  held_start (&quick, clock);
  muster_memory_set_limit (before + 8 * MIB);
  n_logged = 0;
  MUSTER_EXPECT_NULL (begin_request (&stalled, 1, 3 * MIB));
  muster_fake_clock_pass (clock, 60 * MUSTER_SECOND);

  MUSTER_EXPECT_NULL (begin_request (&quick, 1, 7 * MIB));

  MUSTER_EXPECT_TRUE (held_is_ended (&stalled));
  MUSTER_EXPECT_FALSE (held_is_ended (&quick));
  MUSTER_EXPECT_EQ (n_logged, 1);
  expect_held (before, 7 * MIB);
  MUSTER_EXPECT_TRUE (send_frame (stalled.frames, DATA, 0, 1, PIECE) != NULL);
  MUSTER_EXPECT_TRUE (begin_request (&quick, 3, 2 * MIB) != NULL); /* alone it is over it as well */
  expect_held (before, 0);
}

MUSTER_TEST (Frames, leave_an_eighth_of_the_memory_to_requests_that_come)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const guint64 before = muster_memory_used_in_all ();
  g_auto (Held) held = {0};
  held_start (&held, clock);
  muster_memory_set_limit (before + 8 * MIB);
  muster_memory_add (MUSTER_MEMORY_TENSORS, 9 * MIB);

  MUSTER_EXPECT_NULL (begin_request (&held, 1, MIB));
  MUSTER_EXPECT_TRUE (begin_request (&held, 3, MIB) != NULL);

  muster_memory_release (MUSTER_MEMORY_TENSORS, 9 * MIB);
}

MUSTER_TEST (Frames, give_the_memory_of_requests_that_stall_to_others)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const guint64 before = muster_memory_used_in_all ();
  g_autoptr (GError) error = NULL;
  g_auto (Held) held = {0};
  held_start (&held, clock);
  muster_memory_set_limit (before + 8 * MIB);
  MUSTER_EXPECT_NULL (begin_request (&held, 1, 6 * MIB));

  muster_fake_clock_pass (clock, 9 * MUSTER_SECOND); /* it may be coming slowly */
  MUSTER_EXPECT_FALSE (muster_memory_take (MUSTER_MEMORY_TENSORS, 4 * MIB, &error));
  MUSTER_EXPECT_FALSE (held_is_ended (&held));
  muster_fake_clock_pass (clock, 2 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_memory_take (MUSTER_MEMORY_TENSORS, 4 * MIB, NULL));

  MUSTER_EXPECT_TRUE (held_is_ended (&held));
  expect_held (before, 4 * MIB);
  muster_memory_release (MUSTER_MEMORY_TENSORS, 4 * MIB);
}
