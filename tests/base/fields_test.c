// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "tests/gtest_shim.h"

#include <string.h>

typedef struct {
  const char *name;
  gint64 number;
  const char *const *words; /* NULL-terminated */
  const char *const *feeds;
  gsize n_feeds;
  GBytes *bytes;
  GCancellable *object;
  GFile *file;
} MusterSample;

static const MusterField fields[] = {
    MUSTER_STRING_FIELD (MusterSample, name),
    MUSTER_TYPED_FIELD (MusterSample, words, g_strv_get_type),
    MUSTER_STRINGS_FIELD (MusterSample, feeds, n_feeds),
    MUSTER_TYPED_FIELD (MusterSample, bytes, g_bytes_get_type),
    MUSTER_TYPED_FIELD (MusterSample, object, g_cancellable_get_type),
    MUSTER_TYPED_FIELD (MusterSample, file, g_file_get_type),
};

MusterSample *muster_sample_copy (const MusterSample *self);
void muster_sample_free (MusterSample *self);
GType muster_sample_get_type (void);
MUSTER_DEFINE_OPTIONS (MusterSample, muster_sample, fields)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSample, muster_sample_free)

MUSTER_TEST (Fields, a_copy_owns_what_it_points_to)
{
  char name[] = "digits", word[] = "a", feed[] = "x:0";
  const char *words[] = {word, NULL}, *feeds[] = {feed, "y:0"};
  g_autoptr (GBytes) bytes = g_bytes_new ("b", 1);
  GCancellable *object = g_cancellable_new ();
  g_autoptr (GFile) file = g_file_new_for_path ("/f");
  const MusterSample options = {name, 7, words, feeds, 2, bytes, object, file};
  MusterSample *copy = g_boxed_copy (muster_sample_get_type (), &options);
  memset (name, 'z', strlen (name));
  memset (word, 'z', strlen (word));
  memset (feed, 'z', strlen (feed));
  g_autoptr (MusterSample) again = muster_sample_copy (copy);
  muster_sample_free (copy);

  MUSTER_EXPECT_STREQ (again->name, "digits");
  MUSTER_EXPECT_EQ (again->number, 7);
  MUSTER_EXPECT_STREQ (again->words[0], "a");
  MUSTER_EXPECT_TRUE (again->words[1] == NULL);
  MUSTER_EXPECT_EQ (again->n_feeds, 2u);
  MUSTER_EXPECT_STREQ (again->feeds[0], "x:0");
  MUSTER_EXPECT_STREQ (again->feeds[1], "y:0");
  MUSTER_EXPECT_TRUE (g_bytes_equal (again->bytes, bytes));
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 2u);
  MUSTER_EXPECT_TRUE (again->file == file);
  g_object_unref (object);
}

MUSTER_TEST (Fields, of_nothing_are_nothing)
{
  const MusterSample options = {.number = 1};
  g_autoptr (MusterSample) copy = muster_sample_copy (&options);
  MUSTER_EXPECT_TRUE (copy->name == NULL && copy->words == NULL && copy->feeds == NULL);
  MUSTER_EXPECT_TRUE (copy->bytes == NULL && copy->object == NULL && copy->file == NULL);
  muster_sample_free (NULL);
}

MUSTER_TEST (Fields, are_set_to_copies)
{
  static const char *const two[] = {"a", "b", NULL}, *const one[] = {"c", NULL};
  const MusterSample options = {.name = "before"};
  g_autoptr (MusterSample) copy = muster_sample_copy (&options);
  g_autoptr (GCancellable) object = g_cancellable_new ();
  muster_fields_set (copy, &fields[0], "after");
  muster_fields_set (copy, &fields[2], two);
  MUSTER_EXPECT_EQ (copy->n_feeds, 2u);
  muster_fields_set (copy, &fields[2], one);
  muster_fields_set (copy, &fields[4], object);
  MUSTER_EXPECT_STREQ (copy->name, "after");
  MUSTER_EXPECT_EQ (copy->n_feeds, 1u);
  MUSTER_EXPECT_STREQ (copy->feeds[0], "c");
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 2u);
  muster_fields_set (copy, &fields[2], NULL);
  muster_fields_set (copy, &fields[4], NULL);
  muster_fields_set (copy, &fields[4], NULL);
  MUSTER_EXPECT_EQ (copy->n_feeds, 0u);
  MUSTER_EXPECT_TRUE (copy->feeds == NULL && copy->object == NULL);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 1u);
}

typedef struct {
  GCancellable *const *objects;
  gsize n_objects;
} MusterObjects;

static const MusterField objects_fields[] = {
    MUSTER_OBJECTS_FIELD (MusterObjects, objects, n_objects, g_cancellable_get_type),
};

MusterObjects *muster_objects_copy (const MusterObjects *self);
void muster_objects_free (MusterObjects *self);
GType muster_objects_get_type (void);
MUSTER_DEFINE_OPTIONS (MusterObjects, muster_objects, objects_fields)

MUSTER_TEST (Fields, of_arrays_reference_each_object)
{
  g_autoptr (GCancellable) one = g_cancellable_new ();
  g_autoptr (GCancellable) two = g_cancellable_new ();
  GCancellable *objects[] = {one};
  const MusterObjects options = {objects, 1};
  MusterObjects *copy = muster_objects_copy (&options);
  muster_fields_append (copy, &objects_fields[0], two);
  MusterObjects *again = muster_objects_copy (copy);
  muster_objects_free (copy);
  MUSTER_EXPECT_EQ (again->n_objects, 2u);
  MUSTER_EXPECT_TRUE (again->objects[0] == one && again->objects[1] == two);
  MUSTER_EXPECT_EQ (G_OBJECT (one)->ref_count, 2u);
  MUSTER_EXPECT_EQ (G_OBJECT (two)->ref_count, 2u);
  muster_objects_free (again);
  MUSTER_EXPECT_EQ (G_OBJECT (one)->ref_count, 1u);
}
