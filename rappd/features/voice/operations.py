"""The owner's operation on the voice settings, which ``/voice/config`` keeps."""

from __future__ import annotations

from pathlib import Path

from agents.storage.safe_fs import in_file_pool
from rappd.features.operation import OWNER, Download, operation
from rappd.tenants.tenant import Tenant
from twins.workspace import voice_file


class VoiceOperations:
    """Voice settings of the brainstem, or of a ``twin``."""

    @operation("voice.export", "POST", "/voice/export", right=OWNER, of_tenant=True)
    async def export(self, tenant: Tenant) -> Download:
        """The encrypted voice settings as a download."""
        content = await in_file_pool(voice_file.content, tenant.workspace.root)
        return Download(Path("voice.zip"), content, "application/zip")
