// SPDX-License-Identifier: Apache-2.0
/* Stands in for OpenBLAS (engine/kernels/math/matmul.c): its first product never ends. */
#include <unistd.h>

void cblas_sgemm (void);

void
cblas_sgemm (void)
{
  for (;;)
    pause ();
}
