import type { Migrations } from '../../database/migrations.ts'

// `value` is JSON as text in both databases: JSONB rejects NUL and lone surrogates, reorders keys and rounds
// numbers. Identifiers are compared bytewise, independent of the locale. `tollgate_removals` has no values:
// secrets of deleted records are deleted. `deltas_since` is the oldest generation from which the removals are
// complete.
//
// Revisions are never reused: a removal stores the last revision of its record, and `revision_floor` is the
// highest revision among the removals that were pruned. A record of an older database had at most as many
// revisions as there were generations.

const sqliteSteps: Migrations['steps'] = [
  `create table tollgate_resources (
    kind text not null,
    id text not null,
    value text not null,
    revision integer not null,
    created_at text not null,
    updated_at text not null,
    generation integer not null,
    primary key (kind, id)
  ) strict;
  create index tollgate_resources_generation on tollgate_resources (generation);
  create table tollgate_removals (
    kind text not null,
    id text not null,
    generation integer not null,
    primary key (kind, id)
  ) strict;
  create index tollgate_removals_generation on tollgate_removals (generation);
  create table tollgate_state (
    one integer primary key check (one = 1),
    generation integer not null,
    deltas_since integer not null
  ) strict;
  insert into tollgate_state (one, generation, deltas_since) values (1, 0, 0);`,
  `alter table tollgate_removals add column revision integer not null default 0;
  alter table tollgate_state add column revision_floor integer not null default 0;
  update tollgate_removals set revision = generation;
  update tollgate_state set revision_floor = deltas_since;`,
  `create table tollgate_history (
    number integer primary key,
    at text not null,
    revision integer not null,
    kind text not null,
    id text not null,
    op text not null,
    origin text not null,
    reverts integer,
    principal text,
    address text not null,
    request_id text not null,
    before text,
    after text
  ) strict;
  create index tollgate_history_resource on tollgate_history (kind, id, number);`,
]

const postgresSteps: Migrations['steps'] = [
  `create table tollgate_resources (
    kind text collate "C" not null,
    id text collate "C" not null,
    value text not null,
    revision integer not null,
    created_at text not null,
    updated_at text not null,
    generation bigint not null,
    primary key (kind, id)
  );
  create index tollgate_resources_generation on tollgate_resources (generation);
  create table tollgate_removals (
    kind text collate "C" not null,
    id text collate "C" not null,
    generation bigint not null,
    primary key (kind, id)
  );
  create index tollgate_removals_generation on tollgate_removals (generation);
  create table tollgate_state (
    one integer primary key check (one = 1),
    generation bigint not null,
    deltas_since bigint not null
  );
  insert into tollgate_state (one, generation, deltas_since) values (1, 0, 0);`,
  `alter table tollgate_removals add column revision integer not null default 0;
  alter table tollgate_state add column revision_floor integer not null default 0;
  update tollgate_removals set revision = generation;
  update tollgate_state set revision_floor = deltas_since;`,
  `create table tollgate_history (
    number bigint primary key,
    at text collate "C" not null,
    revision integer not null,
    kind text collate "C" not null,
    id text collate "C" not null,
    op text not null,
    origin text not null,
    reverts bigint,
    principal text,
    address text not null,
    request_id text not null,
    before text,
    after text
  );
  create index tollgate_history_resource on tollgate_history (kind, id, number);`,
]

const table = 'tollgate_migrations'

export const sqliteMigrations: Migrations = { table, steps: sqliteSteps }
export const postgresMigrations: Migrations = { table, steps: postgresSteps }
