# What is released: the tarball of sources, packages, wheels, and a signed list of them. All of it has the time of the newest entry of
# debian/changelog.

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

# KEY: the releaser's key.pem, as `verde keygen` makes one. A wheel of this version for another machine that lies there is taken along.
RELEASE := $(BUILD)/release
OTHER_WHEELS = $(wildcard $(BUILD)/aarch64/wheels/*.whl)
release: ## all files of a release, with an SBOM and a list that KEY=path/key.pem signs, in BUILD/release
	@[ -f "$(KEY)" ] || { echo 'make release: KEY="$(KEY)": expected the path of a key.pem, as `verde keygen` makes one' >&2; exit 1; }
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) sh debian/release/ready.sh $(RO_VERSION) $(OTHER_WHEELS)
	@$(MAKE) --no-print-directory deb wheel verifier
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@cp $(TARBALL) $(BUILD)/deb/*.deb $(BUILD)/wheels/*.whl $(OTHER_WHEELS) $(BUILD)/share/verde/verify.html $(RELEASE)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(PYTHON) debian/release/sbom.py $(RO_VERSION) $(RELEASE)
	@sh debian/release/sums.sh $(KEY) $(RO_VERSION) $(RELEASE)
.PHONY: dist deb release
