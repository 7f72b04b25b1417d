"""The certificates of one bed: an authority, the server's, and one client certificate for each identity."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
VALID_FOR = dt.timedelta(days=30)


@dataclass(frozen=True)
class Identity:
    """A key pair on disk; for clients `name` is the user and `group` the user's group in Kubernetes."""

    cert: Path
    key: Path


class Authority:
    """Signs everything in its folder; made anew for every bed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._cert = self._sign(_name("bed-ca"), self._key.public_key(), _AUTHORITY)
        self.cert = directory / "ca.crt"
        self.cert.write_bytes(_pem(self._cert))

    def server(self) -> Identity:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in SERVER_NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        return self._issue("server", _name("server"), _leaf(ExtendedKeyUsageOID.SERVER_AUTH, names))

    def client(self, user: str, group: str | None = None) -> Identity:
        return self._issue(user.replace(":", "-"), _name(user, group), _leaf(ExtendedKeyUsageOID.CLIENT_AUTH))

    def service_account_key(self) -> Path:
        return _write_key(self.directory / "service-account.key", ec.generate_private_key(ec.SECP256R1()))

    def _issue(self, file: str, subject: x509.Name, extensions: list[_Extension]) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        cert = self.directory / f"{file}.crt"
        cert.write_bytes(_pem(self._sign(subject, key.public_key(), extensions)))
        return Identity(cert, _write_key(self.directory / f"{file}.key", key))

    def _sign(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, extensions: list[_Extension]
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_name("bed-ca"))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))  # clocks of two processes may differ a little
            .not_valid_after(now + VALID_FOR)
        )
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return builder.sign(self._key, hashes.SHA256())


_Extension = tuple[x509.ExtensionType, bool]
_AUTHORITY: list[_Extension] = [
    (x509.BasicConstraints(ca=True, path_length=0), True),
    (
        x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        ),
        True,
    ),
]


def _leaf(usage: x509.ObjectIdentifier, names: list[x509.GeneralName] | None = None) -> list[_Extension]:
    extensions: list[_Extension] = [(x509.ExtendedKeyUsage([usage]), False)]
    return [*extensions, (x509.SubjectAlternativeName(names), False)] if names else extensions


def _name(common_name: str, organization: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # the only one --service-account-key-file reads
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(pem)
    return path
