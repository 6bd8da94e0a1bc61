// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "base/options.h"
#include "tests/base/sample.h"
#include "tests/gtest_shim.h"

#include <math.h>
#include <string.h>

MUSTER_DEFINE_OPTIONS (MusterPart, muster_part)
MUSTER_DEFINE_OPTIONS (MusterSample, muster_sample)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSample, muster_sample_free)

MUSTER_TEST (Fields, a_copy_owns_what_it_points_to)
{
  char name[] = "digits", word[] = "a", feed[] = "x:0", text[] = "t";
  const char *words[] = {word, NULL}, *feeds[] = {feed, "y:0"};
  const MusterPart parts[] = {{text, 1}, {NULL, 2}};
  g_autoptr (GBytes) bytes = g_bytes_new ("b", 1);
  g_autoptr (GCancellable) object = g_cancellable_new ();
  GCancellable *const objects[] = {object};
  g_autoptr (GFile) file = g_file_new_for_path ("/f");
  const MusterSample options = {.name = name,
                                .number = 7,
                                .words = words,
                                .feeds = feeds,
                                .n_feeds = 2,
                                .bytes = bytes,
                                .object = object,
                                .file = file,
                                .objects = objects,
                                .n_objects = 1,
                                .part = parts[0],
                                .parts = parts,
                                .n_parts = 2};
  MusterSample *copy = g_boxed_copy (muster_sample_get_type (), &options);
  memset (name, 'z', strlen (name));
  memset (word, 'z', strlen (word));
  memset (feed, 'z', strlen (feed));
  memset (text, 'z', strlen (text));
  g_autoptr (MusterSample) again = muster_sample_copy (copy);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 5u);
  muster_sample_free (copy);

  MUSTER_EXPECT_STREQ (again->name, "digits");
  MUSTER_EXPECT_EQ (again->number, 7);
  MUSTER_EXPECT_STREQ (again->words[0], "a");
  MUSTER_EXPECT_TRUE (again->words[1] == NULL);
  MUSTER_EXPECT_EQ (again->n_feeds, 2u);
  MUSTER_EXPECT_STREQ (again->feeds[0], "x:0");
  MUSTER_EXPECT_STREQ (again->feeds[1], "y:0");
  MUSTER_EXPECT_TRUE (g_bytes_equal (again->bytes, bytes));
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 3u);
  MUSTER_EXPECT_TRUE (again->file == file);
  MUSTER_EXPECT_TRUE (again->objects[0] == object);
  MUSTER_EXPECT_STREQ (again->part.text, "t");
  MUSTER_EXPECT_STREQ (again->parts[0].text, "t");
  MUSTER_EXPECT_EQ (again->parts[1].number, 2);
}

MUSTER_TEST (Fields, of_nothing_are_nothing)
{
  const MusterSample options = {.number = 1};
  g_autoptr (MusterSample) copy = muster_sample_copy (&options);
  MUSTER_EXPECT_TRUE (copy->name == NULL && copy->words == NULL && copy->feeds == NULL);
  MUSTER_EXPECT_TRUE (copy->bytes == NULL && copy->object == NULL && copy->file == NULL);
  MUSTER_EXPECT_TRUE (copy->objects == NULL && copy->part.text == NULL && copy->parts == NULL);
  muster_sample_free (NULL);
}

/* --- by name --- */

typedef struct {
  GValue holder;
  MusterSample *options; /* (not owned) of the holder */
} Held;

static Held
hold (void)
{
  Held held = {G_VALUE_INIT, g_new0 (MusterSample, 1)};
  g_value_init (&held.holder, muster_sample_get_type ());
  g_value_take_boxed (&held.holder, held.options);
  return held;
}

/* The error's text, or NULL. */
static char *
set (Held *held, const char *name, GValue *value)
{
  g_autoptr (GError) error = NULL;
  const gboolean is_set = muster_options_set (&held->holder, name, value, &error);
  MUSTER_EXPECT_EQ (is_set, error == NULL);
  g_value_unset (value);
  return error != NULL ? g_strdup (error->message) : NULL;
}

#define SET(held, name, type, how, value)                                                          \
  ({                                                                                               \
    GValue value_ = G_VALUE_INIT;                                                                  \
    g_value_init (&value_, type);                                                                  \
    g_value_set_##how (&value_, value);                                                            \
    set (held, name, &value_);                                                                     \
  })

