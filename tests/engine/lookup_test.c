// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/lookup_store.h"
#include "engine/resources/lookup_text.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/engine/fixture.h"

static MusterTensor *
int_vector (gint64 n, const gint64 *values)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT64, 1, &n);
  for (gint64 i = 0; i < n; i++)
    ((gint64 *)muster_tensor_data_mutable (tensor))[i] = values[i];
  return tensor;
}

#define INTS(...)                                                                                  \
  int_vector (G_N_ELEMENTS (((const gint64[]){__VA_ARGS__})), (const gint64[]){__VA_ARGS__})
#define STRINGS(...) muster_tensor_new_strv ((const char *const[]){__VA_ARGS__, NULL})

static MusterLookupTable *
new_table (MusterDType key, MusterDType value, gboolean is_mutable)
{
  const MusterLookupKind kind = {.is_mutable = is_mutable,
                                 .key_dtype = key,
                                 .value_dtype = value,
                                 .container = "localhost",
                                 .name = "t"};
  MUSTER_EXPECT_TRUE (muster_lookup_kind_is_known (&kind));
  return muster_lookup_table_new (&kind);
}

/* A key of either dtype, and its value, that a number stands for: some are short, one is empty. */
static MusterTensor *
key_tensor (MusterDType dtype, gint64 number)
{
  g_autofree char *text = number == 0 ? g_strdup ("") : g_strdup_printf ("key %d", (int)number);
  return dtype == MUSTER_STRING ? STRINGS (text) : INTS (number * 0x100000001);
}

static void
expect_value (MusterLookupTable *table, MusterDType dtype, gint64 number, gint64 wanted)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) key = key_tensor (dtype, number);
  g_autoptr (MusterTensor) none = muster_tensor_new_int64 (-1);
  g_autoptr (MusterTensor) found = muster_lookup_table_find (table, key, none, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (((const gint64 *)muster_tensor_data (found))[0], wanted);
}

/* Puts, changes and removes at random, as in a table that can't be wrong. */
static void
expect_as_an_array (MusterDType dtype)
{
  enum { N_KEYS = 500, N_CHANGES = 20000 };
  gint64 wanted[N_KEYS], n = 0;
  g_autoptr (GError) error = NULL;
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  g_autoptr (MusterLookupTable) table = new_table (dtype, MUSTER_INT64, TRUE);
  for (int i = 0; i < N_KEYS; i++)
    wanted[i] = -1;
  for (int i = 0; i < N_CHANGES; i++) {
    const gint64 number = g_rand_int_range (rand, 0, N_KEYS);
    g_autoptr (MusterTensor) key = key_tensor (dtype, number);
    n += wanted[number] < 0;
    if (g_rand_int_range (rand, 0, 2) != 0) {
      g_autoptr (MusterTensor) value = INTS (i);
      MUSTER_ASSERT_TRUE (muster_lookup_table_insert (table, key, value, NULL, &error));
      wanted[number] = i;
    } else {
      MUSTER_ASSERT_TRUE (muster_lookup_table_remove (table, key, &error));
      wanted[number] = -1;
      n--;
    }
    MUSTER_ASSERT_EQ (muster_lookup_table_size (table), n);
    expect_value (table, dtype, number, wanted[number]);
  }
  for (int i = 0; i < N_KEYS; i++)
    expect_value (table, dtype, i, wanted[i]);
}

MUSTER_TEST (LookupTable, of_numbers_is_what_an_array_would_be)
{
  expect_as_an_array (MUSTER_INT64);
}

MUSTER_TEST (LookupTable, of_strings_is_what_an_array_would_be)
{
  expect_as_an_array (MUSTER_STRING);
}

MUSTER_TEST (LookupTable, keeps_strings_of_its_own)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) keys = NULL, values = NULL, exported_keys = NULL, exported = NULL;
  g_autoptr (MusterLookupTable) table = new_table (MUSTER_STRING, MUSTER_STRING, FALSE);
  keys = STRINGS ("a", "", "b");
  values = STRINGS ("first", "second", "");
  MUSTER_ASSERT_TRUE (muster_lookup_table_import (table, keys, values, NULL, &error));
  g_clear_pointer (&keys, muster_tensor_unref);
  g_clear_pointer (&values, muster_tensor_unref);

  MUSTER_ASSERT_TRUE (muster_lookup_table_export (table, &exported_keys, &exported, NULL, &error));
  keys = STRINGS ("a", "", "b"); /* in the order in which they came */
  values = STRINGS ("first", "second", "");
  MUSTER_EXPECT_TRUE (muster_tensor_equal (exported_keys, keys));
  MUSTER_EXPECT_TRUE (muster_tensor_equal (exported, values));
}

