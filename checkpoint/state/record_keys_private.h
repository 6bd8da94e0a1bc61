// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* The values of the side file's keys. */

/* Leaves space to count further. */
#define MUSTER_RECORD_MAX_NUMBER (G_MAXINT64 - (1 << 20))

/* A name as in a URI: a file's name is any bytes, a GKeyFile's value is UTF-8. */
char *muster_record_escape (const char *name);
void muster_record_set_uint64 (GKeyFile *file, const char *group, const char *key, guint64 value);
/* Each of the next two leaves the key out if its value is NULL, the third if it is FALSE. words is
 * a text for messages. */
void muster_record_set_name (GKeyFile *file, const char *group, const char *key, const char *name);
void muster_record_set_words (GKeyFile *file, const char *group, const char *key,
                              const char *words);
void muster_record_set_flag (GKeyFile *file, const char *group, const char *key, gboolean flag);

/* Fails with DATA_LOSS: the key is … */
gboolean muster_record_refuse (GError **error, const char *group, const char *key,
                               const char *what);

/* Each leaves the default where the key is missing. */
gboolean muster_record_get_int64 (GKeyFile *file, const char *group, const char *key, gint64 least,
                                  gint64 *value, GError **error);
gboolean muster_record_get_uint64 (GKeyFile *file, const char *group, const char *key, guint64 most,
                                   guint64 *value, GError **error);
gboolean muster_record_get_time (GKeyFile *file, const char *group, const char *key, double *value,
                                 GError **error);
gboolean muster_record_get_flag (GKeyFile *file, const char *group, const char *key,
                                 gboolean *value, GError **error);
gboolean muster_record_get_words (GKeyFile *file, const char *group, const char *key, char **value,
                                  GError **error);
/* A base name, since paths are built from it, and files are removed by them. */
gboolean muster_record_get_name (GKeyFile *file, const char *group, const char *key, char **value,
                                 GError **error);
gboolean muster_record_get_path (GKeyFile *file, const char *group, const char *key, char **value,
                                 GError **error);

G_END_DECLS
