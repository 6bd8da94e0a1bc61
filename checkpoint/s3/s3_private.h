// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/s3/s3_client_private.h"
#include "checkpoint/s3/s3_operation_private.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* What the parts of the store share. */

#define MUSTER_TYPE_S3_STORAGE (muster_s3_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterS3Storage, muster_s3_storage, MUSTER, S3_STORAGE, GObject)

struct _MusterS3Storage {
  GObject parent;
  MusterS3Client *client; /* (owned) */
  MusterS3Bound bound;    /* its clock and cancellable are owned */
};

/* One operation of S3 (s3_request.c): signed requests until one succeeds, a failure is final, or
 * the time is over. FALSE with an error, whose text names what failed. The status is set in either
 * case. answer is to be cleared. Any thread. */
gboolean muster_s3_request (MusterS3Client *client, const MusterS3Request *request,
                            const MusterS3Bound *bound, MusterS3Answer *answer, GError **error);

/* writing (s3_upload.c) */
MusterStorageFile *muster_s3_create (MusterS3Storage *self, const char *path, GError **error);
gboolean muster_s3_reserve (MusterS3Storage *self, MusterStorageFile *file, guint64 size,
                            GError **error);
gboolean muster_s3_append (MusterS3Storage *self, MusterStorageFile *file, const void *data,
                           gsize size, GError **error);
gboolean muster_s3_close (MusterS3Storage *self, MusterStorageFile *file, GError **error);
void muster_s3_abandon (MusterS3Storage *self, MusterStorageFile *file);

/* multipart uploads (s3_multipart.c) */

typedef struct {
  char *id;          /* (owned) (nullable) none was begun */
  gboolean has_sums; /* the store checks the CRC32C of each part; their bytes aren't signed */
} MusterS3Upload;

/* mark may be NULL. wants_sums: with sums, if the connection is encrypted and the store checks
 * them. */
gboolean muster_s3_upload_begin (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                                 const char *mark, gboolean wants_sums, MusterS3Upload *upload,
                                 GError **error);
/* (transfer full) what completing says of it, in XML. */
char *muster_s3_upload_part (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                             const MusterS3Upload *upload, guint number, const void *data,
                             gsize size, GError **error);
/* The same for a part that is a copy of source, "BUCKET/KEY" encoded; of an upload without sums. */
char *muster_s3_upload_copy (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                             const MusterS3Upload *upload, guint number, const char *source,
                             GError **error);
/* Shows the object, if there is none of its name. parts are in their order. */
gboolean muster_s3_upload_complete (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                                    const MusterS3Upload *upload, const char *mark,
                                    GPtrArray *parts, GError **error);
/* Soon, even after the deadline or a cancellation; what remains is for a sweep. */
void muster_s3_upload_abort_quietly (MusterS3Storage *self, const char *path,
                                     const MusterS3Uri *uri, const MusterS3Upload *upload);
gboolean muster_s3_sweep (MusterS3Storage *self, const char *directory, gint64 before_us,
                          GError **error);

/* reading (s3_download.c) */
MusterStorageInput *muster_s3_open (MusterS3Storage *self, const char *path, guint64 *size,
                                    GError **error);
gssize muster_s3_read_at (MusterS3Storage *self, MusterStorageInput *input, guint64 offset,
                          void *buffer, gsize size, GError **error);
const char *muster_s3_input_etag (const MusterStorageInput *input);
void muster_s3_close_input (MusterStorageInput *input);

/* small objects (s3_objects.c, s3_put.c) */

/* (transfer full) the new ETag. version is as for muster_storage_replace (). */
char *muster_s3_put (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                     const void *data, gsize size, const char *version, GError **error);
/* Sets header to the condition on version, or to NULL if there is none or the store ignores it:
 * then it is checked here, as well as that can be. */
gboolean muster_s3_condition (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                              const char *version, char **header, GError **error);
/* TRUE if the object is the one that mark was given to. */
gboolean muster_s3_is_own (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                           const char *mark);
gboolean muster_s3_head (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                         MusterS3Answer *answer, GError **error);
/* (transfer full) one answer of an operation that lists, whose XML is a root. */
MusterS3Xml *muster_s3_ask_list (MusterS3Storage *self, const char *operation, const char *path,
                                 const MusterS3Uri *uri, const char *query, const char *root,
                                 GError **error);
/* FALSE: a list says that it goes on, and not where. */
gboolean muster_s3_fail_cut_list (const char *directory, GError **error);
char **muster_s3_list (MusterS3Storage *self, const char *directory, GError **error);
gboolean muster_s3_remove (MusterS3Storage *self, const char *path, GError **error);
gboolean muster_s3_copy (MusterS3Storage *self, const char *from, const char *to, GError **error);

/* A path of an object. INVALID_ARGUMENT for the bucket itself. */
gboolean muster_s3_object_uri (const char *path, MusterS3Uri *uri, GError **error);

G_END_DECLS