MUSTER_TEST (Options, numbers_are_set_by_name_from_any_type_of_number)
{
  Held held = hold ();
  MUSTER_EXPECT_TRUE (SET (&held, "number", G_TYPE_INT, int, -3) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "is_on", G_TYPE_BOOLEAN, boolean, TRUE) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "bytes_in_all", G_TYPE_UINT64, uint64, G_MAXUINT64) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "share", G_TYPE_FLOAT, float, 0.25F) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "colour", G_TYPE_INT64, int64, MUSTER_SAMPLE_BLUE) == NULL);
  MUSTER_EXPECT_EQ (held.options->number, -3);
  MUSTER_EXPECT_TRUE (held.options->is_on && held.options->bytes_in_all == G_MAXUINT64);
  MUSTER_EXPECT_TRUE (held.options->share == 0.25);
  MUSTER_EXPECT_TRUE (SET (&held, "size", G_TYPE_DOUBLE, double, -INFINITY) == NULL);
  MUSTER_EXPECT_TRUE (held.options->size == -INFINITY);
  MUSTER_EXPECT_EQ (held.options->colour, MUSTER_SAMPLE_BLUE);
  MUSTER_EXPECT_TRUE (SET (&held, "number", G_TYPE_INT64, int64, G_MININT64) == NULL);
  MUSTER_EXPECT_TRUE (held.options->number == G_MININT64);
  g_value_unset (&held.holder);
}

MUSTER_TEST (Options, what_isnt_a_number_is_copied)
{
  static const char *const two[] = {"a", "b", NULL};
  static const char *const one[] = {"c", NULL};
  g_autoptr (GCancellable) object = g_cancellable_new ();
  Held held = hold ();
  MUSTER_EXPECT_TRUE (SET (&held, "name", G_TYPE_STRING, string, "before") == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "name", G_TYPE_STRING, string, held.options->name) == NULL);
  MUSTER_EXPECT_STREQ (held.options->name, "before");
  MUSTER_EXPECT_TRUE (SET (&held, "feeds", G_TYPE_STRV, boxed, two) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "feeds", G_TYPE_STRV, boxed, one) == NULL);
  MUSTER_EXPECT_EQ (held.options->n_feeds, 1u);
  MUSTER_EXPECT_STREQ (held.options->feeds[0], "c");
  MUSTER_EXPECT_TRUE (SET (&held, "object", G_TYPE_CANCELLABLE, object, object) == NULL);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 2u);
  MUSTER_EXPECT_TRUE (SET (&held, "object", G_TYPE_OBJECT, object, NULL) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "feeds", G_TYPE_STRV, boxed, NULL) == NULL);
  MUSTER_EXPECT_EQ (held.options->n_feeds, 0u);
  MUSTER_EXPECT_TRUE (held.options->feeds == NULL && held.options->object == NULL);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 1u);
  g_value_unset (&held.holder);
}

MUSTER_TEST (Options, a_value_for_an_array_is_added_and_null_empties_it)
{
  const MusterPart first = {"a", 1};
  const MusterPart second = {"b", 2};
  g_autoptr (GCancellable) object = g_cancellable_new ();
  Held held = hold ();
  MUSTER_EXPECT_TRUE (SET (&held, "part", muster_part_get_type (), boxed, &first) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "part", muster_part_get_type (), boxed, &second) == NULL);
  MUSTER_EXPECT_STREQ (held.options->part.text, "b");
  MUSTER_EXPECT_TRUE (SET (&held, "parts", muster_part_get_type (), boxed, &first) == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "parts", muster_part_get_type (), boxed, &second) == NULL);
  MUSTER_EXPECT_EQ (held.options->n_parts, 2u);
  MUSTER_EXPECT_STREQ (held.options->parts[1].text, "b");
  for (int i = 0; i < 2; i++)
    MUSTER_EXPECT_TRUE (SET (&held, "objects", G_TYPE_CANCELLABLE, object, object) == NULL);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 3u);
  MUSTER_EXPECT_TRUE (SET (&held, "objects", G_TYPE_CANCELLABLE, object, NULL) == NULL);
  MUSTER_EXPECT_EQ (held.options->n_objects, 0u);
  MUSTER_EXPECT_EQ (G_OBJECT (object)->ref_count, 1u);
  g_value_unset (&held.holder);
}

#define EXPECT_REFUSED(text, expected)                                                             \
  do {                                                                                             \
    g_autofree char *text_ = text;                                                                 \
    MUSTER_EXPECT_STREQ (text_, expected);                                                         \
  } while (0)

MUSTER_TEST (Options, a_field_that_isnt_there_is_refused)
{
  static const char fields[] =
      "name, number, is_on, bytes_in_all, share, size, least, colour, words, "
      "feeds, bytes, object, file, objects, part, parts)";
  Held held = hold ();
  for (int i = 0; i < 3; i++) {
    const char *name = ((const char *[]){"shares", "func_owner", "n_feeds"})[i];
    g_autofree char *expected =
        g_strdup_printf ("MusterSample has no field '%s' (use one of %s", name, fields);
    EXPECT_REFUSED (SET (&held, name, G_TYPE_INT, int, 1), expected);
  }
  g_value_unset (&held.holder);
}