MUSTER_TEST (LookupTable, of_rows_gives_whole_rows)
{
  const gint64 dims[] = {2, 2};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) flat = STRINGS ("1", "2", "3", "4");
  const MusterLookupKind kind = {.is_mutable = TRUE,
                                 .has_rows = TRUE,
                                 .n_row = 2,
                                 .key_dtype = MUSTER_INT64,
                                 .value_dtype = MUSTER_STRING};
  MUSTER_ASSERT_TRUE (muster_lookup_kind_is_known (&kind));
  g_autoptr (MusterLookupTable) table = muster_lookup_table_new (&kind);
  g_autoptr (MusterTensor) keys = INTS (1, 2), asked = INTS (2, 7), none = STRINGS ("x", "y");
  g_autoptr (MusterTensor) all = STRINGS ("a1", "a2", "b1", "b2");
  g_autoptr (MusterTensor) rows = muster_tensor_reshape (all, 2, dims);
  g_autoptr (MusterTensor) others = muster_tensor_reshape (flat, 2, dims);
  MUSTER_ASSERT_TRUE (muster_lookup_table_insert (table, keys, others, NULL, &error));
  MUSTER_ASSERT_TRUE (muster_lookup_table_insert (table, keys, rows, NULL, &error));

  g_autoptr (MusterTensor) found = muster_lookup_table_find (table, asked, none, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (muster_tensor_n_dims (found), 2);
  MUSTER_EXPECT_MEMEQ (muster_tensor_string (found, 1).data, 2, "b2", 2);
  MUSTER_EXPECT_MEMEQ (muster_tensor_string (found, 2).data, 1, "x", 1);
  MUSTER_EXPECT_FALSE (muster_lookup_table_insert (table, keys, none, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected shape [2,2] for value, got [2]");
}

/* TensorFlow's keeps what came before the error, and mixes it with what fills it next. */
MUSTER_TEST (LookupTable, whose_filling_fails_is_empty)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLookupTable) table = new_table (MUSTER_STRING, MUSTER_INT64, FALSE);
  g_autoptr (MusterTensor) keys = STRINGS ("a", "b", "a"), values = INTS (1, 2, 3);
  g_autoptr (MusterTensor) key = STRINGS ("a"), value = INTS (7), fallback = INTS (0);
  MUSTER_EXPECT_FALSE (muster_lookup_table_import (table, keys, values, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_FAILED_PRECONDITION, "Key a has 1 and trying to add value 3");
  MUSTER_EXPECT_FALSE (muster_lookup_table_is_filled (table));
  g_clear_error (&error);

  MUSTER_ASSERT_TRUE (muster_lookup_table_import (table, key, value, NULL, &error));
  MUSTER_EXPECT_EQ (muster_lookup_table_size (table), 1);
  g_autoptr (MusterTensor) found = muster_lookup_table_find (table, key, fallback, NULL, &error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (found, value));
}

MUSTER_TEST (LookupTable, allocates_no_space_for_more_keys_than_it_can_number)
{
  g_autoptr (GError) error = NULL;
  MusterLookupStore store;
  muster_lookup_store_init (&store, MUSTER_INT64, MUSTER_INT64, 1);
  MUSTER_EXPECT_FALSE (muster_lookup_store_reserve (&store, G_MAXINT64, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "no memory for a table");
  MUSTER_EXPECT_FALSE (muster_lookup_store_reserve (&store, G_MAXUINT32, NULL, NULL));
  MUSTER_EXPECT_EQ (store.capacity, 0u);
  muster_lookup_store_clear (&store);
}

/* A file of the test's folder, read into a table of words and their lines. */
static gboolean
fill_from (MusterLookupTable *table, const char *content, gsize size, GError **error)
{
  g_autofree char *path = in_tmpdir ("words");
  const MusterLookupText text = {.filename = path,
                                 .vocab_size = -1,
                                 .delimiter = '\t',
                                 .key_index = MUSTER_LOOKUP_WHOLE_LINE,
                                 .value_index = MUSTER_LOOKUP_LINE_NUMBER};
  put_file ("words", content, size);
  return muster_lookup_table_fill_from_text (table, &text, muster_local_storage (), NULL, NULL,
                                             error);
}

/* The reader's buffer ends somewhere in a line, before its end and after it. */
MUSTER_TEST (LookupTable, of_a_file_has_each_line_wherever_it_is_split)
{
  for (gsize before = 256 * 1024 - 5; before < 256 * 1024 + 3; before++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GString) content = g_string_new (NULL);
    g_autofree char *filler = g_strnfill (before, 'x');
    g_string_append_printf (content, "%s\r\none\r\n", filler);
    g_autoptr (MusterLookupTable) table = new_table (MUSTER_STRING, MUSTER_INT64, FALSE);
    MUSTER_ASSERT_TRUE (fill_from (table, content->str, content->len, &error));
    g_autoptr (MusterTensor) keys = STRINGS (filler, "one"), none = INTS (-1);
    g_autoptr (MusterTensor) wanted = INTS (0, 1);
    g_autoptr (MusterTensor) scalar = muster_tensor_reshape (none, 0, NULL);
    g_autoptr (MusterTensor) found = muster_lookup_table_find (table, keys, scalar, NULL, &error);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (found, wanted));
  }
}

