// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

/* Structs with a field of each kind, for the tables that bazel/fields.py writes. */

typedef enum {
  MUSTER_SAMPLE_RED,
  MUSTER_SAMPLE_BLUE,
  MUSTER_SAMPLE_GREEN,
  MUSTER_N_SAMPLE_COLOURS,
} MusterSampleColour;

typedef void (*MusterSampleFunc) (gpointer user_data);

/**
 * MusterPart:
 * @text: (attributes flag=text): a text in a part
 */
typedef struct {
  const char *text;
  gint64 number;
} MusterPart;

GType muster_part_get_type (void);

/**
 * MusterSample:
 * @name: (attributes flag=name): a text
 * @share: (attributes flag=share arg=PERCENT min=0 max=0.5): a number of a range
 * @colour: (attributes flag=colour arg=red|blue|green): a value of an enumeration; 0: red
 * @least: (attributes flag=elsewhere of=elsewhere min=-1): a number of a range that is open above
 */
typedef struct {
  const char *name;
  gint64 number;
  gboolean is_on;
  guint64 bytes_in_all;
  double share, size;
  int least;
  MusterSampleColour colour;
  const char *const *words; /* NULL-terminated */
  const char *const *feeds;
  gsize n_feeds;
  GBytes *bytes;
  GCancellable *object;
  GFile *file;
  GCancellable *const *objects;
  gsize n_objects;
  MusterPart part;
  const MusterPart *parts;
  gsize n_parts;
  MusterSampleFunc func;
  gpointer user_data;
  /*< private >*/
  GBytes *func_owner;
} MusterSample;

GType muster_sample_get_type (void);
