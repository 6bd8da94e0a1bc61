// SPDX-License-Identifier: Apache-2.0
#include "saver/directory/free_space_private.h"

#include "base/error.h"
#include "checkpoint/store/storage_failure_private.h"

#define FIRST_PAUSE MUSTER_SECOND
#define LAST_PAUSE  (60 * MUSTER_SECOND)
#define NO_SPACE    "not enough free space: "

guint64
muster_free_space_look (MusterStorage *storage, const char *directory)
{
  guint64 bytes;
  return muster_storage_free_space (storage, directory, &bytes, NULL) ? bytes : G_MAXUINT64;
}

static guint64
look (const MusterFreeSpace *self, const MusterSpaceCheck *space)
{
  return muster_free_space_look (self->storage, space->directory);
}

static char *
describe (const MusterFreeSpace *self, const MusterSpaceCheck *space)
{
  gint64 waited_us = muster_clock_now_us (self->clock) - space->started_us;
  guint64 there = look (self, space);
  g_autofree char *needed = muster_format_size (space->bytes);
  g_autofree char *is_free = there < G_MAXUINT64 ? muster_format_size (there) : g_strdup ("none");
  g_autofree char *waited = muster_format_duration (waited_us);
  g_autofree char *after = self->when_full == MUSTER_WHEN_FULL_PAUSE
                               ? g_strdup_printf (", after waiting %s", waited)
                               : g_strdup ("");
  return g_strdup_printf ("a checkpoint needs about %s, but %s is free in '%s'%s", needed, is_free,
                          space->directory, after);
}

static gboolean
refuse_save (const MusterFreeSpace *self, const MusterSpaceCheck *space, GError **error)
{
  g_autofree char *what = describe (self, space);

  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      NO_SPACE "%s; free some space, keep fewer checkpoints, or use "
                               "another directory (existing checkpoints are unchanged)",
                      what);
}

/* Returns FALSE at the deadline. */
static gboolean
pause_once (const MusterFreeSpace *self, MusterSpaceCheck *space, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  if (now_us >= space->deadline_us)
    return refuse_save (self, space, error);
  if (self->paused != NULL) {
    g_autofree char *why = describe (self, space);
    self->paused (why, self->paused_data);
  }
  space->pause_us = CLAMP (space->pause_us * 2, FIRST_PAUSE, LAST_PAUSE);
  gint64 wake_us = MIN (muster_deadline_after (now_us, space->pause_us), space->deadline_us);
  return muster_clock_wait_until (self->clock, wake_us, space->cancellable, error);
}

gboolean
muster_free_space_find (const MusterFreeSpace *self, MusterSpaceCheck *space, GError **error)
{
  while (look (self, space) < space->bytes) {
    if (muster_checkpoint_directory_make_room (space->home, space, space->bytes))
      continue;
    switch (self->when_full) {
    case MUSTER_WHEN_FULL_SKIP:
      space->why = describe (self, space);
      return TRUE;
    case MUSTER_WHEN_FULL_PAUSE:
      if (!pause_once (self, space, error))
        return FALSE;
      break;
    case MUSTER_WHEN_FULL_FAIL:
    default:
      return refuse_save (self, space, error);
    }
  }
  return TRUE;
}

gboolean
muster_free_space_was_full (const MusterFreeSpace *self, const MusterSpaceCheck *space,
                            const GError *failure)
{
  if (muster_storage_failure_is_full (failure))
    return TRUE;
  /* A master reports a lack of memory with the same code, so the directory's free space decides.
   * */
  return muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED) &&
         look (self, space) < space->bytes;
}

gboolean
muster_free_space_after_full (const MusterFreeSpace *self, MusterSpaceCheck *space, GError *failure,
                              GError **error)
{
  g_autoptr (GError) owned = failure;
  const guint64 there = look (self, space);
  /* The free space wasn't enough, whatever the estimate was. */
  const guint64 bytes = there < G_MAXUINT64 ? MAX (space->bytes, there + 1) : space->bytes;

  if (muster_checkpoint_directory_make_room (space->home, space, bytes))
    return TRUE;
  switch (self->when_full) {
  case MUSTER_WHEN_FULL_SKIP:
    space->why = g_strdup (failure->message);
    return TRUE;
  case MUSTER_WHEN_FULL_PAUSE:
    space->bytes = bytes;
    return pause_once (self, space, error) && muster_free_space_find (self, space, error);
  case MUSTER_WHEN_FULL_FAIL:
  default:
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "%s%s",
                        g_str_has_prefix (failure->message, NO_SPACE) ? "" : NO_SPACE,
                        failure->message);
  }
}