MUSTER_TEST (LookupTable, of_a_file_refuses_a_line_without_an_end)
{
  const gsize size = MUSTER_LOOKUP_MAX_LINE + 2;
  g_autoptr (GError) error = NULL;
  g_autofree char *content = g_strnfill (size, 'x');
  g_autoptr (MusterLookupTable) table = new_table (MUSTER_STRING, MUSTER_INT64, FALSE);
  content[0] = 'a';
  content[1] = '\n';
  MUSTER_EXPECT_TRUE (fill_from (table, content, size - 1, &error));
  MUSTER_EXPECT_EQ (muster_lookup_table_size (table), 2);
  g_clear_pointer (&table, muster_lookup_table_free);

  table = new_table (MUSTER_STRING, MUSTER_INT64, FALSE);
  g_autofree char *longer = g_strnfill (size, 'x');
  MUSTER_EXPECT_FALSE (fill_from (table, longer, size, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "line 0 has more than");
}

MUSTER_TEST (LookupTable, of_a_file_stops_when_it_is_asked_to)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("words");
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (MusterLookupTable) table = new_table (MUSTER_STRING, MUSTER_INT64, FALSE);
  const MusterLookupText text = {.filename = path,
                                 .vocab_size = -1,
                                 .key_index = MUSTER_LOOKUP_WHOLE_LINE,
                                 .value_index = MUSTER_LOOKUP_LINE_NUMBER};
  put_file ("words", "a\n", 2);
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (muster_lookup_table_fill_from_text (table, &text, muster_local_storage (),
                                                           cancellable, NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_FALSE (muster_lookup_table_is_filled (table));
}

/* Each thread has keys of its own, and all of them go through one table's growth. */
#define N_THREADS 4
#define N_ROUNDS  200

static gpointer
change_table (gpointer data)
{
  MusterLookupTable *table = data;
  static gint next_thread;
  const gint64 base = g_atomic_int_add (&next_thread, 1) * (gint64)N_ROUNDS;
  for (gint64 i = base; i < base + N_ROUNDS; i++) {
    g_autoptr (MusterTensor) key = INTS (i), value = INTS (i * 2), none = INTS (-1);
    if (!muster_lookup_table_insert (table, key, value, NULL, NULL))
      return "not inserted";
    g_autoptr (MusterTensor) found = muster_lookup_table_find (table, key, none, NULL, NULL);
    if (found == NULL || !muster_tensor_equal (found, value))
      return "not found";
    if (i % 2 != 0 && !muster_lookup_table_remove (table, key, NULL))
      return "not removed";
  }
  return NULL;
}

MUSTER_TEST (LookupTable, is_changed_by_many_threads)
{
  GThread *threads[N_THREADS];
  g_autoptr (MusterLookupTable) table = new_table (MUSTER_INT64, MUSTER_INT64, TRUE);
  for (int i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("table", change_table, table);
  for (int i = 0; i < N_THREADS; i++)
    MUSTER_EXPECT_STREQ (g_thread_join (threads[i]), NULL);
  MUSTER_EXPECT_EQ (muster_lookup_table_size (table), N_THREADS * N_ROUNDS / 2);
}
