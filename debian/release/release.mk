# What is released: the tarball of sources, and packages. All of it has the time of the newest entry of debian/changelog.

SOURCE_DATE_EPOCH ?= $(shell date --date="$$(sed -n '/^ -- /{s/.*>  //p;q}' debian/changelog)" +%s)
DIST := $(BUILD)/dist
TARBALL := $(DIST)/repops-$(RO_VERSION).tar.gz

dist: ## the sources as a tarball, which needs no git, in BUILD/dist
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) sh debian/release/dist.sh $(RO_VERSION) $(TARBALL)

DEB_PACKAGES := dpkg-dev debhelper dh-python
# What tests/full/packages.sh and reproducible.sh look with.
DEB_TEST_PACKAGES := $(DEB_PACKAGES) lintian mmdebstrap systemd-container autopkgtest faketime
deb: ## packages for Debian, in BUILD/deb; with librepops-cuda1 where nvcc is
deb: dist
	@sh verde/packages.sh $(PACKAGES) $(DEB_PACKAGES)
	@JOBS=$(JOBS) sh debian/release/deb.sh $(TARBALL) $(BUILD)/deb
.PHONY: dist deb
