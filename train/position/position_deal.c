// SPDX-License-Identifier: Apache-2.0
/* Which batch a draw is. */
#include "train/position/position_private.h"

/* How many batches the job hadn't done of each task's first n_rows. */
static gint64
count_undone (const gint64 *done, gint64 n_tasks, gint64 n_rows)
{
  gint64 n = 0;
  for (gint64 i = 0; i < n_tasks; i++)
    n += MAX (n_rows - done[i], 0);
  return n;
}

/* The batch that has deal undone ones before it, among the first top rows. */
static gint64
find_undone (const gint64 *done, gint64 n_tasks, gint64 top, gint64 deal)
{
  gint64 row = 0;
  for (gint64 end = top; row < end;) { /* the first row up to whose end there are more than deal */
    const gint64 middle = row + (end - row) / 2;
    if (count_undone (done, n_tasks, middle + 1) > deal)
      end = middle;
    else
      row = middle + 1;
  }
  gint64 left = deal - count_undone (done, n_tasks, row), task = 0;
  for (;; task++)
    if (done[task] <= row && left-- == 0)
      return muster_position_batch (row, (guint)task, (guint)n_tasks);
}

gint64
muster_position_dealt (gint64 deal, const MusterTensor *origin)
{
  const gint64 *done = muster_tensor_data (origin);
  const gint64 n_tasks = muster_tensor_n_elements (origin);
  gint64 top = 0;
  if (deal < 0)
    return -1;
  for (gint64 i = 0; i < n_tasks; i++)
    top = MAX (top, done[i]);
  const gint64 n_undone = count_undone (done, n_tasks, top), n_before = top * n_tasks;
  if (deal < n_undone)
    return find_undone (done, n_tasks, top, deal);
  return deal - n_undone > G_MAXINT64 - n_before ? G_MAXINT64 : n_before + (deal - n_undone);
}
