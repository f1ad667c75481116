/* Operators of section `image` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_IMAGE_H
#define REPOPS_OP_IMAGE_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_CONV2D = 128,            /* (x, w) */
    RO_OP_CONV2D_DX = 129,         /* (dy, w): gradient of x */
    RO_OP_CONV2D_DW = 130,         /* (x, dy): gradient of w */
    RO_OP_CONV2D_FIXED = 227,      /* (x, w): conv2d by exact sums of integers */
    RO_OP_CONV2D_FIXED_DX = 228,   /* (dy, w): gradient of x by exact sums of integers */
    RO_OP_CONV2D_FIXED_DW = 229,   /* (x, dy): gradient of w by exact sums of integers */
    RO_OP_MAX_POOL2D = 136,        /* (x) */
    RO_OP_MAX_POOL2D_INDEX = 137,  /* (x): place of the maximum in its window */
    RO_OP_MAX_POOL2D_GRAD = 138,   /* (dy, index i32) */
    RO_OP_AVG_POOL2D = 139,        /* (x) */
    RO_OP_AVG_POOL2D_GRAD = 140,   /* (dy) */
    RO_OP_BN_MEAN = 144,           /* (x): means of groups of rows */
    RO_OP_BN_SQDEV = 145,          /* (x, mean): squared deviations of groups of rows */
    RO_OP_BN_MERGE_MEAN = 146,     /* (m): means of 64 groups */
    RO_OP_BN_MERGE_SQDEV = 147,    /* (m, s): squared deviations of 64 groups */
    RO_OP_BATCHNORM = 148,         /* (x, mean, rstd, gamma, beta) */
    RO_OP_BN_DGAMMA = 149,         /* (dy, x, mean, rstd): gradient of gamma */
    RO_OP_BN_DX = 150,             /* (dy, x, mean, rstd, gamma, dbeta, dgamma) */
    RO_OP_BN_RUNNING = 151,        /* (r, v): the next running mean or variance */
    RO_OP_READ_IMAGES = 152,       /* (data u8, step i32): pixels as numbers */
    RO_OP_READ_LABELS = 153,       /* (data u8, step i32) */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_CONV2D_STRIDE_H = 0,
    RO_CONV2D_STRIDE_W = 1,
    RO_CONV2D_PAD_H = 2,
    RO_CONV2D_PAD_W = 3,
    RO_CONV2D_DILATION_H = 4,
    RO_CONV2D_DILATION_W = 5,
    RO_CONV2D_GROUPS = 6,
    RO_CONV2D_DX_STRIDE_H = 0,
    RO_CONV2D_DX_STRIDE_W = 1,
    RO_CONV2D_DX_PAD_H = 2,
    RO_CONV2D_DX_PAD_W = 3,
    RO_CONV2D_DX_DILATION_H = 4,
    RO_CONV2D_DX_DILATION_W = 5,
    RO_CONV2D_DX_GROUPS = 6,
    RO_CONV2D_DW_STRIDE_H = 0,
    RO_CONV2D_DW_STRIDE_W = 1,
    RO_CONV2D_DW_PAD_H = 2,
    RO_CONV2D_DW_PAD_W = 3,
    RO_CONV2D_DW_DILATION_H = 4,
    RO_CONV2D_DW_DILATION_W = 5,
    RO_CONV2D_DW_GROUPS = 6,
    RO_CONV2D_FIXED_STRIDE_H = 0,
    RO_CONV2D_FIXED_STRIDE_W = 1,
    RO_CONV2D_FIXED_PAD_H = 2,
    RO_CONV2D_FIXED_PAD_W = 3,
    RO_CONV2D_FIXED_DILATION_H = 4,
    RO_CONV2D_FIXED_DILATION_W = 5,
    RO_CONV2D_FIXED_GROUPS = 6,
    RO_CONV2D_FIXED_BITS = 7,
    RO_CONV2D_FIXED_DX_STRIDE_H = 0,
    RO_CONV2D_FIXED_DX_STRIDE_W = 1,
    RO_CONV2D_FIXED_DX_PAD_H = 2,
    RO_CONV2D_FIXED_DX_PAD_W = 3,
    RO_CONV2D_FIXED_DX_DILATION_H = 4,
    RO_CONV2D_FIXED_DX_DILATION_W = 5,
    RO_CONV2D_FIXED_DX_GROUPS = 6,
    RO_CONV2D_FIXED_DX_BITS = 7,
    RO_CONV2D_FIXED_DW_STRIDE_H = 0,
    RO_CONV2D_FIXED_DW_STRIDE_W = 1,
    RO_CONV2D_FIXED_DW_PAD_H = 2,
    RO_CONV2D_FIXED_DW_PAD_W = 3,
    RO_CONV2D_FIXED_DW_DILATION_H = 4,
    RO_CONV2D_FIXED_DW_DILATION_W = 5,
    RO_CONV2D_FIXED_DW_GROUPS = 6,
    RO_CONV2D_FIXED_DW_BITS = 7,
    RO_MAX_POOL2D_KERNEL_H = 0,
    RO_MAX_POOL2D_KERNEL_W = 1,
    RO_MAX_POOL2D_STRIDE_H = 2,
    RO_MAX_POOL2D_STRIDE_W = 3,
    RO_MAX_POOL2D_PAD_H = 4,
    RO_MAX_POOL2D_PAD_W = 5,
    RO_MAX_POOL2D_INDEX_KERNEL_H = 0,
    RO_MAX_POOL2D_INDEX_KERNEL_W = 1,
    RO_MAX_POOL2D_INDEX_STRIDE_H = 2,
    RO_MAX_POOL2D_INDEX_STRIDE_W = 3,
    RO_MAX_POOL2D_INDEX_PAD_H = 4,
    RO_MAX_POOL2D_INDEX_PAD_W = 5,
    RO_MAX_POOL2D_GRAD_KERNEL_H = 0,
    RO_MAX_POOL2D_GRAD_KERNEL_W = 1,
    RO_MAX_POOL2D_GRAD_STRIDE_H = 2,
    RO_MAX_POOL2D_GRAD_STRIDE_W = 3,
    RO_MAX_POOL2D_GRAD_PAD_H = 4,
    RO_MAX_POOL2D_GRAD_PAD_W = 5,
    RO_AVG_POOL2D_KERNEL_H = 0,
    RO_AVG_POOL2D_KERNEL_W = 1,
    RO_AVG_POOL2D_STRIDE_H = 2,
    RO_AVG_POOL2D_STRIDE_W = 3,
    RO_AVG_POOL2D_PAD_H = 4,
    RO_AVG_POOL2D_PAD_W = 5,
    RO_AVG_POOL2D_COUNT_PAD = 6,
    RO_AVG_POOL2D_GRAD_KERNEL_H = 0,
    RO_AVG_POOL2D_GRAD_KERNEL_W = 1,
    RO_AVG_POOL2D_GRAD_STRIDE_H = 2,
    RO_AVG_POOL2D_GRAD_STRIDE_W = 3,
    RO_AVG_POOL2D_GRAD_PAD_H = 4,
    RO_AVG_POOL2D_GRAD_PAD_W = 5,
    RO_AVG_POOL2D_GRAD_COUNT_PAD = 6,
    RO_BN_MEAN_COLS = 0,
    RO_BN_SQDEV_COLS = 0,
    RO_BN_MERGE_MEAN_COLS = 0,
    RO_BN_MERGE_MEAN_ROWS = 1,
    RO_BN_MERGE_MEAN_PER = 2,
    RO_BN_MERGE_SQDEV_COLS = 0,
    RO_BN_MERGE_SQDEV_ROWS = 1,
    RO_BN_MERGE_SQDEV_PER = 2,
    RO_BN_DGAMMA_COLS = 0,
    RO_BN_RUNNING_MOMENTUM = 0, /* float */
    RO_BN_RUNNING_DIVISOR = 1, /* float */
    RO_READ_IMAGES_SEED = 0,
    RO_READ_IMAGES_STREAM = 1,
    RO_READ_IMAGES_BATCH = 2,
    RO_READ_IMAGES_FIRST = 3,
    RO_READ_IMAGES_RECORD = 4,
    RO_READ_IMAGES_OFFSET = 5,
    RO_READ_IMAGES_SCALE = 6, /* float */
    RO_READ_IMAGES_SHIFT = 7, /* float */
    RO_READ_LABELS_SEED = 0,
    RO_READ_LABELS_STREAM = 1,
    RO_READ_LABELS_BATCH = 2,
    RO_READ_LABELS_FIRST = 3,
    RO_READ_LABELS_RECORD = 4,
    RO_READ_LABELS_OFFSET = 5,
    RO_RECORDS_SEED = RO_READ_IMAGES_SEED,
    RO_RECORDS_STREAM = RO_READ_IMAGES_STREAM,
    RO_RECORDS_BATCH = RO_READ_IMAGES_BATCH,
    RO_RECORDS_FIRST = RO_READ_IMAGES_FIRST,
    RO_RECORDS_RECORD = RO_READ_IMAGES_RECORD,
    RO_RECORDS_OFFSET = RO_READ_IMAGES_OFFSET,
    RO_MERGE_COLS = RO_BN_MERGE_MEAN_COLS,
    RO_MERGE_ROWS = RO_BN_MERGE_MEAN_ROWS,
    RO_MERGE_PER = RO_BN_MERGE_MEAN_PER,
    RO_CONV_STRIDE_H = RO_CONV2D_STRIDE_H,
    RO_CONV_STRIDE_W = RO_CONV2D_STRIDE_W,
    RO_CONV_PAD_H = RO_CONV2D_PAD_H,
    RO_CONV_PAD_W = RO_CONV2D_PAD_W,
    RO_CONV_DILATION_H = RO_CONV2D_DILATION_H,
    RO_CONV_DILATION_W = RO_CONV2D_DILATION_W,
    RO_CONV_GROUPS = RO_CONV2D_GROUPS,
    RO_CONV_FIXED_STRIDE_H = RO_CONV2D_FIXED_STRIDE_H,
    RO_CONV_FIXED_STRIDE_W = RO_CONV2D_FIXED_STRIDE_W,
    RO_CONV_FIXED_PAD_H = RO_CONV2D_FIXED_PAD_H,
    RO_CONV_FIXED_PAD_W = RO_CONV2D_FIXED_PAD_W,
    RO_CONV_FIXED_DILATION_H = RO_CONV2D_FIXED_DILATION_H,
    RO_CONV_FIXED_DILATION_W = RO_CONV2D_FIXED_DILATION_W,
    RO_CONV_FIXED_GROUPS = RO_CONV2D_FIXED_GROUPS,
    RO_CONV_FIXED_BITS = RO_CONV2D_FIXED_BITS,
    RO_POOL_KERNEL_H = RO_MAX_POOL2D_KERNEL_H,
    RO_POOL_KERNEL_W = RO_MAX_POOL2D_KERNEL_W,
    RO_POOL_STRIDE_H = RO_MAX_POOL2D_STRIDE_H,
    RO_POOL_STRIDE_W = RO_MAX_POOL2D_STRIDE_W,
    RO_POOL_PAD_H = RO_MAX_POOL2D_PAD_H,
    RO_POOL_PAD_W = RO_MAX_POOL2D_PAD_W,
};

/* clang-format on */

#endif
