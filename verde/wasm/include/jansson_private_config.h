/* What jansson_config.h does not say. */
#define HAVE_STDINT_H 1
