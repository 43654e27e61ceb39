"""Neighborhoods as operations answer them: their rows, rosters, invites, and what was changed, published or packed."""

from __future__ import annotations

from typing import TypedDict

from rappd.features.eggs.answers import LeftOut


class NeighborhoodRow(TypedDict):
    """A neighborhood that lies here; ``count`` of its members are known."""

    key: str
    rappid: str
    name: str
    about: str
    folder: str
    joined: bool
    joined_at: str
    count: int


class UnreadableNeighborhood(TypedDict):
    """A folder that cannot be read as a neighborhood, and why."""

    key: str
    trouble: str


class Neighborhoods(TypedDict):
    """The neighborhoods that lie here; ``trouble``: why memberships cannot be read, "" where they can."""

    neighborhoods: list[NeighborhoodRow]
    unreadable: list[UnreadableNeighborhood]
    trouble: str


class MemberRow(TypedDict):
    """A member of a neighborhood; ``peer`` is its name here where it is paired."""

    rappid: str
    name: str
    role: str
    joined_at: str
    fingerprint: str
    capabilities: list[str]
    github_login: str | None
    self: bool
    peer: str
    presence: str
    admitted: bool


class WholeNeighborhood(NeighborhoodRow):
    """A neighborhood with its roster, what its members share, and what is published in it."""

    members: list[MemberRow]
    agents: list[str]
    published: dict[str, str]


class NeighborhoodChanged(TypedDict):
    """A neighborhood that was made or joined."""

    neighborhood: NeighborhoodRow
    message: str


class InviteFile(TypedDict):
    """An invite; ``peer``: the machine that counts among the members from now on, "" for none."""

    path: str
    neighborhood: str
    days: int
    peer: str


class Invited(TypedDict):
    """The answer of ``neighborhoods.invite``."""

    invite: InviteFile
    message: str


class LeftNeighborhood(TypedDict):
    """A neighborhood that was left, and where its files are."""

    key: str
    name: str
    aside: str


class Left(TypedDict):
    """The answer of ``neighborhoods.leave``."""

    left: LeftNeighborhood
    message: str


class PublishedAgent(TypedDict):
    """An agent, and who may call it."""

    neighborhood: str
    agent: str
    scope: str


class Published(TypedDict):
    """The answer of ``neighborhoods.publish``."""

    published: PublishedAgent
    message: str


class PackedNeighborhood(TypedDict):
    """The egg of a neighborhood."""

    path: str
    kind: str
    name: str
    rappid: str
    files: int
    size: int
    sha256: str
    left_out: list[LeftOut]


class NeighborhoodPacked(TypedDict):
    """The answer of ``neighborhoods.pack``."""

    packed: PackedNeighborhood
    message: str
