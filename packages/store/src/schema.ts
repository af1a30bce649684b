export const storeVersion = 3
/** `AWTR`, which distinguishes a run from any other SQLite file. */
export const applicationId = 0x41575452

/**
 * The schema of a run's database. docs/4.reference/run-directory.md describes each column. `rollouts.attempt` is the fence: a write names
 * its attempt and must find it here. The primary keys of `episodes` and `trained` make a second result and a second training impossible.
 * Rows of `rollouts` are short, so that a filter over all of them is quick: long columns come last, or are in a table of their own.
 */
export const schema = `
CREATE TABLE rollouts(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL, task_id TEXT NOT NULL, kind TEXT NOT NULL,
  split TEXT NOT NULL, step INTEGER, sample INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('queued', 'running', 'done', 'cancelled', 'interrupted')), attempt INTEGER NOT NULL, finished INTEGER UNIQUE,
  queued_at REAL NOT NULL, started_at REAL, ended_at REAL, queue_ms REAL, engine_ms REAL, tools_ms REAL,
  reward REAL, stop_reason TEXT, turns INTEGER, tool_calls INTEGER, sampled_tokens INTEGER, cost REAL, error TEXT, answer TEXT
) STRICT;
CREATE INDEX rollouts_group ON rollouts(group_id);
CREATE INDEX rollouts_step ON rollouts(step);
CREATE INDEX rollouts_split ON rollouts(split);
CREATE INDEX rollouts_open ON rollouts(status) WHERE status <> 'done';
CREATE INDEX rollouts_again ON rollouts(id) WHERE attempt > 0;
CREATE TABLE requests(rollout INTEGER PRIMARY KEY REFERENCES rollouts(id), body TEXT NOT NULL) STRICT;
CREATE TABLE turns(
  rollout INTEGER NOT NULL REFERENCES rollouts(id), attempt INTEGER NOT NULL, trajectory TEXT NOT NULL, turn INTEGER NOT NULL, agent TEXT NOT NULL,
  body TEXT NOT NULL, prefix_length INTEGER NOT NULL, suffix_length INTEGER NOT NULL, completion_length INTEGER NOT NULL,
  segment INTEGER NOT NULL, byte_offset INTEGER NOT NULL, crc32 INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX turns_key ON turns(rollout, attempt, trajectory, turn);
CREATE TABLE episodes(rollout INTEGER PRIMARY KEY REFERENCES rollouts(id), body TEXT NOT NULL) STRICT;
CREATE TABLE steps(
  step INTEGER PRIMARY KEY, weight_version INTEGER NOT NULL, checkpoint TEXT, metrics TEXT NOT NULL, committed_at REAL NOT NULL
) STRICT;
CREATE TABLE trained(
  rollout INTEGER PRIMARY KEY REFERENCES rollouts(id), step INTEGER NOT NULL REFERENCES steps(step), position INTEGER NOT NULL
) STRICT;
CREATE INDEX trained_step ON trained(step, position);
CREATE TABLE samples(
  step INTEGER NOT NULL REFERENCES steps(step), position INTEGER NOT NULL, rollout INTEGER NOT NULL REFERENCES rollouts(id),
  agent TEXT NOT NULL, trajectory TEXT NOT NULL, turns TEXT NOT NULL, tokens INTEGER NOT NULL, advantage REAL, reason TEXT, trainer_logprobs BLOB
) STRICT;
CREATE UNIQUE INDEX samples_key ON samples(step, position);
CREATE INDEX samples_rollout ON samples(rollout);
CREATE TABLE state(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE submitted(rollout INTEGER PRIMARY KEY REFERENCES rollouts(id)) STRICT;
CREATE TABLE attempts(
  rollout INTEGER NOT NULL REFERENCES rollouts(id), attempt INTEGER NOT NULL, worker TEXT, started_at REAL NOT NULL, ended_at REAL, error TEXT, agent TEXT,
  PRIMARY KEY(rollout, attempt)
) STRICT, WITHOUT ROWID;
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${storeVersion};
`
