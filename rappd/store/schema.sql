-- The statements of each schema version, oldest first. Only ever append.
--
-- Events name their thread by its number, not its UUID: numbers grow, so the events of young
-- threads share index pages (half the bytes written, a third more turns per second than with UUIDs).

-- version 1
CREATE TABLE threads(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL,
    caller TEXT NOT NULL,
    session TEXT,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    count INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;
CREATE TABLE events(
    seq INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    verb TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    answers INTEGER NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_of_thread ON events(thread, n);
CREATE INDEX answers ON events(recipient, id) WHERE answers = 1;
CREATE TRIGGER events_are_kept BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_stay_as_written BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- version 2
CREATE INDEX threads_of_workspace ON threads(workspace);

-- version 3
CREATE TABLE peers(
    fingerprint TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    whose TEXT NOT NULL,
    public_key BLOB NOT NULL,
    certificate BLOB NOT NULL,
    sealing_key TEXT NOT NULL,
    scopes TEXT NOT NULL,
    paired_at INTEGER NOT NULL,
    called TEXT NOT NULL,
    address TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    offered INTEGER NOT NULL
) STRICT;
CREATE TABLE revoked_peers(
    fingerprint TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE outbox(
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    peer TEXT NOT NULL,
    id TEXT NOT NULL,
    verb TEXT NOT NULL,
    thread TEXT NOT NULL,
    what TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    trouble TEXT NOT NULL,
    answer BLOB NOT NULL,
    body BLOB NOT NULL,
    UNIQUE(peer, id, verb)
) STRICT;
CREATE INDEX outbox_waiting ON outbox(peer, number, next_at, expires_at, state)
    WHERE state IN ('queued', 'delivered', 'accepted');
CREATE INDEX outbox_expiring ON outbox(expires_at)
    WHERE state IN ('queued', 'delivered', 'accepted');
CREATE TABLE inbox(
    sender TEXT NOT NULL,
    id TEXT NOT NULL,
    verb TEXT NOT NULL,
    state TEXT NOT NULL CHECK(state IN ('accepted', 'started', 'done')),
    workspace TEXT NOT NULL,
    thread TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(sender, id, verb)
) STRICT;
CREATE INDEX inbox_unfinished ON inbox(state) WHERE state != 'done';
CREATE TABLE issued_tokens(
    jti TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    caps TEXT NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE revoked_tokens(
    jti TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE TABLE token_uses(
    jti TEXT PRIMARY KEY NOT NULL,
    uses INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- version 4
-- Every page that a commit touches is written and synced whole: what few ask for has no index of its own.
DROP INDEX threads_of_workspace;
CREATE INDEX threads_of_twins ON threads(workspace) WHERE workspace != 'brainstem';
DROP INDEX inbox_unfinished;
ALTER TABLE inbox RENAME TO inbox_before;
CREATE TABLE inbox(
    sender TEXT NOT NULL,
    id TEXT NOT NULL,
    verb TEXT NOT NULL,
    state TEXT NOT NULL CHECK(state IN ('accepted', 'started', 'done')),
    workspace TEXT NOT NULL,
    thread TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(sender, id, verb)
) STRICT, WITHOUT ROWID;
INSERT INTO inbox SELECT * FROM inbox_before;
DROP TABLE inbox_before;

-- version 5
-- Ids end with the moment of their thread: by their end, threads begun together share pages here, too.
ALTER TABLE threads RENAME TO threads_before;
CREATE TABLE threads(
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    workspace TEXT NOT NULL,
    caller TEXT NOT NULL,
    session TEXT,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    count INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;
INSERT INTO threads SELECT * FROM threads_before;
DROP TABLE threads_before;
CREATE UNIQUE INDEX threads_by_end ON threads(substr(id, 25), id);
CREATE INDEX threads_of_twins ON threads(workspace) WHERE workspace != 'brainstem';

-- version 6
-- To check a value against IN (…), SQLite sets up a temporary table for each row.
ALTER TABLE inbox RENAME TO inbox_before;
CREATE TABLE inbox(
    sender TEXT NOT NULL,
    id TEXT NOT NULL,
    verb TEXT NOT NULL,
    state TEXT NOT NULL CHECK(state = 'accepted' OR state = 'started' OR state = 'done'),
    workspace TEXT NOT NULL,
    thread TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY(sender, id, verb)
) STRICT, WITHOUT ROWID;
INSERT INTO inbox SELECT * FROM inbox_before;
DROP TABLE inbox_before;

-- version 7
-- For the former journal (``former_journal.py``): its mark and the number of the last frame in the tables.
CREATE TABLE intake(mark BLOB NOT NULL, carried INTEGER NOT NULL) STRICT;
INSERT INTO intake VALUES(randomblob(16), 0);

-- version 8
-- ``late_titles``: threads that had so many events already when they got their title, so that the title at any
-- earlier event is known. ``anchored``: the newest anchor (``anchor.py``), which lies in a file of its own.
CREATE TABLE late_titles(thread INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
CREATE TABLE anchored(counter INTEGER NOT NULL, events INTEGER NOT NULL) STRICT;
INSERT INTO anchored VALUES(0, 0);

-- version 9
-- SQLite's own log is the only one.
DROP TABLE intake;

-- version 10
-- A random id, repeated in ``anchors.db``: a file that was made anew is not taken for the one before it.
CREATE TABLE database_id(id TEXT NOT NULL) STRICT;
INSERT INTO database_id VALUES(lower(hex(randomblob(16))));

-- version 11
-- Scheduled work, and news that wait for the owner. Moments are seconds since 1970.
CREATE TABLE timers(
    id TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    rule TEXT NOT NULL,
    zone TEXT NOT NULL,
    next REAL NOT NULL,
    caller TEXT NOT NULL,
    detail TEXT NOT NULL,
    last REAL NOT NULL,
    outcome TEXT NOT NULL,
    failed_since REAL NOT NULL
) STRICT;
CREATE TABLE notices(
    key TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    what TEXT NOT NULL,
    do TEXT NOT NULL,
    subject TEXT NOT NULL,
    told INTEGER NOT NULL
) STRICT;

-- version 12
-- Titles that somebody gave to conversations, and the moment at which one was taken off the list (0: it is there).
-- Not columns of ``threads``, which is signed: what was said, and how it began, stay as they are.
CREATE TABLE conversations(
    thread TEXT PRIMARY KEY NOT NULL,
    title TEXT NOT NULL,
    removed INTEGER NOT NULL
) STRICT;

-- version 13
-- Models that somebody chose for one conversation, or for a twin; "" is the one that answers everybody.
ALTER TABLE conversations ADD COLUMN model TEXT NOT NULL DEFAULT '';
CREATE TABLE twin_models(twin TEXT PRIMARY KEY NOT NULL, model TEXT NOT NULL) STRICT;

-- version 14
-- What was sent on behalf of what, and threads that others began. An event's parent stands in its body, too, and so
-- in its hash; what is older has none.
ALTER TABLE events ADD COLUMN parent TEXT;
ALTER TABLE threads ADD COLUMN parent TEXT;
ALTER TABLE threads ADD COLUMN path TEXT;

-- version 15
-- A line that the owner wrote about a machine.
ALTER TABLE peers ADD COLUMN note TEXT NOT NULL DEFAULT '';

-- version 16
-- Threads that others began, by those; a root costs nothing here.
CREATE INDEX threads_of_parents ON threads(parent) WHERE parent IS NOT NULL;

-- version 17
-- Foreign programs: who connected, and what that came to. Moments are seconds since 1970.
CREATE TABLE programs(
    protocol TEXT NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    first REAL NOT NULL,
    last REAL NOT NULL,
    turns INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost_usd REAL NOT NULL,
    error TEXT NOT NULL,
    error_at REAL NOT NULL,
    PRIMARY KEY(protocol, key, name)
) STRICT;

-- version 18
-- What listeners keep for a thread, by its root, with which it ends.
CREATE TABLE listener_states(
    root TEXT NOT NULL,
    thread TEXT NOT NULL,
    workspace TEXT NOT NULL,
    listener TEXT NOT NULL,
    state BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY(root, thread, workspace, listener)
) STRICT, WITHOUT ROWID;
