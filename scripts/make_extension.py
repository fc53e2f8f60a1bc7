#!/usr/bin/env python3
"""Writes the extension of VS Code as a file that `code --install-extension` takes: make_extension.py [OUT.vsix]"""

import json
import pathlib
import sys
import zipfile

MANIFEST = """<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id="{name}" Version="{version}" Publisher="{publisher}"/>
    <DisplayName>{displayName}</DisplayName>
    <Description xml:space="preserve">{description}</Description>
    <Categories>Programming Languages</Categories>
    <Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value="{engine}"/></Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/></Assets>
</PackageManifest>
"""
TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension=".json" ContentType="application/json"/>
  <Default Extension=".js" ContentType="application/javascript"/>
  <Default Extension=".vsixmanifest" ContentType="text/xml"/>
</Types>
"""


def main(output=None):
    folder = pathlib.Path(__file__).resolve().parent.parent / "editors" / "vscode"
    package = json.loads((folder / "package.json").read_text())
    output = output or f"{package['name']}-{package['version']}.vsix"
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("extension.vsixmanifest", MANIFEST.format(engine=package["engines"]["vscode"], **package))
        archive.writestr("[Content_Types].xml", TYPES)
        for path in sorted(folder.iterdir()):
            archive.write(path, f"extension/{path.name}")
    print(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
