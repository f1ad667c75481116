/* Private to repops. */
#ifndef REPOPS_SRC_CUDA_H
#define REPOPS_SRC_CUDA_H

#include "repops/src/device.h"

/* Opens device `index` through librepops_cuda.so, with the stream and the allocator of `options`.
 * RO_ERR_DEVICE with a sentence if there is none. */
ro_status ro_cuda_open(int index, const ro_options *options, ro_device **out, char *why,
                       size_t why_size);

#endif
