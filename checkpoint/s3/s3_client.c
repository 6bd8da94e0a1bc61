// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_client_private.h"

MusterS3Client *
muster_s3_client_new (const MusterS3Options *options, GError **error)
{
  MusterS3Config *config = muster_s3_config_new (options, error);
  if (config == NULL)
    return NULL;
  MusterClock *clock =
      options != NULL && options->clock != NULL ? options->clock : muster_system_clock ();
  MusterS3Client *self = g_new0 (MusterS3Client, 1);
  g_atomic_ref_count_init (&self->refs);
  self->config = config;
  self->credentials = muster_s3_credentials_new (config);
  self->clock = g_object_ref (clock);
  g_mutex_init (&self->lock);
  self->conditions = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->uploads = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

MusterS3Client *
muster_s3_client_ref (MusterS3Client *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_s3_client_unref (MusterS3Client *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  muster_s3_credentials_free (self->credentials);
  muster_s3_config_free (self->config);
  g_object_unref (self->clock);
  g_hash_table_unref (self->conditions);
  g_hash_table_unref (self->uploads);
  g_mutex_clear (&self->lock);
  g_free (self);
}

MusterS3Conditions
muster_s3_client_conditions (MusterS3Client *self, const char *bucket)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return GPOINTER_TO_INT (g_hash_table_lookup (self->conditions, bucket));
}

void
muster_s3_client_set_conditions (MusterS3Client *self, const char *bucket,
                                 MusterS3Conditions conditions)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_insert (self->conditions, g_strdup (bucket), GINT_TO_POINTER (conditions));
}

void
muster_s3_client_add_upload (MusterS3Client *self, const char *id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_add (self->uploads, g_strdup (id));
}

void
muster_s3_client_remove_upload (MusterS3Client *self, const char *id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_remove (self->uploads, id);
}

gboolean
muster_s3_client_has_upload (MusterS3Client *self, const char *id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return g_hash_table_contains (self->uploads, id);
}
