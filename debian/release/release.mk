# What is released: the tarball of sources. All of it has the time of the newest entry of debian/changelog.

SOURCE_DATE_EPOCH ?= $(shell date --date="$$(sed -n '/^ -- /{s/.*>  //p;q}' debian/changelog)" +%s)
DIST := $(BUILD)/dist
TARBALL := $(DIST)/repops-$(RO_VERSION).tar.gz

dist: ## the sources as a tarball, which needs no git, in BUILD/dist
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) sh debian/release/dist.sh $(RO_VERSION) $(TARBALL)
.PHONY: dist
