import type { Migrations } from '../../../database/migrations.ts'
import type { CallObjectRecords } from '../../../lib/planes/object-records.ts'

/** Objects of clients in a database. Rejects with `DatabaseUnavailable`. */
export type RecordStore = { readonly run: CallObjectRecords; close(): Promise<void> }

/** Additions between two deletions of old rows. */
export const additionsPerPrune = 100

/** Most objects of one kind that are listed for a client. */
export const mostListed = 10_000

/** Age from which objects are not listed. */
export const listedMs = 400 * 24 * 60 * 60 * 1000
export const mostPruned = 1_000

const tables = (number: string, text: string, integer: string) => `create table tollgate_llm_objects (
    seq ${number},
    owner ${text} not null,
    kind ${text} not null,
    id ${text} not null,
    text text not null,
    purpose text not null,
    created_at ${integer} not null,
    removed integer not null default 0,
    unique (owner, kind, id)
  );
  create index tollgate_llm_objects_owner on tollgate_llm_objects (owner, kind, seq);
  create index tollgate_llm_objects_created on tollgate_llm_objects (created_at);`

const table = 'tollgate_llm_object_migrations'
export const sqliteMigrations: Migrations = {
  table,
  steps: [tables('integer primary key autoincrement', 'text', 'integer')],
}
export const postgresMigrations: Migrations = {
  table,
  steps: [tables('bigint generated always as identity primary key', 'text collate "C"', 'bigint')],
}
