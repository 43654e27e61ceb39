"""Every sandbox mode can be asked for, and hides the keys."""

from __future__ import annotations

import pytest
from fixtures.sandboxed_daemon import SandboxedDaemon

from rappd.errors import UsageProblemError
from rappd.settings.load import Settings
from rappd.tenants.tenant_config import sandbox_wish


def test_sandbox_mode_is_taken_and_hides_the_keys(sandboxed_daemon: SandboxedDaemon) -> None:
    sandboxed_daemon.start()
    home = sandboxed_daemon.home
    own = sandboxed_daemon.run_code("return open('.brainstem_data/note', 'w').write('mine')")
    assert own["ok"], own
    stolen = sandboxed_daemon.run_code(
        f"return open({str(home / 'keys' / 'identity.pem')!r}).read()", "Thief"
    )
    assert not stolen["ok"]
    assert "PRIVATE KEY" not in str(stolen)


def test_sandbox_setting_of_another_name_is_refused() -> None:
    settings = Settings.without_files({"RAPPD_SANDBOX": "cellar"})
    with pytest.raises(UsageProblemError, match="one of: auto, namespace, landlock, none"):
        sandbox_wish(settings)
