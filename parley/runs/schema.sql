-- One run, one file. Every text is stored once, in `texts`; the view `transcript` joins messages with their texts.
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE prompts (name TEXT PRIMARY KEY, hash TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE units (
    id TEXT PRIMARY KEY,
    position INTEGER NOT NULL,
    facets TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'planned' CHECK (status IN ('planned', 'done', 'failed')),
    error TEXT,
    stop_reason TEXT,
    started_at REAL,
    finished_at REAL
) WITHOUT ROWID;
CREATE INDEX units_by_status ON units (status, position);
CREATE TABLE messages (
    unit TEXT NOT NULL,
    seq INTEGER NOT NULL,
    round INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    role TEXT NOT NULL,
    persona INTEGER,
    text INTEGER NOT NULL,
    parse_status TEXT,
    parsed TEXT,
    expected TEXT,
    thought INTEGER,
    cut INTEGER,
    PRIMARY KEY (unit, seq)
) WITHOUT ROWID;
CREATE TABLE calls (
    unit TEXT NOT NULL,
    seq INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    reply INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    latency REAL NOT NULL,
    cost REAL,
    cached INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    cached_tokens INTEGER,
    written_tokens INTEGER NOT NULL DEFAULT 0,
    thought INTEGER,
    thought_tokens INTEGER,
    PRIMARY KEY (unit, seq, nth)
) WITHOUT ROWID;
CREATE TABLE verdicts (
    unit TEXT NOT NULL,
    nth INTEGER NOT NULL,
    judge TEXT NOT NULL,
    role TEXT NOT NULL,
    round INTEGER NOT NULL,
    subject TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL,
    sampled REAL,
    text TEXT,
    status TEXT NOT NULL,
    seq INTEGER,
    PRIMARY KEY (unit, nth)
) WITHOUT ROWID;
CREATE TABLE events (at REAL NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE checks (unit TEXT PRIMARY KEY, plan INTEGER, outcome INTEGER, verdicts INTEGER) WITHOUT ROWID;
CREATE VIEW transcript AS
    SELECT m.unit, m.seq, m.round, m.speaker, m.role, p.text AS persona, t.text AS text,
           m.parse_status, m.parsed, m.expected, h.text AS thought, m.cut
    FROM messages m JOIN texts t ON t.id = m.text LEFT JOIN texts p ON p.id = m.persona
         LEFT JOIN texts h ON h.id = m.thought;
