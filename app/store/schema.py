"""The schema, as a list of migrations. Entry n brings a file from version n to n + 1; entries are never edited."""

from __future__ import annotations

V1 = """
CREATE TABLE conversation (
    id             INTEGER PRIMARY KEY,
    uid            TEXT NOT NULL UNIQUE,
    title          TEXT NOT NULL DEFAULT '',
    title_is_users INTEGER NOT NULL DEFAULT 0,
    created_at     REAL NOT NULL,
    updated_at     REAL NOT NULL,
    deleted_at     REAL,
    active_root_id INTEGER REFERENCES message(id) ON DELETE SET NULL,
    system_prompt  TEXT NOT NULL DEFAULT '',
    sampler        TEXT
) STRICT;

CREATE INDEX conversation_recent ON conversation(updated_at) WHERE deleted_at IS NULL;

CREATE TABLE message (
    id              INTEGER PRIMARY KEY,
    uid             TEXT NOT NULL UNIQUE,
    conversation_id INTEGER NOT NULL REFERENCES conversation(id) ON DELETE CASCADE,
    parent_id       INTEGER REFERENCES message(id) ON DELETE CASCADE,
    active_child_id INTEGER REFERENCES message(id) ON DELETE SET NULL,
    role            TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    content         TEXT NOT NULL DEFAULT '',
    reasoning       TEXT NOT NULL DEFAULT '',
    state           TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'stopped', 'interrupted', 'failed')),
    created_at      REAL NOT NULL,
    deleted_at      REAL
) STRICT;

CREATE INDEX message_children ON message(conversation_id, parent_id);
CREATE INDEX message_streaming ON message(state) WHERE state = 'streaming';

-- How an assistant message came to be: one row per attempt. Enough to write it again byte for byte.
CREATE TABLE reply (
    message_id INTEGER PRIMARY KEY REFERENCES message(id) ON DELETE CASCADE,
    seed       INTEGER NOT NULL,
    request    TEXT NOT NULL,            -- JSON: sampler, speculation, block size, budget, stop strings
    model      TEXT NOT NULL,            -- JSON: name, revision, weights hash, drafter, verdict
    segments   BLOB,                     -- app/store/segments.py; NULL until the reply is finished
    last_token INTEGER,                  -- the reply's last token, which is in no segment
    end_reason TEXT,
    figures    TEXT,                     -- JSON of engine.ReplyStats
    notices    TEXT NOT NULL DEFAULT '[]',
    error      TEXT,                     -- JSON: what, kept, todo, detail
    finished_at REAL
) STRICT;

-- Proof that a reply was checked later: an exactness receipt of `Verify` or of a replay.
CREATE TABLE receipt (
    id         INTEGER PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES message(id) ON DELETE CASCADE,
    created_at REAL NOT NULL,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL             -- JSON
) STRICT;

CREATE INDEX receipt_message ON receipt(message_id);

-- Unsent text. conversation_id 0 is the chat that does not exist yet.
CREATE TABLE draft (
    conversation_id INTEGER PRIMARY KEY,
    text            TEXT NOT NULL,
    attachments     TEXT NOT NULL DEFAULT '[]',
    updated_at      REAL NOT NULL
) STRICT;
"""

V2 = """
ALTER TABLE message ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';  -- app/store/attachments.py
ALTER TABLE reply ADD COLUMN trace BLOB;  -- app/chat/trace.py: which text came of which round

-- Prompts that the user keeps for later.
CREATE TABLE template (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;

CREATE INDEX message_attached ON message(conversation_id) WHERE attachments != '[]';

-- Search. Text that still streams is not in it: it changes twice a second. Nor are attachments: a megabyte of them
-- takes half a second, in which the window would stand still when they are sent. They are few, and looked through.
CREATE VIRTUAL TABLE message_text USING fts5(content, content='message', content_rowid='id', tokenize='trigram');

INSERT INTO message_text(rowid, content) SELECT id, content FROM message WHERE state != 'streaming';

CREATE TRIGGER message_text_new AFTER INSERT ON message WHEN new.state != 'streaming' BEGIN
    INSERT INTO message_text(rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER message_text_gone AFTER DELETE ON message WHEN old.state != 'streaming' BEGIN
    INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TRIGGER message_text_finished AFTER UPDATE ON message
WHEN old.state = 'streaming' AND new.state != 'streaming' BEGIN
    INSERT INTO message_text(rowid, content) VALUES (new.id, new.content);
END;

CREATE TRIGGER message_text_goes_on AFTER UPDATE ON message
WHEN old.state != 'streaming' AND new.state = 'streaming' BEGIN
    INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.id, old.content);
END;

CREATE TRIGGER message_text_changed AFTER UPDATE OF content ON message
WHEN old.state != 'streaming' AND new.state != 'streaming' BEGIN
    INSERT INTO message_text(message_text, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO message_text(rowid, content) VALUES (new.id, new.content);
END;
"""

V3 = """
-- The few messages that were deleted: every search leaves them out, and reading all rows for that takes long.
CREATE INDEX message_deleted ON message(deleted_at, conversation_id) WHERE deleted_at IS NOT NULL;
"""

V4 = """
-- Earlier messages that were changed and not sent yet.
CREATE TABLE edit (
    message_id  INTEGER PRIMARY KEY REFERENCES message(id) ON DELETE CASCADE,
    text        TEXT NOT NULL,
    attachments TEXT NOT NULL,
    updated_at  REAL NOT NULL
) STRICT;
"""

MIGRATIONS: tuple[str, ...] = (V1, V2, V3, V4)
