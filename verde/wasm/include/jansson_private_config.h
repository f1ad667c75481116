/* Settings of jansson that are not in jansson_config.h. */
#define HAVE_STDINT_H 1
