/** Steps of the schema, in order: step 1 is the first. Once released a step never changes; a change is a new step. */
export type Migrations = readonly string[]

// `value` is JSON as text on both: JSONB cannot hold NUL or lone surrogates, reorders keys and rounds numbers. Identifiers are
// compared byte by byte whatever the locale. `tollgate_removals` holds no values: what is deleted is gone, and with it its
// secrets. `deltas_since` is the oldest generation from which the removals are complete.
//
// Revisions are never reused: a removal stores the last revision of its record, and `revision_floor` is the highest revision
// among the removals that were pruned. A record of an older database had at most as many revisions as there were generations.

export const sqliteMigrations: Migrations = [
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
]

export const postgresMigrations: Migrations = [
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
]

/** Why a database of this version is refused; a newer Tollgate may keep things there that this one would break. */
export function tooNew(version: number, migrations: Migrations): string | undefined {
  if (version <= migrations.length) return undefined
  return `its schema has version ${version}, but this version of Tollgate knows ${migrations.length} at most: use a newer Tollgate`
}
