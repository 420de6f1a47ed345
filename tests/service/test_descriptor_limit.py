"""A service with many workers has the descriptors it needs: each of its helpers costs four."""

from __future__ import annotations

import resource

from smtspool.service import Campaign, Service, Settings


def test_a_service_may_open_what_the_machine_allows_it(campaign: Campaign) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    settings = Settings(jobs=1, engines=("bitwuzla",))
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with Service(campaign, settings, once=True):
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(hard, 1 << 16), hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_limit_that_is_higher_already_is_kept(campaign: Campaign) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with Service(campaign, Settings(jobs=1, engines=("bitwuzla",)), once=True):
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
