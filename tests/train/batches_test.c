// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "tests/gtest_shim.h"
#include "train/position/batches.h"

#include <string.h>

/* Rows that say their own number. */
static MusterTensor *
numbered (gint64 rows)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT64, 1, &rows);
  for (gint64 i = 0; i < rows; i++)
    ((gint64 *)muster_tensor_data_mutable (tensor))[i] = i;
  return tensor;
}

static gint64
first_of (MusterBatches *batches)
{
  g_autoptr (MusterTensor) batch = NULL;
  muster_batches_next (batches, &batch);
  return *(const gint64 *)muster_tensor_data (batch);
}

MUSTER_TEST (batches, deal_every_row_once_in_an_epoch)
{
  g_autoptr (MusterTensor) rows = numbered (12);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBatches) batches = muster_batches_new (&rows, 1, 4, 7, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (int epoch = 0; epoch < 3; epoch++) {
    int seen[12] = {0};
    for (int b = 0; b < 3; b++) {
      g_autoptr (MusterTensor) batch = NULL;
      muster_batches_next (batches, &batch);
      for (int i = 0; i < 4; i++)
        seen[((const gint64 *)muster_tensor_data (batch))[i]]++;
    }
    for (int i = 0; i < 12; i++)
      MUSTER_EXPECT_EQ (seen[i], 1);
  }
}

MUSTER_TEST (batches, keep_the_rows_of_several_arrays_together)
{
  g_autoptr (MusterTensor) a = numbered (9);
  g_autoptr (MusterTensor) b = numbered (9);
  MusterTensor *arrays[] = {a, b};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, 3, 1, NULL);
  MUSTER_ASSERT_NOT_NULL (batches);

  for (int i = 0; i < 6; i++) {
    MusterTensor *batch[2];
    muster_batches_next (batches, batch);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (batch[0], batch[1]));
    muster_tensor_unref (batch[0]);
    muster_tensor_unref (batch[1]);
  }
}

MUSTER_TEST (batches, go_on_from_a_position_as_if_they_had_been_dealt)
{
  g_autoptr (MusterTensor) rows = numbered (20);
  g_autoptr (MusterBatches) dealt = muster_batches_new (&rows, 1, 3, 5, NULL);
  g_autoptr (MusterBatches) resumed = muster_batches_new (&rows, 1, 3, 5, NULL);
  for (int i = 0; i < 14; i++)
    first_of (dealt);

  muster_batches_seek (resumed, muster_batches_position (dealt));

  for (int i = 0; i < 10; i++)
    MUSTER_EXPECT_EQ (first_of (resumed), first_of (dealt));
}

MUSTER_TEST (batches, another_seed_is_another_order)
{
  g_autoptr (MusterTensor) rows = numbered (1000);
  g_autoptr (MusterBatches) a = muster_batches_new (&rows, 1, 1, 1, NULL);
  g_autoptr (MusterBatches) b = muster_batches_new (&rows, 1, 1, 2, NULL);
  int same = 0;
  for (int i = 0; i < 100; i++)
    same += first_of (a) == first_of (b);

  MUSTER_EXPECT_LT (same, 20);
}

MUSTER_TEST (batches, have_the_same_value_without_rows_in_each)
{
  const gint64 n = 3;
  const MusterString words[] = {{"a", 1}, {"bc", 2}, {"", 0}};
  g_autoptr (MusterTensor) rate = muster_tensor_new_float (0.5f);
  g_autoptr (MusterTensor) text = muster_tensor_new_strings (1, &n, words);
  g_autoptr (MusterTensor) rows = numbered (n);
  MusterTensor *arrays[] = {rate, text, rows};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 3, 2, 1, NULL);
  MUSTER_ASSERT_NOT_NULL (batches);

  for (int i = 0; i < 3; i++) {
    MusterTensor *batch[3];
    muster_batches_next (batches, batch);
    const MusterString first = muster_tensor_string (batch[1], 0);
    const MusterString *own = &words[*(const gint64 *)muster_tensor_data (batch[2])];
    MUSTER_EXPECT_PTR_EQ (batch[0], rate);
    MUSTER_EXPECT_TRUE (first.size == own->size && memcmp (first.data, own->data, own->size) == 0);
    for (int k = 0; k < 3; k++)
      muster_tensor_unref (batch[k]);
  }
  MUSTER_EXPECT_EQ (muster_batches_per_epoch (batches), 1);
  MUSTER_EXPECT_PTR_EQ (muster_batches_array (batches, 2), rows);
  MUSTER_EXPECT_NULL (muster_batches_array (batches, 3));
}

MUSTER_TEST (batches, of_single_values_have_no_epoch)
{
  g_autoptr (MusterTensor) rate = muster_tensor_new_float (0.5f);
  g_autoptr (MusterBatches) batches = muster_batches_new (&rate, 1, 0, 1, NULL);
  MUSTER_ASSERT_NOT_NULL (batches);
  MUSTER_EXPECT_EQ (muster_batches_per_epoch (batches), 0);
  for (int i = 0; i < 2; i++) {
    g_autoptr (MusterTensor) value = NULL;
    muster_batches_next (batches, &value);
    MUSTER_EXPECT_PTR_EQ (value, rate);
  }
}

/* A list of rates has another length than the rows, and rows don't follow it. */
MUSTER_TEST (batches, have_a_constant_whole_in_each)
{
  g_autoptr (MusterTensor) rows = numbered (4);
  g_autoptr (MusterTensor) rates = numbered (3);
  g_autoptr (MusterBatches) batches = muster_batches_new (&rows, 1, 2, 1, NULL);
  g_autoptr (MusterBatches) alone = muster_batches_new (NULL, 0, 0, 1, NULL);
  muster_batches_add_constant (batches, rates);
  muster_batches_add_constant (alone, rates);

  for (int i = 0; i < 3; i++) {
    g_autoptr (MusterTensor) only = NULL;
    MusterTensor *batch[2];
    muster_batches_next (batches, batch);
    muster_batches_next (alone, &only);
    MUSTER_EXPECT_EQ (muster_tensor_dims (batch[0])[0], 2);
    MUSTER_EXPECT_PTR_EQ (batch[1], rates);
    MUSTER_EXPECT_PTR_EQ (only, rates);
    muster_tensor_unref (batch[0]);
    muster_tensor_unref (batch[1]);
  }
  MUSTER_EXPECT_EQ (muster_batches_per_epoch (batches), 2);
  MUSTER_EXPECT_EQ (muster_batches_per_epoch (alone), 0);
  MUSTER_EXPECT_PTR_EQ (muster_batches_array (batches, 1), rates);
}

MUSTER_TEST (batches, refuse_arrays_of_other_lengths_and_a_batch_too_large)
{
  g_autoptr (MusterTensor) a = numbered (4);
  g_autoptr (MusterTensor) b = numbered (5);
  MusterTensor *arrays[] = {a, b};
  g_autoptr (GError) lengths = NULL;
  g_autoptr (GError) size = NULL;
  MUSTER_EXPECT_NULL (muster_batches_new (arrays, 2, 1, 0, &lengths));
  MUSTER_EXPECT_NULL (muster_batches_new (&a, 1, 5, 0, &size));

  MUSTER_EXPECT_ERROR (lengths, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_ERROR (size, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