MUSTER_TEST (Options, a_path_names_a_field_of_a_struct_in_the_struct)
{
  Held held = hold ();
  MUSTER_EXPECT_TRUE (SET (&held, "part.text", G_TYPE_STRING, string, "a") == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "part.text", G_TYPE_STRING, string, "b") == NULL);
  MUSTER_EXPECT_TRUE (SET (&held, "part.number", G_TYPE_INT, int, 3) == NULL);
  MUSTER_EXPECT_STREQ (held.options->part.text, "b");
  MUSTER_EXPECT_EQ (held.options->part.number, 3);
  EXPECT_REFUSED (SET (&held, "part.colour", G_TYPE_INT, int, 1),
                  "MusterPart has no field 'colour' (use one of text, number)");
  EXPECT_REFUSED (SET (&held, "part.", G_TYPE_INT, int, 1),
                  "MusterPart has no field '' (use one of text, number)");
  EXPECT_REFUSED (SET (&held, "name.text", G_TYPE_INT, int, 1),
                  "name of MusterSample has no fields; set all of it");
  EXPECT_REFUSED (SET (&held, "parts.text", G_TYPE_STRING, string, "a"),
                  "parts of MusterSample has no fields; set all of it");
  MUSTER_EXPECT_EQ (held.options->n_parts, 0u);
  g_value_unset (&held.holder);
}

MUSTER_TEST (Options, a_value_of_another_type_or_out_of_range_is_refused)
{
  Held held = hold ();
  EXPECT_REFUSED (SET (&held, "number", G_TYPE_STRING, string, "1"),
                  "invalid number of MusterSample: it is a gchararray (use a number)");
  EXPECT_REFUSED (SET (&held, "name", G_TYPE_INT, int, 1),
                  "invalid name of MusterSample: it is a gint (use a gchararray)");
  EXPECT_REFUSED (SET (&held, "file", G_TYPE_STRV, boxed, NULL) /* NULL is of every type */, NULL);
  EXPECT_REFUSED (SET (&held, "share", G_TYPE_DOUBLE, double, 1.5),
                  "invalid share 1.5 of MusterSample (use a number from 0 to 0.5)");
  EXPECT_REFUSED (SET (&held, "least", G_TYPE_INT, int, -2),
                  "invalid least -2 of MusterSample (use a whole number from -1 to 2147483647)");
  EXPECT_REFUSED (SET (&held, "least", G_TYPE_DOUBLE, double, 0.5),
                  "invalid least 0.5 of MusterSample (use a whole number from -1 to 2147483647)");
  EXPECT_REFUSED (SET (&held, "bytes_in_all", G_TYPE_INT, int, -1),
                  "invalid bytes_in_all -1 of MusterSample "
                  "(use a whole number from 0 to 18446744073709551615)");
  EXPECT_REFUSED (SET (&held, "number", G_TYPE_STRING, string, NULL),
                  "invalid number of MusterSample: it is NULL (use a number)");
  EXPECT_REFUSED (SET (&held, "colour", G_TYPE_INT, int, 3),
                  "invalid colour 3 of MusterSample (use a whole number from 0 to 2)");
  MUSTER_EXPECT_TRUE (held.options->share == 0 && held.options->least == 0);
  MUSTER_EXPECT_EQ (held.options->colour, MUSTER_SAMPLE_RED);
  g_value_unset (&held.holder);
}

MUSTER_TEST (Options, only_of_a_struct_with_fields_are_set)
{
  g_autoptr (GError) error = NULL;
  GValue text = G_VALUE_INIT;
  g_value_init (&text, G_TYPE_STRING);
  MUSTER_EXPECT_FALSE (muster_options_set (&text, "name", &text, &error));
  MUSTER_EXPECT_STREQ (error->message, "a gchararray has no fields to be set by name");
  g_clear_error (&error);

  GValue none = G_VALUE_INIT;
  g_value_init (&none, muster_sample_get_type ());
  MUSTER_EXPECT_FALSE (muster_options_set (&none, "name", &text, &error));
  MUSTER_EXPECT_STREQ (error->message, "invalid options: the MusterSample is NULL");
  g_clear_error (&error);

  Held held = hold ();
  const GValue typeless = G_VALUE_INIT;
  MUSTER_EXPECT_FALSE (muster_options_set (&held.holder, "name", &typeless, &error));
  MUSTER_EXPECT_STREQ (error->message, "invalid value for a field of MusterSample: it has no type");
  g_value_unset (&held.holder);
}
